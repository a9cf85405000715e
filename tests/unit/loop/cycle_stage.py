"""A world, a memory and what is decided, plugged into one cycle of the loop."""

from collections.abc import Callable, Iterator
from typing import Any

from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.loop.cycle import Cycle, LoopDependencies
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Annotate, Decision, Preconditions, Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.ports import Wished
from reconciler.simulate.world import World
from tests.unit.kube.configmap_server import ConfigMaps
from tests.unit.plan.some_reasons import some_reason

NOW = Instant(1_795_000_000_000)
DESIRED = Desired("4c1f9e2", "prod")
MARK = Memory((DisruptionRecord(NOW, "Node", "n1"),))


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
        self.published: list[CycleResult] = []
        self.wished = Wished(DESIRED)
        self.decide: Callable[[Inputs], tuple[tuple[Decision, ...], Memory]] = lambda inputs: ((), inputs.memory)
        self.node = self.world.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        self.world.on_write = lambda ref: self.said.append(f"wrote {ref.title}")
        self.memory = ConfigMapMemory(self.server, names.OWN_NAMESPACE)
        self.cycle = Cycle(LoopDependencies(self, self, self.memory, self, self, (self,)))

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
        raise AssertionError("waiting is not supported")

    def publish(self, cycled: CycleResult) -> None:
        self.published.append(cycled)

    def remembered(self) -> tuple[DisruptionRecord, ...]:
        return ConfigMapMemory(self.server, names.OWN_NAMESPACE).load().memory.marks

    def annotate(self, subject: Ref | None = None) -> Decision:
        """As a planner would, from what is seen."""
        subject = subject or self.node
        (node,) = [each for each in self.world.observe().nodes if each.name == subject.name]
        presumes = Preconditions(resource_version=node.metadata.resource_version)
        act = Annotate(annotations=((f"{names.OURS}purpose", "1"),), presumes=presumes)
        return Decision("test", subject, act, some_reason("Missing"))

    def lacks(self, decision: Decision) -> bool:
        """Whether the annotation is not there."""
        return not self.annotation(decision.subject)

    def annotation(self, subject: Ref | None = None) -> str | None:
        node = self.world.get(subject or self.node)
        assert node
        found: str | None = node["metadata"].get("annotations", {}).get(f"{names.OURS}purpose")
        return found
