"""When the loop looks again, and how much of a plan goes at once."""

import msgspec
import pytest

from reconciler.loop.cycle import Cycle, LoopDependencies
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.ports import Wished
from tests.unit.loop.cycle_stage import DESIRED, MARK, NOW, Stage, Term


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_troubles_in_a_row_are_met_with_patience(stage: Stage) -> None:
    stage.wished = Wished(None)
    waits = []
    for _ in range(9):
        cycled = stage.cycle.once(Term())
        assert cycled.wake_at
        waits.append((cycled.wake_at - NOW) // 1_000)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    stage.wished = Wished(DESIRED)
    assert stage.cycle.once(Term()).wake_at is None


def test_what_was_put_off_wakes_nobody_while_the_cluster_can_t_be_read(stage: Stage) -> None:
    fence, gone = Term(), msgspec.structs.replace(stage.node, name="n9")
    decision = msgspec.structs.replace(stage.annotate(), subject=gone)
    stage.decide = lambda inputs: ((decision,), inputs.memory)
    assert [each.result for each in stage.cycle.once(fence).outcomes] == ["stale"]
    seen = stage.world.observe()
    stage.observe = lambda: msgspec.structs.replace(seen, unread=(Unread("nodes", "timed out"),))  # type: ignore[method-assign]
    stage.world.now = Instant(NOW + 5_000)
    waits = [(stage.cycle.once(fence).wake_at or NOW) - stage.world.now for _ in range(3)]
    assert waits == [1_000, 2_000, 4_000]


def test_a_large_plan_goes_in_parts_each_planned_anew(stage: Stage) -> None:
    nodes = [
        stage.world.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"m{number}"}}) for number in range(5)
    ]
    stage.decide = lambda _: (tuple(each for each in map(stage.annotate, nodes) if stage.lacks(each)), MARK)
    stage.cycle = Cycle(LoopDependencies(stage, stage, stage.memory, stage, stage, most_at_once=2))
    fence = Term()
    parts = [stage.cycle.once(fence) for _ in range(4)]
    assert [len(each.outcomes) for each in parts] == [2, 2, 1, 0]
    assert [each.wake_at for each in parts[:2]] == [NOW, NOW]
    assert parts[3].wake_at is None


def test_of_a_part_none_goes_without_what_it_comes_after(stage: Stage) -> None:
    first, second, third = (
        stage.world.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}) for name in ("a", "b", "c")
    )
    behind = msgspec.structs.replace(stage.annotate(first), after=(third,))
    decisions = (behind, stage.annotate(second), stage.annotate(third))
    stage.decide = lambda inputs: (decisions, inputs.memory)
    stage.cycle = Cycle(LoopDependencies(stage, stage, stage.memory, stage, stage, most_at_once=2))
    fence = Term()
    assert [each.subject.name for each in stage.cycle.once(fence).outcomes] == ["b", "c"]
    assert [(each.subject.name, each.result) for each in stage.cycle.once(fence).outcomes] == [("a", "done")]
