"""The fleets of which nodes are to go, as a planner sees them amid a drain: policies, budgets, and timers that run."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import BudgetSpec, BudgetStatus, PodDisruptionBudget, Workload, WorkloadSpec
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.drain.marks import soft
from tests.benchmarks.draining.drained_fleets import FLEETS

NOW = Instant(1_793_613_600_000)
CAME = timestamp(Instant(NOW - 86_400_000))
BUDGETS = 500
A_SECOND = 200  # timers that began at the same second: so many are put on in one plan
POOLS = 4


def first_inputs(kind: str, nodes: int) -> Inputs:
    """Nobody is a candidate yet."""
    seen = FLEETS[kind](nodes)
    pods = seen.pods if kind == "diverse" else tuple(_in_applications(seen.pods))
    observed = msgspec.structs.replace(
        seen,
        nodes=tuple(map(_ready, seen.nodes)),
        pods=pods,
        budgets=tuple(_budgets(pods)),
        workloads=tuple(_controllers(pods)),
    )
    return Inputs(wished(), observed, NOW)


def next_inputs(inputs: Inputs, planned: Plan) -> Inputs:
    """What follows once all candidates of that plan bear their taints: half of the timers have run out."""
    candidates = [each.node for each in planned.report(DrainReport).weighed if each.is_candidate]
    since = {name: Instant(NOW - 1_000 * _age(at, len(candidates))) for at, name in enumerate(candidates)}
    nodes = tuple(_tainted(each, since[each.name]) if each.name in since else each for each in inputs.observed.nodes)
    observed = msgspec.structs.replace(inputs.observed, nodes=nodes)
    return msgspec.structs.replace(inputs, observed=observed, hints=planned.hints)


def _age(at: int, many: int) -> int:
    """In seconds: as many came to be candidates in one plan as get their taint in one, and the oldest first."""
    return 1_200 - 1_200 * (at // A_SECOND) // max(1, many // A_SECOND)


def wished() -> Desired:
    """All that a node has may be asked for: each node is tried, as in the fleet's own question."""
    origins = (("", Origin("policies.yaml", 1)),)
    spec = GpuPool(
        mode="Enforce",
        devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
        instance_types=[InstanceType(name="p4d.24xlarge")],
        node_class_ref=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="gpu"),
    )
    policy = DrainPolicy(
        pool_names=["*"],
        utilization_threshold_percent=100,
        max_drain_parallelism=10,
        max_scale_down_parallelism=20,
    )
    pools = tuple(Declared("GpuPool", f"pool-{number}", spec, origins) for number in range(POOLS))
    return Desired("r", "prod", pools=pools, drains=(Declared("DrainPolicy", "drains", policy, origins),))


def _in_applications(pods: tuple[Pod, ...]) -> Iterator[Pod]:
    """As many applications as there are budgets, of pods that follow each other."""
    size = -(-len(pods) // BUDGETS)
    for number, pod in enumerate(pods):
        name = f"application-{number // size}"
        owners = tuple(msgspec.structs.replace(each, name=name, uid=name) for each in pod.metadata.owner_references)
        metadata = msgspec.structs.replace(pod.metadata, labels={"app": name}, owner_references=owners)
        yield msgspec.structs.replace(pod, metadata=metadata)


def _budgets(pods: tuple[Pod, ...]) -> Iterator[PodDisruptionBudget]:
    """One for each application; all of its pods may be away, so that as much has to be found out as without."""
    for app, count in sorted(Counter(pod.metadata.labels["app"] for pod in pods).items()):
        spec = BudgetSpec(max_unavailable=count, selector=LabelSelector({"app": app}))
        status = BudgetStatus(count, count, 0, count, observed_generation=1)
        yield PodDisruptionBudget(Metadata(app, "default", generation=1), spec, status)


def _controllers(pods: tuple[Pod, ...]) -> Iterator[Workload]:
    """Of all pods: one whose controller does not exist would keep its node."""
    counts = Counter(owner for pod in pods if (owner := pod.metadata.controller) is not None)
    for owner, count in sorted(counts.items(), key=lambda each: each[0].uid):
        yield Workload(Metadata(owner.name, "default", owner.uid), owner.kind, WorkloadSpec(replicas=count))


def _ready(node: Node) -> Node:
    metadata = msgspec.structs.replace(node.metadata, creation_timestamp=CAME)
    status = msgspec.structs.replace(node.status, conditions=(Condition("Ready", "True", last_transition_time=CAME),))
    return msgspec.structs.replace(node, metadata=metadata, status=status)


def _tainted(node: Node, since: Instant) -> Node:
    mark = soft(since)
    taint = NodeTaint(names.DRAIN_CANDIDATE, mark.effect, mark.value or "")
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=(*node.spec.taints, taint)))
