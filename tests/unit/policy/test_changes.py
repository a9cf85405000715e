"""What a pull request changes in the policies: the table of fields, whole objects, templates, and where each stands."""

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.bundle import Bundle, FieldChange, PolicyChange, Text
from reconciler.model.desired import Desired
from reconciler.policy.changes import changes
from reconciler.policy.manifests.render import manifests, orders
from reconciler.policy.resolve import resolve
from reconciler.policy.rules.kinds import POLICY_KINDS, kind_named
from reconciler.policy.shape import API_VERSION, describe, plainly
from reconciler.sources.renderer import render
from tests import folders
from tests.policies import specimens

CASES = yaml.safe_load((folders.CASES / "policy_changes" / "fields.yaml").read_text())

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes:
    - name: p4d.24xlarge
      pricePerHour: {on-demand: "21.96"}
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100}
  taints:
    - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
  labels: {team: research}
"""
PROVISIONER = """\
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 2, maxSize: 16, minGPUUtilizationPercent: 70}
"""


def wished(*texts: str, environment: str = "base", **files: str) -> Desired:
    named = {"base": "---\n".join(texts), **files}
    read = [Text(f"{name.replace('__', '/')}.yaml", text.encode()) for name, text in sorted(named.items())]
    found = resolve(Bundle("r", tuple(read)))
    wish = found.wish(environment)
    assert wish
    return wish


def document(kind: str, spec: dict[str, Any], name: str = "a100") -> str:
    shaped = kind_named(kind)
    assert shaped
    whole = {**specimens.smallest(shaped.shape), **spec}
    return json.dumps({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": whole})


def told(field: FieldChange) -> str:
    if field.before is None:
        return f"{field.path}: + {field.after}"
    if field.after is None:
        return f"{field.path}: - {field.before}"
    return f"{field.path}: {field.before} -> {field.after}"


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    found = changes(*(wished(document(case["kind"], case[when])) for when in ("base", "head")))
    assert [told(field) for each in found for field in each.fields] == case["told"]
    assert [(each.kind, each.verb) for each in found] == ([(case["kind"], "change")] if case["told"] else [])


def test_an_object_that_is_new_is_told_with_all_that_it_says_beside_its_defaults() -> None:
    (added,) = changes(wished(POOL), wished(POOL, PROVISIONER))
    assert (added.kind, added.name, added.verb, added.origin.line) == ("NodeProvisioner", "a100", "add", 16)
    assert [told(field) for field in added.fields] == [
        "maxSize: + 16",
        "minGPUUtilizationPercent: + 70",
        "minSize: + 2",
        "poolName: + a100",
    ]


def test_an_object_that_says_nothing_but_defaults_is_new_all_the_same() -> None:
    (removed,) = changes(wished(document("ChangeGuard", {})), wished())
    assert (removed.kind, removed.verb, [told(field) for field in removed.fields]) == (
        "ChangeGuard",
        "remove",
        ["poolNames: - a100"],
    )


def test_objects_are_told_by_kind_and_name() -> None:
    documents = [document(kind, {}, name) for kind in ("NodeProvisioner", "GpuPool", "DrainPolicy") for name in "ba"]
    found = changes(wished(), wished(*(f"{each}\n" for each in documents)))
    assert [(each.kind, each.name) for each in found] == sorted((each.kind, each.name) for each in found)
    assert len(found) == 6


def test_each_field_is_led_back_to_where_the_head_wrote_it_and_what_is_gone_to_where_the_base_had_it() -> None:
    edits = {
        '{key: nvidia.com/gpu, value: "true", effect: NoSchedule}': "{key: x, effect: NoExecute}",
        "    - name: p4d": "    - name: p5\n    - name: p4d",
        "21.96": "24.15",
    }
    head = POOL
    for before, after in edits.items():
        head = head.replace(before, after)
    (changed,) = changes(wished(POOL), wished(head))
    assert {told(field): field.origin.line for field in changed.fields} == {
        "instanceTypes: + {name: p5}": 7,
        "instanceTypes: [p4d.24xlarge] -> [p5, p4d.24xlarge]": 6,
        "instanceTypes[p4d.24xlarge].pricePerHour.on-demand: 21.96 -> 24.15": 9,
        "taints: + x:NoExecute": 12,
        "taints: - nvidia.com/gpu=true:NoSchedule": 11,
    }


def test_what_falls_back_to_its_default_is_led_back_to_the_object() -> None:
    written = POOL + "  committedNodes: 8\n"
    (changed,) = changes(wished(written), wished(POOL))
    assert [(told(field), field.origin.line) for field in changed.fields] == [("committedNodes: 8 -> 0", 3)]


def test_an_overlay_is_where_its_values_are_written() -> None:
    overlay = "apiVersion: gpu.scheduling/v1\nkind: GpuPool\nmetadata: {name: a100}\nspec: {labels: {team: serving}}\n"
    base = wished(POOL, environment="prod", overlays__prod__p=overlay)
    head = wished(POOL, environment="prod", overlays__prod__p=overlay.replace("serving", "batch"))
    ((field,),) = (each.fields for each in changes(base, head))
    assert (told(field), field.origin.file, field.origin.line) == (
        "labels.team: serving -> batch",
        "overlays/prod/p.yaml",
        4,
    )


def rendered(policies: str, template: str) -> Desired:
    wish = wished(policies)
    ordered = orders(wish)
    texts = [Text("node_pool.yaml.j2", template.encode())]
    answers = render(texts, [order.request for order in ordered])
    yielded, problems = manifests(wish, list(zip(ordered, answers, strict=True)), None)
    assert problems == []
    return msgspec.structs.replace(wish, manifests=yielded)


NODE_POOL = """\
{# Ours. #}
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: {{ pool.name }}}
spec:
  template:
    spec:
      nodeClassRef: {group: g.x, kind: K, name: m}
      requirements: []
      expireAfter: {{ "Never" if covered else "1h" }}
  disruption: {consolidateAfter: Never}
"""
CLASS = """\
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: {{ pool.name }}}
value: -1
"""


def test_a_template_that_yields_something_else_is_a_change_of_each_of_its_pools() -> None:
    base = rendered(POOL, NODE_POOL)
    head = rendered(POOL, NODE_POOL.replace('"1h"', '"2h"') + CLASS)
    (changed,) = changes(base, head)
    assert (changed.kind, changed.name, changed.verb) == ("GpuPool", "a100", "change")
    once, twice = (f"NodePool/a100 (spec.template.spec.expireAfter: {hours}h)" for hours in (1, 2))
    assert [told(field) for field in changed.fields] == [
        "template: + PriorityClass/a100",
        f"template: {once} -> {twice}",
    ]
    places = [(field.origin.file.rpartition("/")[2], field.origin.line) for field in changed.fields]
    assert places == [("node_pool.yaml.j2", 13), ("node_pool.yaml.j2", 2)]


def test_what_a_policy_makes_of_a_template_is_no_change_of_the_template() -> None:
    base, head = rendered(POOL, NODE_POOL), rendered(POOL + "---\n" + PROVISIONER, NODE_POOL)
    assert base.manifests[0].body != head.manifests[0].body
    assert [(each.kind, each.verb) for each in changes(base, head)] == [("NodeProvisioner", "add")]


def test_a_template_in_other_words_changes_nothing() -> None:
    assert changes(rendered(POOL, NODE_POOL), rendered(POOL, "{# Moved. #}\n" + NODE_POOL)) == ()


def mirrored(change: PolicyChange) -> tuple[object, ...]:
    verbs = {"add": "remove", "remove": "add", "change": "change"}
    fields = {(each.path, each.after, each.before) for each in change.fields}
    return change.kind, change.name, verbs[change.verb], fields


@some.composite
def revisions(draw: some.DrawFn) -> tuple[Desired, Desired]:
    """Base and head: objects with anything that their kind allows by itself, and some of their fields changed."""
    texts: tuple[list[str], list[str]] = ([], [])
    for kind in draw(some.lists(some.sampled_from(POLICY_KINDS), min_size=1, max_size=2, unique=True)):
        spec, other = draw(specimens.allowed(kind.shape)), draw(specimens.allowed(kind.shape))
        edited = draw(some.sets(some.sampled_from(sorted(other))))
        for revision, each in zip(texts, (spec, {**spec, **{name: other[name] for name in edited}}), strict=True):
            if draw(some.integers(0, 9)):
                revision.append(document(kind.name, each) + "\n")
    return wished(*texts[0]), wished(*texts[1])


def said(wish: Desired) -> list[tuple[str, Any]]:
    """What it says, as plain data; the order of taints says nothing."""
    found = []
    for declared in (*wish.pools, *wish.provisioners, *wish.drains, *wish.pressures, *wish.guards):
        plain = plainly(describe(type(declared.spec)), declared.spec)
        found.append((declared.kind, {**plain, "taints": sorted(plain.get("taints", []), key=str)}))
    return found


@given(revisions())
@settings(max_examples=50)
def test_there_and_back_are_mirror_images(revisions: tuple[Desired, Desired]) -> None:
    base, head = revisions
    there, back = changes(base, head), changes(head, base)
    assert [mirrored(each) for each in there] == [
        (each.kind, each.name, each.verb, {(one.path, one.before, one.after) for one in each.fields}) for each in back
    ]
    # A whole object is led back to the same place, whether it comes or goes.
    came, went = (
        {(each.kind, each.origin, tuple((one.path, one.origin) for one in each.fields)) for each in found}
        for found in ([each for each in way if each.verb != "change"] for way in (there, back))
    )
    assert came == went


@given(revisions())
@settings(max_examples=30)
def test_nothing_changes_from_a_wish_to_itself(revisions: tuple[Desired, Desired]) -> None:
    for wish in revisions:
        assert changes(wish, msgspec.structs.replace(wish, revision="other")) == ()


@given(revisions())
@settings(max_examples=50)
def test_no_change_means_the_same_wish(revisions: tuple[Desired, Desired]) -> None:
    base, head = revisions
    assert bool(changes(base, head)) == (said(base) != said(head))


def test_a_thousand_objects_are_compared_by_their_own_fields_only() -> None:
    pools = [document("GpuPool", {"committedNodes": 1}, f"pool-{number:04}") + "\n" for number in range(1_000)]
    base = wished(*pools)
    pools[500] = pools[500].replace('"committedNodes": 1', '"committedNodes": 2')
    head = wished(*pools)
    assert [(each.name, [told(field) for field in each.fields]) for each in changes(base, head)] == [
        ("pool-0500", ["committedNodes: 1 -> 2"])
    ]
    assert len(changes(wished(), head)) == 1_000
