"""Nodes, policies, elastic pods and agents for the pressure desk."""

from typing import Any

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import ContainerStatus, Pod, ResourceRequirements
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.policy.scaling import Pressure, PressurePolicy
from reconciler.model.quantity import Percent, Quantity
from reconciler.protocol.asks import AskAnswer, AskMessage, PodName, Refusal, read_ask
from reconciler.protocol.permits import PermitKeys
from reconciler.protocol.pressure_desk import PressureDesk
from tests import builders

TEAM, POOL = "team", "cpus"
NOW = Instant(1_000_000)


def node(name: str, cpu: str = "16", memory: str = "64Gi", pool: str = POOL) -> Node:
    return builders.node(name, has={"cpu": cpu, "memory": memory}, labels={names.POOL: pool})


def policy(
    name: str = "watch",
    *,
    system: str = "1",
    watermark: str = "80%",
    unit: str = "250m",
    mem_unit: str = "1Gi",
    pools: tuple[str, ...] = (POOL,),
    **fields: Any,
) -> Declared[PressurePolicy]:
    resources = {
        "cpu": Pressure(system=Quantity.parse(system), watermark=Percent.parse(watermark)),
        "memory": Pressure(system=Quantity.parse("4Gi"), watermark=Percent.parse(watermark)),
    }
    units = {"cpu": Quantity.parse(unit), "memory": Quantity.parse(mem_unit)}
    spec = PressurePolicy(pool_names=list(pools), resources=resources, compute_unit=units, **fields)
    return Declared("PressurePolicy", name, spec, ())


def elastic(
    name: str,
    node_name: str,
    cpu: str = "2",
    memory: str = "4Gi",
    bounds: str = "cpu=250m..8,memory=1Gi..32Gi",
    has: dict[str, str] | None = None,
    **fields: Any,
) -> Pod:
    """`has`: what the kubelet has given the running container, if it differs from the requests."""
    built = builders.pod(name, asks={"cpu": cpu, "memory": memory})
    statuses: tuple[ContainerStatus, ...] = ()
    if has is not None:
        statuses = (ContainerStatus(resources=ResourceRequirements(has), allocated_resources=has),)
    annotations = Annotations(elastic=bounds)
    fields = {"scheduler_name": names.GPU_SCHEDULER, "container_statuses": statuses, **fields}
    fields = {"annotations": annotations, "node_name": node_name, "namespace": TEAM, **fields}
    return builders.pod(name, containers=built.spec.containers, **fields)


class Agent:
    """Asks for its pod, and remembers its last permit and compute unit."""

    def __init__(self, desk: PressureDesk, name: str, version: int = 2) -> None:
        self.desk, self.name, self.version = desk, PodName(TEAM, name), version
        self.permit: dict[str, int] = {}
        self.unit: dict[str, int] | None = None
        self.token = ""

    def ask(self, *, is_lost: bool = False, uid: str = "", **resources: Any) -> AskAnswer | Refusal:
        message = AskMessage(
            proto_version=self.version,
            pod=self.name,
            resources=resources,
            compute_unit=dict(self.unit) if self.unit is not None else None,
            permit_token=self.token,
            metrics={"loadAvg1M": 0.5},
        )
        ask = read_ask(message)
        if isinstance(ask, Refusal):
            return ask
        answer = self.desk.ask(ask, NOW, uid)
        if isinstance(answer, Refusal):
            self.unit = answer.compute_unit or self.unit
        if isinstance(answer, AskAnswer) and not is_lost:
            self.permit |= answer.permit
            self.unit, self.token = answer.compute_unit, answer.permit_token
        return answer


def leading(*objects: Node | Pod, policies: tuple[Declared[PressurePolicy], ...] = ()) -> PressureDesk:
    """A desk that has just begun to lead."""
    desk = PressureDesk()
    desk.keys = PermitKeys((b"key",))
    desk.set_policies(policies or (policy(),))
    for each in objects:
        desk.put_node(each) if isinstance(each, Node) else desk.put_pod(each)
    desk.begin_term(1)
    return desk
