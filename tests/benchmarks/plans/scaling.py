"""Scales a fleet of a given size in a process of its own, and prints what that took: python -m ... NODES PODS POOLS."""

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from statistics import median

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Condition
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.planner import scaling
from tests.benchmarks.big_fleet import TYPES, BigFleet
from tests.benchmarks.plans.planning import observed

NOW = Instant(1_793_613_600_000)
ROUNDS = 20
HEARTBEATS = 100  # nodes and pods of which something is seen between two cycles of a busy cluster


def main(nodes: int, pods: int, pools: int) -> dict[str, float]:
    inputs = scene(nodes, pods, pools)
    seen = inputs.observed
    fleet = Fleet(seen)
    first_ms = timed(lambda: decided(inputs, fleet))
    gc.collect()
    gc.freeze()
    idle_ms = median(timed(lambda: decided(inputs, fleet)) for _ in range(ROUNDS))
    tracemalloc.start()
    decided(inputs, fleet)
    peak_kib = tracemalloc.get_traced_memory()[1] / 1024
    tracemalloc.stop()
    busy_ms = median(busy(inputs, fleet, HEARTBEATS) for _ in range(ROUNDS))
    cold_ms, waiting_ms = waiting(inputs, fleet)
    judged = {"idle_ms": idle_ms, "busy_ms": busy_ms, "waiting_ms": waiting_ms}
    # Of a process that has just started: the sums, and the what-if, are made for the first time.
    printed = {"first_not_judged_ms": first_ms, "cold_waiting_not_judged_ms": cold_ms}
    return {**{key: round(value, 2) for key, value in (judged | printed).items()}, "peak_kib": round(peak_kib, 1)}


def scene(nodes: int, pods: int, pools: int) -> Inputs:
    """A fleet at rest: every tenth node is empty, and marked, and waits for its time."""
    seen = observed(BigFleet(nodes=nodes, pods=pods, pools=pools), Desired("r", "prod"))
    empty = {node.name for node in sorted(seen.nodes, key=lambda each: (each.pool, each.name))[::10]}
    kept = tuple(pod for pod in seen.pods if pod.stays_with_its_node or pod.node not in empty)
    settled = tuple(_settled(node, node.name in empty) for node in seen.nodes)
    return Inputs(wished(pools), msgspec.structs.replace(seen, nodes=settled, pods=kept), NOW)


def _settled(node: Node, is_marked: bool) -> Node:
    metadata = msgspec.structs.replace(node.metadata, labels=node.metadata.labels | {names.PROVISIONER: node.pool})
    mark = NodeTaint(marks.KEY, marks.SOFT, marks.value_of(Instant(NOW + 1_800_000)))
    spec = msgspec.structs.replace(node.spec, taints=(*node.spec.taints, *([mark] if is_marked else [])))
    return msgspec.structs.replace(node, metadata=metadata, spec=spec)


def decided(inputs: Inputs, fleet: Fleet) -> Verdict:
    verdict = scaling(inputs, Draft(fleet, inputs.desired))
    if len(verdict.report(ScalingReport).sizes) != len(inputs.desired.provisioners):
        raise SystemExit("a provisioner has no size")
    return verdict


def busy(inputs: Inputs, fleet: Fleet, many: int) -> float:
    """A cycle in which so many nodes and pods were seen anew, the fleet's own following included."""
    seen = fleet.observed
    nodes = tuple(_anew(each) if at < many else each for at, each in enumerate(seen.nodes))
    pods = tuple(_anew_pod(each) if at < many else each for at, each in enumerate(seen.pods))
    after = msgspec.structs.replace(seen, nodes=nodes, pods=pods)

    def cycle() -> None:
        fleet.advance(after)
        decided(msgspec.structs.replace(inputs, observed=after), fleet)

    return timed(cycle)


def waiting(inputs: Inputs, fleet: Fleet) -> tuple[float, float]:
    """A cycle in which 200 pods find no place: the first, and one once the what-if is there."""
    stuck = Condition("PodScheduled", "False", "Unschedulable")
    pods = list(fleet.observed.pods)
    bound = [each for each in pods if each.node and not each.stays_with_its_node][:200]
    for number, each in enumerate(bound):
        metadata = msgspec.structs.replace(each.metadata, name=f"stuck-{number}", uid=f"stuck-{number}")
        status = msgspec.structs.replace(each.status, phase="Pending", conditions=(stuck,))
        spec = msgspec.structs.replace(each.spec, node_name="", node_selector={"karpenter.sh/nodepool": "pool-3"})
        pods.append(Pod(metadata, spec, status))
    after = msgspec.structs.replace(fleet.observed, pods=tuple(pods))
    fleet.advance(after)
    inputs = msgspec.structs.replace(inputs, observed=after)
    cold_ms = timed(lambda: decided(inputs, fleet))
    return cold_ms, median(timed(lambda: decided(inputs, fleet)) for _ in range(ROUNDS))


def timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


def wished(pools: int) -> Desired:
    origins = (("", Origin("policies.yaml", 1)),)
    spec = GpuPool(
        mode="Enforce",
        devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
        instance_types=[InstanceType(name=name) for name in TYPES],
        node_class_ref=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="gpu"),
    )
    declared = sorted(f"pool-{number}" for number in range(pools))
    return Desired(
        "r",
        "prod",
        pools=tuple(Declared("GpuPool", name, spec, origins) for name in declared),
        provisioners=tuple(Declared("NodeProvisioner", name, _provisioner(name), origins) for name in declared),
    )


def _provisioner(pool: str) -> NodeProvisioner:
    return NodeProvisioner(pool_name=pool, min_size=0, max_size=1_000, min_gpu_utilization_percent=100)


def _anew(node: Node) -> Node:
    return msgspec.structs.replace(node)


def _anew_pod(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod)


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
