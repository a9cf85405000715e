"""The loop's step: what comes before what, what holds back what, and what is not sent twice."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from reconciler.kube.memory_store import HEAD, ConfigMapMemory
from reconciler.loop import Cycle, Parts
from reconciler.model import names
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Annotate, Hold, Presumes, Ref
from reconciler.model.planned.cycled import Cycled
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.mark import Mark
from reconciler.model.planned.memory import Hints, Memory
from reconciler.model.planned.plan import Plan
from reconciler.model.planned.reason import Reason
from reconciler.model.problem import Problem
from reconciler.plan.check import BrokenInvariant
from reconciler.ports import Unavailable, Wished
from reconciler.simulate.world import World
from tests.unit.configmap_server import ConfigMaps, broken_connection

NOW = Instant(1_795_000_000_000)
DESIRED = Desired("4c1f9e2", "prod")


class Term:
    """A Fence; `holds_for` so many questions."""

    def __init__(self, holds_for: int = 1 << 30) -> None:
        self.left = holds_for

    def holds(self) -> bool:
        self.left -= 1
        return self.left >= 0


class Stage:
    """Owner of a world, a memory and what is decided: the parts of one cycle, and what they did in which order."""

    def __init__(self) -> None:
        self.world = World(NOW)
        self.server = ConfigMaps()
        self.said: list[str] = []
        self.published: list[Cycled] = []
        self.wished = Wished(DESIRED)
        self.decide: Callable[[Inputs], tuple[tuple[Decision, ...], Memory]] = lambda inputs: ((), inputs.memory)
        self.node = self.world.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        self.world.on_write = lambda ref: self.said.append(f"wrote {ref.title}")
        self.memory = ConfigMapMemory(self.server, names.OWN_NAMESPACE)
        self.cycle = Cycle(Parts(self, self, self.memory, self, self, (self,)))

    # The ports that are not the real thing.

    def wish(self, cluster_uid: str) -> Wished:
        return self.wished

    def observe(self) -> Observed:
        return self.world.observe()

    def apply(self, decisions: Any, fence: Any) -> Iterator[Any]:
        self.said.append(f"apply with memory {len(self.remembered())}")
        yield from self.world.apply(decisions, fence)

    def plan(self, inputs: Inputs) -> Plan:
        decisions, memory = self.decide(inputs)
        return Plan("sha256:0", decisions, (), memory, Hints(), None)

    def now(self) -> Instant:
        return self.world.now

    def wait(self, until: Instant | None) -> None:
        raise AssertionError("a step never waits")

    def publish(self, cycled: Cycled) -> None:
        self.published.append(cycled)

    def remembered(self) -> tuple[Mark, ...]:
        return ConfigMapMemory(self.server, names.OWN_NAMESPACE).load().memory.marks

    def annotate(self, subject: Ref | None = None) -> Decision:
        """As a planner would, from what is seen."""
        subject = subject or self.node
        (node,) = [each for each in self.world.observe().nodes if each.name == subject.name]
        presumes = Presumes(resource_version=node.metadata.resource_version)
        act = Annotate(annotations=((f"{names.OURS}purpose", "1"),), presumes=presumes)
        return Decision("test", subject, act, Reason("Missing"))

    def lacks(self, decision: Decision) -> bool:
        """Whether the annotation is not there."""
        return not self.annotation(decision.subject)

    def annotation(self, subject: Ref | None = None) -> str | None:
        node = self.world.get(subject or self.node)
        assert node
        found: str | None = node["metadata"].get("annotations", {}).get(f"{names.OURS}purpose")
        return found


@pytest.fixture
def stage() -> Stage:
    return Stage()


MARK = Memory((Mark(NOW, "Node", "n1"),))


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
    assert "the memory could not be written, and nothing is done without it" in cycled.trouble
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
    other.save(Memory((Mark(NOW, "Node", "other"),)), other.load())
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


def test_policies_that_turn_bad_are_told_and_the_good_ones_go_on(stage: Stage) -> None:
    stage.decide = lambda inputs: ((stage.annotate(),), inputs.memory)
    problem = Problem("a.yaml", 1, 1, "RC101", "not an object")
    stage.wished = Wished(None, (problem,))
    cycled = stage.cycle.once(Term())
    assert (cycled.inputs, cycled.problems) == (None, (problem,))
    assert "no good policies" in cycled.trouble
    stage.wished = Wished(DESIRED, (problem,))
    cycled = stage.cycle.once(Term())
    assert (cycled.trouble, cycled.problems) == ("", (problem,))
    assert stage.annotation() == "1"


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
    stage.decide = lambda inputs: (tuple(each for each in map(stage.annotate, nodes) if stage.lacks(each)), MARK)
    stage.cycle = Cycle(Parts(stage, stage, stage.memory, stage, stage, most_at_once=2))
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
    stage.decide = lambda inputs: ((behind, stage.annotate(second), stage.annotate(third)), inputs.memory)
    stage.cycle = Cycle(Parts(stage, stage, stage.memory, stage, stage, most_at_once=2))
    fence = Term()
    assert [each.subject.name for each in stage.cycle.once(fence).outcomes] == ["b", "c"]
    assert [(each.subject.name, each.result) for each in stage.cycle.once(fence).outcomes] == [("a", "done")]


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
