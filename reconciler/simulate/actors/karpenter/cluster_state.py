"""Owner of all that an imagined Karpenter has in mind; kept up to date with each write."""

import msgspec

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.instant import Instant
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import Cloud
from reconciler.simulate.actors.karpenter.machines import Machines
from reconciler.simulate.actors.karpenter.node_pools import NodePools
from reconciler.simulate.actors.karpenter.pods import Pods
from reconciler.simulate.actors.karpenter.timing import Timing
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.stage import Stage

_KINDS = ("NodePool", "NodeClaim", "Node", "Pod", "PodDisruptionBudget")


class Knowledge:
    """What it sees, and what it remembers."""

    def __init__(self, stage: Stage, cloud: Cloud, timing: Timing) -> None:
        self.stage = stage
        self.world = stage.world
        self.cloud = cloud
        self.timing = timing
        self.machines = Machines()
        self.pods = Pods(lambda name: self.world.read_object(("Pod", *name)))
        self.pools = NodePools(tuple(cloud.types.values()))
        self.budgets_version = 0
        self._budgets: PodBudgets | None = None
        for kind in _KINDS:
            for body in self.world.of(kind):
                metadata = body["metadata"]
                self._note(ObjectWrite((kind, metadata.get("namespace", ""), metadata["name"]), None, body))
        self.world.subscribe(self._note, *_KINDS)

    @property
    def now(self) -> Instant:
        return self.stage.now

    def snapshot(self) -> Snapshot:
        return self.stage.snapshot()

    def budgets(self) -> PodBudgets:
        """The PodDisruptionBudgets as they stand."""
        if self._budgets is None:
            self._budgets = PodBudgets(self.stage.world.observe().budgets)
        return self._budgets

    def daemons(self) -> list[Pod]:
        """A pod of each DaemonSet, as it would come to a new node."""
        return [_daemon(each) for each in self.world.of("DaemonSet")]

    def stamp(self) -> tuple[int, ...]:
        """Another whenever pods might find another place than before."""
        return self.machines.version, self.pools.version, self.cloud.version, self.pods.moved, self.budgets_version

    def _note(self, written: ObjectWrite) -> None:
        kind, name = written.key[0], written.key[2]
        if kind == "Pod":
            self.pods.take(written, self.now)
        elif kind == "Node":
            self.machines.take_node(name, written.after)
            if written.after is None:
                self.pods.forget(name)
        elif kind == "NodeClaim":
            self.machines.take_claim(name, written.after)
        elif kind == "NodePool":
            self.pools.take(name, written.after)
        elif kind == "PodDisruptionBudget":
            self.budgets_version += 1
            self._budgets = None


def _daemon(body: Object) -> Pod:
    template = (body.get("spec") or {}).get("template") or {}
    metadata = body["metadata"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    spec = msgspec.convert(template.get("spec") or {}, PodSpec)
    return Pod(Metadata(metadata["name"], metadata.get("namespace", ""), labels=labels), spec)
