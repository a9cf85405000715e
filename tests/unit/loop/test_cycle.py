"""The loop's step: what comes before what, what holds back what, and what is not sent twice."""

from typing import NoReturn

import msgspec
import pytest

from reconciler.kube.memory_store import HEAD, ConfigMapMemory
from reconciler.loop.cycle import Cycle, LoopDependencies
from reconciler.model import names
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Hold, Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.pressure import PressureState
from reconciler.model.problem import Problem
from reconciler.plan.check import BrokenInvariant
from reconciler.ports import Unavailable, Wished
from tests.unit.kube.configmap_server import broken_connection
from tests.unit.loop.cycle_stage import DESIRED, MARK, NOW, Stage, Term

NOTHING: dict[str, object] = {}


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_the_memory_is_written_before_the_actions_that_may_depend_on_it(stage: Stage) -> None:
    stage.decide = lambda _: ((stage.annotate(),), MARK)
    cycled = stage.cycle.once(Term())
    assert stage.said == ["apply with memory 1", "wrote Node/n1"]
    assert [each.result for each in cycled.outcomes] == ["done"]
    assert stage.published == [cycled]
    assert cycled.trouble == ""


def test_it_is_written_also_where_nothing_is_done_and_only_when_it_is_another(stage: Stage) -> None:
    stage.decide = lambda _: ((), MARK)
    stage.cycle.once(Term())
    assert stage.remembered() == MARK.marks
    version = stage.server.version
    stage.cycle.once(Term())
    assert stage.server.version == version


def test_without_the_memory_nothing_is_done(stage: Stage) -> None:
    stage.decide = lambda _: ((stage.annotate(),), MARK)
    stage.server.writes_left, stage.server.then = 0, broken_connection()
    cycled = stage.cycle.once(Term())
    assert "the memory could not be written, so nothing is done" in cycled.trouble
    assert stage.said == []
    assert cycled.wake_at == NOW + 1_000
    stage.server.writes_left = None
    assert stage.cycle.once(Term()).trouble == ""
    assert stage.annotation() == "1"


def test_a_memory_that_someone_else_wrote_is_read_again_before_anything_is_done(stage: Stage) -> None:
    fence = Term()
    stage.cycle.once(fence)
    stage.decide = lambda inputs: ((stage.annotate(),), Memory((*inputs.memory.marks, *MARK.marks)))
    other = ConfigMapMemory(stage.server, names.OWN_NAMESPACE)
    other.save(Memory((DisruptionRecord(NOW, "Node", "other"),)), other.load())
    assert "someone else wrote the memory" in stage.cycle.once(fence).trouble
    assert stage.said == []
    assert stage.cycle.once(fence).trouble == ""
    assert [each.name for each in stage.remembered()] == ["other", "n1"]


def test_another_term_reads_the_memory_again(stage: Stage) -> None:
    seen: list[Memory] = []

    def decide(inputs: Inputs) -> tuple[tuple[Decision, ...], Memory]:
        seen.append(inputs.memory)
        return (), inputs.memory

    stage.decide = decide
    stage.cycle.once(Term())
    other = ConfigMapMemory(stage.server, names.OWN_NAMESPACE)
    other.save(MARK, other.load())
    stage.cycle.once(Term())
    assert seen == [Memory(), MARK]


def test_a_lease_lost_while_it_plans_or_remembers_leaves_everything_as_it_was(stage: Stage) -> None:
    stage.decide = lambda _: ((stage.annotate(),), MARK)
    assert "leadership was lost" in stage.cycle.once(Term(holds_for=0)).trouble
    assert HEAD not in stage.server.objects
    assert "leadership was lost" in stage.cycle.once(Term(holds_for=1)).trouble
    assert (stage.said, stage.annotation()) == ([], None)


def test_a_lease_lost_in_the_middle_of_an_apply_ends_the_writing(stage: Stage) -> None:
    others = [stage.world.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"m{n}"}}) for n in range(4)]
    decisions = tuple(map(stage.annotate, others))
    stage.decide = lambda inputs: (decisions, inputs.memory)
    fence = Term()

    def write(ref: Ref) -> None:
        stage.said.append(f"wrote {ref.title}")
        if len(stage.said) == 3:  # after the second
            fence.left = 0

    stage.world.on_write = write
    cycled = stage.cycle.once(fence)
    assert stage.said[1:] == ["wrote Node/m0", "wrote Node/m1"]
    assert [each.result for each in cycled.outcomes] == ["done", "done", "stale", "stale"]


@pytest.mark.parametrize("fault", [Unavailable("no plan was made"), BrokenInvariant("one action a subject: broken")])
def test_without_a_plan_nothing_is_done(stage: Stage, fault: Exception) -> None:
    def fail(inputs: Inputs) -> tuple[tuple[Decision, ...], Memory]:
        raise fault

    stage.decide = fail
    cycled = stage.cycle.once(Term())
    assert str(fault) in cycled.trouble
    assert cycled.plan is None
    assert stage.said == []


def test_a_cluster_that_could_not_be_read_is_planned_for_and_left_alone(stage: Stage) -> None:
    stage.decide = lambda _: ((stage.annotate(),), MARK)
    seen = stage.world.observe()
    for unread in ({"unread": (Unread("pods", "may not list them"),)}, {"cluster_uid": ""}):
        stage.observe = lambda unread=unread: msgspec.structs.replace(seen, **unread)  # type: ignore[method-assign,misc]
        cycled = stage.cycle.once(Term())
        assert cycled.plan
        assert "could not" in cycled.trouble
    stage.observe = lambda: msgspec.structs.replace(seen, unread=(Unread("volumeattachments.storage.k8s.io", "x"),))  # type: ignore[method-assign]
    assert stage.cycle.once(Term()).trouble == ""
    assert stage.said == ["apply with memory 1", "wrote Node/n1"]


@pytest.mark.parametrize("place", ["namespaces", "gpupools.gpu.scheduling", "changeguards.gpu.scheduling"])
def test_where_a_freeze_may_sit_that_could_not_be_read_nothing_is_done(stage: Stage, place: str) -> None:
    stage.decide = lambda _: ((stage.annotate(),), MARK)
    seen = stage.world.observe()
    stage.observe = lambda: msgspec.structs.replace(seen, unread=(Unread(place, "timed out"),))  # type: ignore[method-assign]
    cycled = stage.cycle.once(Term())
    assert cycled.trouble == f"freezes could not be read, so nothing is done: {place}: timed out"
    assert stage.said == []


def test_policies_that_turn_bad_are_told_and_the_good_ones_go_on(stage: Stage) -> None:
    stage.decide = lambda inputs: ((stage.annotate(),), inputs.memory)
    problem = Problem("a.yaml", 1, 1, "RC101", "not an object")
    stage.wished = Wished(None, (problem,))
    cycled = stage.cycle.once(Term())
    assert (cycled.inputs, cycled.problems) == (None, (problem,))
    assert "no valid policies" in cycled.trouble
    stage.wished = Wished(DESIRED, (problem,))
    cycled = stage.cycle.once(Term())
    assert (cycled.trouble, cycled.problems) == ("", (problem,))
    assert stage.annotation() == "1"


def test_what_was_done_is_not_sent_again_before_the_cluster_shows_it(stage: Stage) -> None:
    fence, decision = Term(), stage.annotate()
    stage.decide = lambda inputs: ((decision,), inputs.memory)
    stage.cycle.once(fence)
    cycled = stage.cycle.once(fence)
    assert cycled.outcomes == ()
    assert cycled.wake_at == NOW + 10_000
    stage.world.now = Instant(NOW + 10_000)
    assert [each.result for each in stage.cycle.once(fence).outcomes] == ["done"]
    assert stage.said.count("wrote Node/n1") == 1  # it was so already


def test_holds_and_what_would_be_done_are_not_sent(stage: Stage) -> None:
    decision = stage.annotate()
    hold = msgspec.structs.replace(decision, act=Hold())
    stage.decide = lambda inputs: ((hold, msgspec.structs.replace(decision, would=True)), inputs.memory)
    assert stage.cycle.once(Term()).outcomes == ()
    assert stage.said == []


def test_a_cycle_tells_how_long_its_parts_took(stage: Stage) -> None:
    def slowly(inputs: Inputs) -> tuple[tuple[Decision, ...], Memory]:
        stage.world.now = Instant(stage.world.now + 250)
        return ((stage.annotate(),), MARK)

    def late(_: Ref) -> None:
        stage.world.now = Instant(stage.world.now + 40)

    stage.decide, stage.world.on_write = slowly, late
    assert stage.cycle.once(Term()).spent_ms == (("observe", 0), ("plan", 250), ("remember", 0), ("apply", 40))


def test_one_that_came_to_nothing_tells_what_it_did_until_then(stage: Stage) -> None:
    def fails(_: Inputs) -> tuple[tuple[Decision, ...], Memory]:
        stage.world.now = Instant(stage.world.now + 250)
        raise BrokenInvariant("one action a subject")

    stage.decide = fails
    assert stage.cycle.once(Term()).spent_ms == (("observe", 0), ("plan", 250))


def test_whatever_planning_raises_the_cycle_says_so_and_leaves_the_cluster_alone(stage: Stage) -> None:
    def decide(_: Inputs) -> NoReturn:
        raise KeyError("n1")

    stage.decide = decide
    cycled = stage.cycle.once(Term())
    assert cycled.trouble == "planning failed because of a bug in reconciler: KeyError: 'n1'"
    assert cycled.wake_at is not None
    assert stage.published == [cycled]


def test_whatever_looking_raises_the_cycle_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "observe", lambda: NOTHING["nodes"])
    cycled = stage.cycle.once(Term())
    assert "failed because of a bug in reconciler: KeyError" in cycled.trouble
    assert stage.published == [cycled]


def test_a_publisher_that_raises_keeps_no_other_from_publishing(stage: Stage) -> None:
    class Broken:
        def publish(self, cycled: CycleResult) -> None:
            raise OverflowError("too large")

    cycle = Cycle(LoopDependencies(stage, stage, stage.memory, stage, stage, (Broken(), stage)))
    cycled = cycle.once(Term())
    assert len(stage.published) == 1
    assert cycled.unpublished == (
        "Broken did not publish and failed because of a bug in reconciler: OverflowError: too large",
    )


def test_what_is_reserved_is_read_for_each_plan(stage: Stage) -> None:
    states: list[PressureState | None] = [PressureState(), None]
    planned: list[Inputs] = []

    def decide(inputs: Inputs) -> tuple[tuple[Decision, ...], Memory]:
        planned.append(inputs)
        return (), inputs.memory

    stage.decide = decide
    parts = LoopDependencies(stage, stage, stage.memory, stage, stage, pressure=lambda: states.pop(0))
    cycle = Cycle(parts)
    cycle.once(Term())
    cycle.once(Term())
    stage.cycle.once(Term())
    assert [each.pressure for each in planned] == [PressureState(), None, None]


def test_where_what_is_reserved_cannot_be_told_nothing_is_done(stage: Stage) -> None:
    def broken() -> NoReturn:
        raise RuntimeError("the front is gone")

    stage.decide = lambda _: ((stage.annotate(),), MARK)
    cycle = Cycle(LoopDependencies(stage, stage, stage.memory, stage, stage, pressure=broken))
    assert "the front is gone" in cycle.once(Term()).trouble
    assert stage.said == []
