"""Policies as custom resources: the same wish as from files, only whole bundles, and problems told by field."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.kube.policies import ResourcePolicies
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.problem import Problem
from reconciler.policy.custom_resources import by_field, custom_resources
from reconciler.policy.resolve import bundle_of, resolve
from reconciler.policy.rules.kinds import KINDS
from tests.policies.specimens import allowed
from tests.unit.policy.custom_resources.stage import POLICIES, by_hand, rendered, said, seen, whole, wish_of


def without(text: str, name: str) -> str:
    return "---\n".join(each for each in text.split("---\n") if f"name: {name}}}" not in each)


def test_custom_resources_say_what_the_files_said_in_the_same_environment_and_revision() -> None:
    wish = wish_of()
    resolved = resolve(bundle_of(seen(*rendered(wish))))
    assert resolved.problems == ()
    (found,) = resolved.wishes
    assert said(found) == said(wish)
    assert (found.environment, found.revision) == ("prod", "4c1f9e2")


def test_each_object_says_which_bundle_it_is_of_and_how_large_that_is() -> None:
    notes = [each["metadata"]["annotations"] for each in custom_resources(wish_of())]
    assert len({each["gpu.scheduling/bundle-digest"] for each in notes}) == 1
    assert {each["gpu.scheduling/bundle-count"] for each in notes} == {"4"} == {str(len(notes))}
    assert {each["gpu.scheduling/bundle-revision"] for each in notes} == {"4c1f9e2"}


def test_another_commit_is_another_bundle_though_it_changes_nothing() -> None:
    digests = {
        each.metadata.annotations["gpu.scheduling/bundle-digest"]
        for wish in (wish_of(), wish_of(revision="b7d0a15"), wish_of(environment="stage"))
        for each in rendered(wish)
    }
    assert len(digests) == 3


def test_what_was_written_by_hand_counts_as_it_is() -> None:
    (found,) = resolve(bundle_of(seen(*by_hand()))).wishes
    assert said(found) == said(wish_of())
    assert (found.environment, found.revision[:10]) == ("base", "resources:")


def test_a_revision_of_what_was_written_by_hand_follows_from_the_policies_alone() -> None:
    objects = by_hand()
    revision = bundle_of(seen(*objects)).revision
    touched = [
        msgspec.structs.replace(
            each,
            rest={**each.rest, "status": {"problems": ["x"]}},
            metadata=msgspec.structs.replace(each.metadata, resource_version="8"),
        )
        for each in reversed(objects)
    ]
    assert bundle_of(seen(*touched)).revision == revision
    edited = by_hand(POLICIES.replace("maxSize: 9", "maxSize: 8"))
    assert bundle_of(seen(*edited)).revision != revision


def edited(each: Unstructured, **spec: Any) -> Unstructured:
    """As kubectl edit leaves it: its annotations stay."""
    return msgspec.structs.replace(each, rest={**each.rest, "spec": {**each.rest["spec"], **spec}})


def test_what_was_edited_by_hand_is_of_no_commit_whatever_its_annotations_say() -> None:
    objects = rendered(wish_of())
    by_hand = [edited(each, maxSize=2) if each.kind == "NodeProvisioner" else each for each in objects]
    (found,) = resolve(bundle_of(seen(*by_hand))).wishes
    assert found.provisioners[0].spec.max_size == 2
    assert found.revision.startswith("resources:")
    assert {origin.revision for each in found.declared for _, origin in each.origins} == {found.revision}
    renamed = [edited(each, suspend=False) for each in objects]  # says no more than before
    assert resolve(bundle_of(seen(*renamed))).wishes[0].revision == "4c1f9e2"


BEFORE = rendered(wish_of())
AFTER = rendered(wish_of(POLICIES.replace("maxSize: 9", "maxSize: 8"), revision="b7d0a15"))
FEWER = rendered(wish_of(without(POLICIES, "l4"), revision="b7d0a15"))


class Cluster:
    """What is there at the moment, and how often it was judged."""

    def __init__(self, *objects: Unstructured) -> None:
        self.observed = seen(*objects)
        self.judged = 0

    def source(self, judge: Callable[[Bundle], bool] | None = None) -> ResourcePolicies:
        def counted(bundle: Bundle) -> bool:
            self.judged += 1
            return (judge or (lambda _: True))(bundle)

        return ResourcePolicies(lambda: self.observed, counted)


@pytest.mark.parametrize("applied", range(1, len(BEFORE)))
def test_while_a_new_bundle_is_applied_one_by_one_the_old_one_stays_in_force(applied: int) -> None:
    cluster = Cluster(*BEFORE)
    source = cluster.source()
    assert source.latest().revision == "4c1f9e2"
    cluster.observed = seen(*AFTER[:applied], *BEFORE[applied:])
    assert source.latest().revision == "4c1f9e2"
    refused = source.last_refused
    assert refused is not None
    assert [each.code for each in refused.problems] == ["RC521"]
    cluster.observed = seen(*AFTER)
    assert source.latest().revision == "b7d0a15"
    assert source.last_refused is None


def test_what_a_smaller_bundle_leaves_behind_does_not_hold_it_up_and_does_not_count() -> None:
    left = [each for each in BEFORE if each.name == "l4"]
    bundle = bundle_of(seen(*FEWER, *left))
    assert bundle.problems == ()
    assert [text.path for text in bundle.policies] == ["ChangeGuard/fleet", "GpuPool/a100", "NodeProvisioner/a100"]


def test_before_any_bundle_was_whole_none_is_in_force() -> None:
    source = Cluster(*BEFORE[1:]).source()
    assert [each.code for each in source.latest().problems] == ["RC508"]


@given(some.sets(some.integers(0, len(BEFORE) - 1)), some.sets(some.integers(0, len(AFTER) - 1)))
def test_no_part_of_a_bundle_ever_counts_alone(old: set[int], new: set[int]) -> None:
    """Whatever of two bundles is there, without regard to names: taken is one of them, whole, or nothing."""
    bundle = bundle_of(seen(*(BEFORE[n] for n in sorted(old)), *(AFTER[n] for n in sorted(new))))
    whole_ones = {"4c1f9e2": len(old) == len(BEFORE), "b7d0a15": len(new) == len(AFTER)}
    if not old and not new:
        assert (bundle.policies, bundle.problems) == ((), ())
    elif sum(whole_ones.values()) == 1:
        assert (len(bundle.policies), whole_ones[bundle.revision]) == (len(BEFORE), True)
    else:
        assert (bundle.policies, len(bundle.problems)) == ((), 1)


def test_two_whole_bundles_could_mean_anything_and_so_mean_nothing() -> None:
    other = rendered(
        wish_of(POLICIES.replace("name: a100}", "name: h100}").replace("poolName: a100", "poolName: h100"))
    )
    renamed = [each for each in other if each.name != "fleet"]
    alone = [whole({**_plain(each), "metadata": _counted(each, len(renamed))}) for each in renamed]
    cluster = Cluster(*BEFORE)
    source = cluster.source()
    first = source.latest()
    cluster.observed = seen(*BEFORE, *alone)
    assert source.latest() is first
    refused = source.last_refused
    assert refused is not None
    assert [each.code for each in refused.problems] == ["RC522"]
    assert "delete the objects of the older bundle" in refused.problems[0].remedy


def _plain(each: Unstructured) -> dict[str, Any]:
    return {"apiVersion": each.api_version, "kind": each.kind, **each.rest}


def _counted(each: Unstructured, count: int) -> dict[str, Any]:
    return {"name": each.name, "annotations": {**each.metadata.annotations, "gpu.scheduling/bundle-count": str(count)}}


def test_a_bundle_with_problems_never_takes_the_place_of_a_good_one() -> None:
    cluster = Cluster(*BEFORE)
    source = cluster.source(lambda bundle: not resolve(bundle).problems)
    good = source.latest()
    cluster.observed = seen(*by_hand(POLICIES.replace("poolName: a100", "poolName: none")))
    assert source.latest() is good
    assert source.last_refused is not None


def test_policies_that_can_t_be_read_leave_what_was_read_in_force() -> None:
    cluster = Cluster(*BEFORE)
    source = cluster.source()
    good = source.latest()
    cluster.observed = Observed(unread=(Unread("gpupools.gpu.scheduling", "403"),))
    assert source.latest() is good
    refused = source.last_refused
    assert refused is not None
    assert [(each.code, "403" in each.sentence) for each in refused.problems] == [("RC523", True)]


def test_that_all_policies_are_gone_is_an_answer() -> None:
    cluster = Cluster(*BEFORE)
    source = cluster.source()
    assert source.latest().policies
    cluster.observed = seen()
    assert (source.latest().policies, source.latest().problems) == ((), ())


def test_an_object_that_is_being_deleted_is_gone() -> None:
    leaving = [whole(_plain(each) | {"metadata": {"name": each.name}}, deletion_timestamp="2026-11-02T08:00:00Z")
               for each in BEFORE]  # fmt: skip
    assert bundle_of(seen(*leaving)).policies == ()


def test_nothing_is_judged_again_while_only_statuses_change() -> None:
    cluster = Cluster(*BEFORE)
    source = cluster.source()
    first = source.latest()
    cluster.observed = seen(
        *(msgspec.structs.replace(each, rest={**each.rest, "status": {"problems": []}}) for each in BEFORE)
    )
    assert source.latest() is first
    assert cluster.judged == 1


def test_who_is_told_of_a_bundle_is_told_before_it_is_judged() -> None:
    told: list[str] = []

    def judge(bundle: Bundle) -> bool:
        told.append(bundle.revision)
        return True

    cluster = Cluster(*BEFORE[1:])
    source = ResourcePolicies(
        lambda: cluster.observed, judge, lambda observed: told.append(f"{len(observed.policies)}")
    )
    source.latest()
    assert told == []
    cluster.observed = seen(*BEFORE)
    source.latest()
    source.latest()
    assert told == ["4", "4c1f9e2"]


def test_users_and_agents_objects_are_no_policies() -> None:
    claim = whole({"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": {"name": "x"}, "spec": {}})
    assert [text.path for text in bundle_of(seen(*BEFORE, claim)).policies] == sorted(
        f"{each.kind}/{each.name}" for each in BEFORE
    )


@pytest.mark.parametrize(
    ("before", "after", "file", "sentence"),
    [
        ("minSize: 1", 'minSize: "two"', "NodeProvisioner/a100", 'spec.minSize: expected an integer'),
        ("minSize: 1", "minSize: 1, minimum: 2", "NodeProvisioner/a100", 'spec.minimum: unknown key "minimum"'),
        ("minSize: 1", "minSize: 12", "NodeProvisioner/a100", "spec.minSize: minSize 12 is above maxSize 9"),
        ("poolName: a100", "poolName: none", "NodeProvisioner/a100", "spec.poolName"),
        ("effect: NoSchedule", "effect: Never", "GpuPool/a100", "spec.taints[0].effect: expected"),
    ],
)  # fmt: skip
def test_a_problem_names_object_and_field_and_no_line(before: str, after: str, file: str, sentence: str) -> None:
    resolved = resolve(bundle_of(seen(*by_hand(POLICIES.replace(before, after, 1)))))
    (found,) = [each for each in resolved.problems if sentence in each.sentence]
    assert (found.file, found.line, found.column, found.excerpt) == (file, 0, 0, "")
    assert found.sentence.count("spec.") == 1


@pytest.mark.parametrize(
    ("field", "begins"),
    [
        ("spec.minSize", ""),
        ("spec.minSize.unit", ""),
        ("spec.minSize[0]", ""),
        ("", "spec.minSize: "),
        ("spec", "spec.minSize: "),
        ("spec.minSizes", "spec.minSize: "),
    ],
)
def test_whether_a_problem_names_its_field_is_data(field: str, begins: str) -> None:
    """Whatever words its sentence has."""
    content = b"kind: NodeProvisioner\nspec:\n  minSize: 1\n"
    bundle = Bundle("", (Text("NodeProvisioner/a100", content),), by_field=True)
    words = "spec.minSize is named here"
    (found,) = by_field(bundle, [Problem("NodeProvisioner/a100", 3, 12, "RC105", words, field=field)])
    assert found.sentence == f"{begins}{words}"


def test_a_problem_between_objects_points_to_the_other_by_its_name() -> None:
    second = POLICIES + POLICIES[POLICIES.index("---\napiVersion: gpu.scheduling/v1\nkind: NodeProvisioner") :].replace(
        "metadata: {name: a100}", "metadata: {name: b}"
    ).split("---\napiVersion: gpu.scheduling/v1\nkind: ChangeGuard")[0]  # fmt: skip
    told = resolve(bundle_of(seen(*by_hand(second)))).problems
    assert {each.code for each in told} >= {"RC302"}
    assert "NodeProvisioner/a100" in told[0].sentence + told[0].remedy
    assert "NodeProvisioner/a100:" not in told[0].sentence + told[0].remedy


def test_decisions_lead_back_to_the_object() -> None:
    (found,) = resolve(bundle_of(seen(*BEFORE))).wishes
    pool = found.pool("a100")
    assert pool
    assert pool.origin("spec.mode").place == "GpuPool/a100"


KIND_NAMES = sorted(kind.name for kind in KINDS if kind.is_policy)


@pytest.mark.parametrize("name", KIND_NAMES)
@settings(max_examples=20)
@given(drawn=some.data())
def test_whatever_a_spec_says_it_says_as_a_custom_resource_too(name: str, drawn: some.DataObject) -> None:
    kind = next(each for each in KINDS if each.name == name)
    document = {"apiVersion": "gpu.scheduling/v1", "kind": name, "metadata": {"name": "a100"}}
    resolved = resolve(bundle_of(seen(whole({**document, "spec": drawn.draw(allowed(kind.shape))}))))
    if not (resolved.wishes and resolved.wishes[0].declared):
        return
    wish = resolved.wishes[0]
    again = resolve(bundle_of(seen(*rendered(wish)))).wishes[0]
    assert _exactly(again) == _exactly(wish)


def _exactly(wish: Desired) -> bytes:
    """1.1Ki is written as 1126.4, which is as much."""
    return msgspec.json.encode(said(wish)).replace(b'"binary":true', b'"binary":false')
