"""A small imagined cluster with a Karpenter, a scheduler and kubelets; nothing there but NodePools."""

from typing import Any

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.builtin_controllers import Collector
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.actors.karpenter.machines import Timing
from reconciler.simulate.actors.kubelets import Kubelets
from reconciler.simulate.actors.scheduler import Scheduler
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests.lab.capacity import NodePool
from tests.lab.fleet import Pod
from tests.stages.buying.purchases import START, market

Object = dict[str, Any]
AT_ONCE = {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": []}}
ONE_BY_ONE = {"disruption": {**AT_ONCE["disruption"], "budgets": [{"nodes": "1"}]}}


class Site:
    """Owner of the stage."""

    def __init__(self, *pools: NodePool, timing: Timing | None = None) -> None:
        self.engine = Engine(1, START)
        self.world = World(START)
        self.stage = Stage(self.engine, self.world)
        self.events: list[tuple[int, str]] = []
        self.engine.listeners.append(lambda what: self.events.append((self.engine.now, what)))
        for pool in pools:
            self.world.put(pool.manifest())
        self.karpenter = Karpenter(market(), timing)
        for actor in (Workloads(), Scheduler(), Kubelets(), Collector(), self.karpenter):
            actor.start(self.stage)

    def put(self, *pods: Pod) -> None:
        for pod in pods:
            self.world.put({**pod.manifest(), "status": {"phase": "Pending"}})

    def keep(self, pod: Pod, count: int) -> None:
        """So many of them, whatever becomes of each."""
        labels = {"app": pod.name}
        spec = pod.manifest()["spec"]
        template = {"metadata": {"labels": labels}, "spec": spec}
        made = {"replicas": count, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": pod.name, "namespace": "default"}
        self.world.put({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": made})

    def run(self, seconds: int) -> None:
        self.engine.run(Instant(self.engine.now + 1000 * seconds))

    def claims(self) -> list[Object]:
        return list(self.world.of("NodeClaim"))

    def nodes(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.world.of("Node")]

    def drift(self, pool: str) -> None:
        patch = {"spec": {"template": {"metadata": {"labels": {"team": "other"}}}}}
        self.world.edit(Ref("NodePool", "", pool), patch)


def labelled(site: Site, key: str) -> list[str]:
    return [each["metadata"]["labels"][key] for each in site.claims()]
