"""Changes of nodes and of policies, and actions of others, that would make a node a drain candidate."""

from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.evaluation import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.quantity import Quantity
from reconciler.plan import sums
from reconciler.plan.drain.codes.blockers import (
    ClusterAtMinimum,
    DrainPoolUnready,
    FrozenNode,
    OthersTurn,
    PoolAtMinimum,
    TooManyForGang,
    UtilizationTooHigh,
)
from reconciler.plan.drain.codes.words import Floor
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.nodes.ownership import NodeOptedOut
from reconciler.plan.windows import provisioners_now
from reconciler.report.explain.counterfactuals.edits import (
    RUNNING,
    Counterfactual,
    EditRule,
    annotated,
    made_ready,
    once_it_is_time,
    replace,
    with_node,
    with_observed,
    with_policy,
)
from reconciler.report.explain.counterfactuals.of_pods import less_work

_FIELDS = {each.name: each.encode_name for each in msgspec.structs.fields(NodeProvisioner)}
_ANNOTATIONS = {names.SCALE_DOWN_DISABLED: "scale_down_disabled", names.DO_NOT_DISRUPT: "do_not_disrupt"}


def without_taint(key: str, clause: str = "the taint {key} of Node/{node} is removed") -> EditRule:
    def untainted(node: Node) -> Node:
        taints = tuple(each for each in node.spec.taints if each.key != key)
        return replace(node, spec=replace(node.spec, taints=taints))

    def line(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
        after = with_node(inputs, weighed.node, untainted)
        return Counterfactual(after, clause.format(key=key, node=weighed.node))

    return line


def settled(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """The startup taint must be removed first: the settling time begins then."""
    node = next(each for each in inputs.observed.nodes if each.name == weighed.node)
    if node.taint(names.ARRIVING) is not None:
        return without_taint(names.ARRIVING)(inputs, weighed)
    return once_it_is_time(inputs, weighed)


def not_cordoned(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    after = with_node(inputs, weighed.node, lambda node: replace(node, spec=replace(node.spec, unschedulable=False)))
    return Counterfactual(after, f"Node/{weighed.node} is not cordoned")


def driver_upgraded(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    def done(node: Node) -> Node:
        labels = {**node.metadata.labels, names.UPGRADE_STATE: "upgrade-done"}
        return replace(node, metadata=replace(node.metadata, labels=labels))

    return Counterfactual(with_node(inputs, weighed.node, done), f"the driver of Node/{weighed.node} is upgraded")


def opted_in(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    opted_out = weighed.reason.facts
    if not isinstance(opted_out, NodeOptedOut):
        return None
    field = _ANNOTATIONS[opted_out.key]
    after = with_node(inputs, weighed.node, lambda node: annotated(node, **{field: ""}))
    return Counterfactual(after, f"Node/{weighed.node} does not carry {opted_out.key}: {opted_out.value}")


def thawed(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Removes the freeze of a suspended pool, of everything, of a pool or a guard, or of a node."""
    facts = weighed.reason.facts
    if not isinstance(facts, FrozenNode):
        return None
    if facts.until is None:
        after = with_policy(inputs, "pools", weighed.pool, suspend=False)
        return Counterfactual(after, f"GpuPool/{weighed.pool} is not suspended")
    observed = inputs.observed
    fleet = Fleet(observed)
    before = Freezes(inputs, fleet).of_node(weighed.node)
    if before is None:
        return None
    own = tuple(annotated(each, frozen_until="") for each in observed.namespaces)
    everything = with_observed(inputs, namespaces=own)
    if Freezes(everything, fleet).of_node(weighed.node) != before:
        return Counterfactual(everything, "not everything is frozen")
    thaw = "not everything is frozen" if before.scope.kind == "everything" else f"{before.scope.words} is not frozen"
    pools = tuple(map(_thawed, observed.node_pools))
    policies = tuple(_thawed(each) if each.kind in {"GpuPool", "ChangeGuard"} else each for each in observed.policies)
    wide = with_observed(inputs, node_pools=pools, policies=policies)
    if Freezes(wide, fleet).of_node(weighed.node) != before:
        return Counterfactual(wide, thaw)
    after = with_node(inputs, weighed.node, lambda node: annotated(node, frozen_until=""))
    return Counterfactual(after, thaw)


def _thawed(whole: Unstructured) -> Unstructured:
    left = {key: text for key, text in whole.metadata.annotations.items() if key != names.FROZEN_UNTIL}
    return replace(whole, metadata=replace(whole.metadata, annotations=left))


def nothing_lent(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    def is_of_it(owners: tuple[OwnerReference, ...]) -> bool:
        return any(each.kind == "Node" and each.name == weighed.node for each in owners)

    left = tuple(each for each in inputs.observed.leases if not is_of_it(each.metadata.owner_references))
    return Counterfactual(with_observed(inputs, leases=left), f"no GPU of Node/{weighed.node} is lent")


def with_work(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """A pod without requests and with an owner that would recreate it."""
    owner = OwnerReference("ReplicaSet", "some", "some", controller=True)
    metadata = Metadata("some", "default", f"some-on-{weighed.node}", owner_references=(owner,))
    pods = (*inputs.observed.pods, Pod(metadata, PodSpec(weighed.node), RUNNING))
    return Counterfactual(with_observed(inputs, pods=pods), f"a movable pod runs on Node/{weighed.node}")


def more_ready(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """As many ready nodes as needed to allow drains again."""
    facts = weighed.reason.facts
    if not isinstance(facts, DrainPoolUnready):
        return None
    size, unready = facts.size, facts.unready
    wanted = next(count for count in range(unready + 1) if not sums.is_on(size, unready - count))
    of_pool = [each for each in inputs.observed.nodes if each.pool == weighed.pool and not each.is_ready]
    names_of = {each.name for each in of_pool[:wanted]}
    after = tuple(made_ready(each) if each.name in names_of else each for each in inputs.observed.nodes)
    return Counterfactual(with_observed(inputs, nodes=after), f"{wanted} more nodes of {weighed.pool} are ready")


def ready(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    return Counterfactual(with_node(inputs, weighed.node, made_ready), f"Node/{weighed.node} is ready")


def next_in_order(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """This many nodes are evaluated in each plan, and the next plan begins with the first that was skipped."""
    drained = replace(inputs.memory.drained, begin_at=weighed.node)
    after = replace(inputs, memory=replace(inputs.memory, drained=drained))
    return Counterfactual(after, "the node is evaluated in one of the next plans")


def others_done(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    facts = weighed.reason.facts
    if not isinstance(facts, OthersTurn):
        return None
    return Counterfactual(inputs, f"{facts.planner} has finished with the node, in the next plan")


# --- Changes of policies that would make a node a drain candidate.


def threshold(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """The lowest threshold that its utilization does not exceed. A node without the resource loses pods instead."""
    facts = weighed.reason.facts
    if not isinstance(facts, UtilizationTooHigh):
        return None
    percent = -(-100 * facts.used // facts.total) if facts.total else 101
    if percent > 100:
        return less_work(inputs, weighed)
    after = with_policy(inputs, "drains", weighed.policy, utilization_threshold_percent=percent)
    return Counterfactual(after, f"utilizationThresholdPercent of DrainPolicy/{weighed.policy} is {percent} or more")


def cluster_min(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Every policy that requires more: the largest clusterMin applies to every node."""
    facts = weighed.reason.facts
    if not isinstance(facts, ClusterAtMinimum):
        return None
    resource, left = facts.resource, Quantity.parse(facts.left)
    after, names = inputs, list[str]()
    for policy in sorted(inputs.desired.drains, key=lambda each: each.name):
        least = policy.spec.cluster_min.get(resource)
        if not policy.spec.suspend and least is not None and least.milli > left.milli:
            lower = {**policy.spec.cluster_min, resource: left}
            after = with_policy(after, "drains", policy.name, cluster_min=lower)
            names.append(policy.name)
    of = " and of ".join(f"DrainPolicy/{each}" for each in names)
    return Counterfactual(after, f"clusterMin of {of} requires {left} of {resource} or less") if names else None


def more_at_once(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """As many nodes as must be drained together."""
    policy = next((each for each in inputs.desired.drains if each.name == weighed.policy), None)
    facts = weighed.reason.facts
    if policy is None or not isinstance(facts, TooManyForGang):
        return None
    nodes = facts.nodes
    all_of_them = max(nodes, policy.spec.max_scale_down_parallelism)
    wider = {"max_drain_parallelism": nodes, "max_scale_down_parallelism": all_of_them}
    after = with_policy(inputs, "drains", weighed.policy, **wider)
    return Counterfactual(after, f"maxDrainParallelism of DrainPolicy/{weighed.policy} is {nodes} or more")


def smaller_pool(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Lower sizes in the NodeProvisioner; if no size suffices, no NodeProvisioner."""
    facts = weighed.reason.facts
    if not isinstance(facts, PoolAtMinimum):
        return None
    wanted, name = facts.size - facts.leaving - 1, facts.provisioner.name
    wish = next((each for each in provisioners_now(inputs) if each.name == name), None)
    if wish is None:
        return None
    fields = _lower(wish.spec, facts.floor, wanted)
    if fields is None:
        left = tuple(each for each in inputs.desired.provisioners if each.name != name)
        after = replace(inputs, desired=replace(inputs.desired, provisioners=left))
        return Counterfactual(after, f"there is no NodeProvisioner/{name}")
    without_schedules = bool(wish.spec.schedules and fields.keys() & {"min_size", "warm_nodes"})
    others: dict[str, Any] = {"schedules": []} if without_schedules else {}
    after = with_policy(inputs, "provisioners", name, **fields, **others)
    clauses = [
        f"{_FIELDS[field]} of NodeProvisioner/{name} is {value} or "
        f"{'more' if field == 'min_gpu_utilization_percent' else 'less'}"
        for field, value in fields.items()
    ]
    clauses += ["no schedule requires more"] if without_schedules else []
    return Counterfactual(after, " and ".join(clauses))


def _lower(wish: NodeProvisioner, floor: Floor, wanted: int) -> dict[str, int] | None:
    """Sizes that keep at most this many nodes (see floor_of); empty if there are none."""
    used, total, each = floor.gpus_used, floor.gpus_total, floor.gpus_per_node
    if not each or wanted < 0:
        return None
    fields: dict[str, int] = {}
    percent = wish.min_gpu_utilization_percent
    enough = max(percent, 100 * used // total + 1, 100 * used // ((wanted + 1) * each) + 1)
    if enough > percent:
        fields["min_gpu_utilization_percent"] = enough
    packed = floor.packed
    spare = max(0, wanted - packed - floor.closed)
    if floor.with_spare(wish.min_unutilized_gpu_nodes) > wanted:
        fields["min_unutilized_gpu_nodes"] = spare
    if floor.with_spare(wish.warm_nodes) > wanted:
        fields["warm_nodes"] = spare
    if wish.min_size > wanted:
        fields["min_size"] = wanted
    return fields if enough <= 100 and packed <= wanted else None
