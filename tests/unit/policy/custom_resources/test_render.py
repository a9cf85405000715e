"""What `render --as-resources` writes on each object beside its spec."""

import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.bundle_objects import by_bundle
from reconciler.policy.custom_resources import custom_resources
from reconciler.policy.resolve import resolve
from reconciler.policy.rules.kinds import KINDS
from tests.unit.policy.custom_resources.stage import rendered, said, wish_of

BASE_POLICY = """\
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata:
  name: fleet
  labels: {team: ml, tier: silver}
  annotations: {argocd.argoproj.io/sync-options: Prune=false, gpu.scheduling/bundle-count: "7"}
spec: {poolNames: ["*"], perPlan: {maxRemovedNodes: 24}}
"""
OVER_POLICY = """\
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet, labels: {tier: gold}}
spec: {perPlan: {maxRemovedNodes: 4}}
"""


def test_a_new_bundle_is_a_new_generation_of_each_object_though_no_spec_changes() -> None:
    """An annotation is none: the status of the bundle before would speak for the new one."""
    first, second = (custom_resources(wish_of(revision=each)) for each in ("a", "b"))
    assert [each["spec"] for each in first] == [each["spec"] for each in second]
    assert {each["bundle"] for each in first} == {first[0]["metadata"]["annotations"]["gpu.scheduling/bundle-digest"]}
    assert not {each["bundle"] for each in first} & {each["bundle"] for each in second}


@given(some.sets(some.integers(0, len(KINDS) - 1), min_size=1))
def test_objects_that_are_there_name_objects_that_are_missing(there: set[int]) -> None:
    objects = rendered(wish_of())
    present = [objects[number % len(objects)] for number in sorted({number % len(objects) for number in there})]
    (_, (found,)) = by_bundle(present)
    titles = {f"{each.kind}/{each.name}" for each in objects} - {f"{each.kind}/{each.name}" for each in present}
    assert set(found.missing) <= titles
    assert bool(found.missing) == bool(titles) == (not found.is_whole)


def test_labels_and_annotations_of_policies_come_along_and_those_of_an_overlay_win() -> None:
    base = Text("base/p.yaml", BASE_POLICY.encode())
    over = Text("overlays/prod/p.yaml", OVER_POLICY.encode())
    resolved = resolve(Bundle("4c1f9e2", (base, over)))
    assert resolved.problems == ()
    wish = resolved.wish("prod")
    assert wish
    (found,) = (each["metadata"] for each in custom_resources(wish))
    assert found["labels"] == {"team": "ml", "tier": "gold"}
    assert found["annotations"]["argocd.argoproj.io/sync-options"] == "Prune=false"
    assert found["annotations"]["gpu.scheduling/bundle-count"] == "1", "what is ours says the truth"
    plain = Text("base/p.yaml", BASE_POLICY.encode())
    without = resolve(Bundle("4c1f9e2", (plain,))).wishes[0]
    assert "labels" in custom_resources(without)[0]["metadata"]


def test_rendered_objects_are_read_as_files_too() -> None:
    text = yaml.safe_dump_all(each for each in custom_resources(wish_of()))
    resolved = resolve(Bundle("4c1f9e2", (Text("rendered.yaml", text.encode()),)))
    assert resolved.problems == ()
    assert said(resolved.wishes[0]) == said(wish_of())
