"""In an imagined cluster: what is others' survives whatever we decide, and what is seen is what stands."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Label, Ref
from reconciler.simulate.controller import LateView
from reconciler.simulate.objects import key_of
from reconciler.simulate.observer import OBSERVED_STEP_MS, SimulatedObserver
from reconciler.simulate.world import World
from tests.contract import objects
from tests.contract.ground import STANDING, Fallen
from tests.unit.plan.some_reasons import some_reason
from tests.unit.simulate.world_stage import (
    FREE,
    NODE,
    Edit,
    by_another,
    decisions,
    edits,
    everything,
    ref_of,
    theirs,
    world,
)


class Crash(Exception):
    """The process ends here."""


@given(st.lists(st.one_of(decisions(), edits), max_size=12))
def test_whatever_is_decided_what_is_others_survives(steps: list[Decision | Edit]) -> None:
    there = world()
    for step in steps:
        if isinstance(step, Edit):
            by_another(there, step)
            continue
        before = theirs(there)
        list(there.apply([step], STANDING))
        assert theirs(there) == before


@given(st.lists(decisions(with_ends=True), max_size=8))
def test_behind_a_fence_that_fell_nothing_is_written(decided: list[Decision]) -> None:
    there = world()
    before = everything(there)
    outcomes = list(there.apply(decided, Fallen()))
    assert len(outcomes) == len(decided)
    assert everything(there) == before


@given(decisions(with_ends=True))
def test_what_is_done_is_done_once(decided: Decision) -> None:
    there = world()
    (first,) = there.apply([decided], STANDING)
    before = everything(there)
    (second,) = there.apply([decided], STANDING)
    if first.result == "done":
        assert second.result == "done"
    assert everything(there) == before


@given(st.lists(decisions(with_ends=True), max_size=6, unique_by=lambda each: each.subject.name))
def test_killed_after_any_write_and_run_again_it_ends_as_if_undisturbed(decided: list[Decision]) -> None:
    written: list[Ref] = []
    undisturbed = world()
    undisturbed.on_write = written.append
    list(undisturbed.apply(decided, STANDING))
    for point in range(len(written)):
        again: list[Ref] = []
        there = world()
        there.on_write = crashing_at(point)
        with pytest.raises(Crash):
            list(there.apply(decided, STANDING))
        there.on_write = again.append
        list(there.apply(decided, STANDING))
        assert everything(there, plainly=True) == everything(undisturbed, plainly=True)
        repeated = [each for each in again if each in written[: point + 1]]
        assert {each.kind for each in repeated} <= {"Lease"}, "what had taken effect is not repeated"
        assert len(again) - len(repeated) == len(written) - point - 1, "a Lease that a pod holds is adopted by a write"


def crashing_at(point: int) -> Callable[[Ref], None]:
    left = iter(range(point))

    def on_write(_: Ref) -> None:
        if next(left, None) is None:
            raise Crash

    return on_write


@given(st.lists(st.one_of(decisions(with_ends=True), edits), max_size=12))
def test_what_is_seen_bit_by_bit_is_what_stands(steps: list[Decision | Edit]) -> None:
    there = world()
    there.observe()
    for step in steps:
        if isinstance(step, Edit):
            by_another(there, step)
        else:
            list(there.apply([step], STANDING))
        seen = there.observe()
        assert there.observe() is seen
        assert told(seen) == told(afresh(there))


@given(st.lists(st.tuples(st.one_of(decisions(with_ends=True), edits), st.booleans()), max_size=12))
def test_who_looks_late_sees_what_stands_whether_another_has_read_it_or_not(
    steps: list[tuple[Decision | Edit, bool]],
) -> None:
    there = world()
    late = LateView(there, "world")
    there.subscribe(late.note)
    for step, is_read in steps:
        if isinstance(step, Edit):
            by_another(there, step)
        else:
            list(there.apply([step], STANDING))
        if is_read:
            there.observe()
        assert told(late.observe(0)) == told(afresh(there))


def told(seen: Observed) -> list[object]:
    fields = ("nodes", "pods", "node_pools", "budgets", "leases", "kept")
    return [sorted(getattr(seen, field), key=lambda each: each.metadata.name) for field in fields]


def afresh(there: World) -> Observed:
    return SimulatedObserver("world").observed([(key_of(each), each) for each in everything(there)], there.now)


def test_what_does_not_change_stays_the_same_object() -> None:
    there = world()
    before = there.observe()
    there.edit(ref_of(FREE), {"metadata": {"labels": {"a": "b"}}})
    after = there.observe()
    assert after is not before
    assert after.nodes is before.nodes
    assert after.node_pools is before.node_pools
    was, now = ({each.name: each.metadata.labels for each in seen.pods}[FREE] for seen in (before, after))
    assert ("a" in was, now["a"]) == (False, "b")


def test_the_hour_is_told_and_confirms_what_is_seen() -> None:
    there = world()
    before = there.observe()
    there.now = Instant(OBSERVED_STEP_MS - 1)
    assert there.observe() is before
    there.now = Instant(OBSERVED_STEP_MS)
    assert there.observe().seen_at == OBSERVED_STEP_MS
    made = there.put(objects.node("later"))
    assert (there.get(made) or {})["metadata"]["creationTimestamp"] == "1970-01-01T00:00:30Z"


def test_only_leases_at_home_are_seen_and_what_we_keep_is_seen_twice() -> None:
    there = World()
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "x"}}
    for namespace in ("gpu-system", "gpu-leases", "kube-node-lease", "team-a"):
        there.put({**lease, "metadata": {"name": "l", "namespace": namespace}})
    kept = objects.waiting("w")
    kept["metadata"]["labels"]["gpu.scheduling/managed"] = "true"
    there.put(kept)
    seen = there.observe()
    assert [each.metadata.namespace for each in seen.leases] == ["gpu-leases", "gpu-system"]
    assert [each.name for each in seen.pods] == [each.name for each in seen.kept] == ["w"]
    there.edit(Ref("Pod", "default", "w"), {"metadata": {"labels": {"gpu.scheduling/managed": None}}})
    assert (len(there.observe().pods), len(there.observe().kept)) == (1, 0)


def test_what_is_held_is_never_changed_under_its_holder() -> None:
    there = world()
    ref = ref_of(NODE)
    held = there.get(ref)
    told = msgspec.json.encode(held)
    act = Label(labels=(("gpu.scheduling/pool", "a"),))
    list(there.apply([Decision("tests", ref, act, some_reason("Any"))], STANDING))
    there.edit(ref, {"spec": {"taints": None}})
    assert msgspec.json.encode(held) == told


def test_a_put_keeps_the_uid_and_a_removal_ends_it() -> None:
    there = World()
    first = there.put(objects.node("n"))
    assert there.put(objects.node("n")) == first
    there.remove(first)
    there.remove(first)
    assert there.put(objects.node("n")).uid != first.uid


def test_there_is_nothing_to_edit_where_nothing_is() -> None:
    with pytest.raises(KeyError, match="Node/node does not exist"):
        World().edit(ref_of(NODE), {})
