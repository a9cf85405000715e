"""Inputs told by their differences come to the same inputs, whatever happens between them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from reconciler.loop.cycle import decide
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import OBJECTS, Observed, Unread, key_of
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs, Succession, Successor, successor
from reconciler.model.plan.pressure import Bounds, NodePods, PlainPod, PressureState
from tests import builders
from tests.unit.plan.manifests.stage import inputs_of

Moves = list[tuple[str, int, str]]
MOVES: st.SearchStrategy[list[Moves]] = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["nodes", "pods", "kept"]), st.integers(0, 4), st.sampled_from(["put", "drop"])),
        max_size=4,
    ),
    max_size=8,
)


def made(field: str, number: int, version: int) -> Node | Pod | Unstructured:
    name, at = f"n{number}", str(version)
    if field == "nodes":
        return builders.node(name, resource_version=at)
    if field == "pods":
        return builders.pod(name, namespace="a", resource_version=at)
    # Of the same name, told apart by their kind alone.
    kind = ("Pod", "PodDisruptionBudget")[number % 2]
    return Unstructured(
        "v1", kind, UnstructuredMetadata("same", namespace="a", resource_version=at), {"spec": {"n": number}}
    )


def histories(moves: list[Moves]) -> list[Inputs]:
    """As a store would give them: what did not change is the same object."""
    objects: dict[str, dict[object, object]] = {field: {} for field in OBJECTS}
    observed, desired, found = Observed(), Desired("r0", "prod"), []
    for version, batch in enumerate(moves):
        for field, number, what in batch:
            each = made(field, number, version)
            if what == "put":
                objects[field][key_of(each)] = each
            else:
                objects[field].pop(key_of(each), None)
        changed = {field: tuple(objects[field].values()) for field in {field for field, _, _ in batch}}
        unread = (Unread("pods", "x"),) if version % 3 == 2 else ()
        observed = msgspec.structs.replace(observed, seen_at=Instant(version // 2), unread=unread, **changed)
        if version % 2:
            desired = Desired(f"r{version}", "prod")
        found.append(Inputs(desired, observed, Instant(version), prune=(str(version),)))
    return found


def sent(told: Successor) -> Successor:
    """Over a pipe, or from a file."""
    return msgspec.json.decode(msgspec.json.encode(told), type=Successor)


def in_order(inputs: Inputs) -> Inputs:
    objects = {field: tuple(sorted(getattr(inputs.observed, field), key=key_of)) for field in OBJECTS}
    return msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, **objects))


@given(MOVES)
def test_each_of_a_row_is_what_it_was(moves: list[Moves]) -> None:
    succession = Succession()
    before: Inputs | None = None
    for inputs in histories(moves):
        got = succession.take(sent(successor(before, inputs)))
        assert in_order(got) == in_order(inputs)
        before = inputs


@given(MOVES)
def test_only_what_changed_is_told(moves: list[Moves]) -> None:
    before: Inputs | None = None
    for inputs in histories(moves):
        told = successor(before, inputs)
        for field in OBJECTS:
            old = set(map(id, getattr(before.observed, field))) if before else set()
            put = getattr(told.inputs.observed, field)
            assert {id(each) for each in put} == {id(each) for each in getattr(inputs.observed, field)} - old
        assert told.same_policies == (before is not None and before.desired is inputs.desired)
        before = inputs


def test_where_nothing_changed_the_copy_stays_the_same_object() -> None:
    inputs = inputs_of({"nodes": 3, "busy": 2})
    succession = Succession()
    first = succession.take(sent(successor(None, inputs)))
    again = msgspec.structs.replace(inputs, now=Instant(inputs.now + 1))
    second = succession.take(sent(successor(inputs, again)))
    assert second.observed is first.observed
    assert second.desired is first.desired
    assert second.now == again.now


def test_a_plan_of_the_copy_is_the_same_plan() -> None:
    inputs = inputs_of({"nodes": 3, "busy": 2, "wish": {"spec": {"limits": {"cpu": "480"}}}})
    copy = Succession().take(sent(successor(None, inputs)))
    assert decide(copy).plan == decide(inputs).plan
    assert decide(inputs).plan.decisions


def test_what_is_reserved_is_told_only_when_it_changes() -> None:
    inputs = inputs_of({"nodes": 1})
    states = [None, reserved(1), reserved(1), reserved(2), None, None, reserved(2)]
    succession = Succession()
    before: Inputs | None = None
    for state, is_same in zip(states, (False, False, True, False, False, False, False), strict=True):
        told = successor(before, after := msgspec.structs.replace(inputs, pressure=state))
        assert told.same_pressure == is_same
        assert (told.inputs.pressure is None) == (is_same or state is None)
        assert succession.take(sent(told)).pressure == state
        before = after


def reserved(cpu: int) -> PressureState:
    return PressureState((NodePods("n", {"cpu": Bounds(9)}, (PlainPod("p", "team/p", {"cpu": cpu}),)),))
