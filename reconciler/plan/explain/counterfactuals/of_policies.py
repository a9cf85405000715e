"""Changes of policies by which a node would become a candidate."""

from typing import Any

from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.quantity import Quantity
from reconciler.plan.drain.codes.blockers import TooManyForGang
from reconciler.plan.drain.codes.eligibility import ClusterAtMinimum, PoolAtMinimum, UtilizationTooHigh
from reconciler.plan.drain.codes.figures import Floor
from reconciler.plan.explain.counterfactuals.change import (
    ClusterMinLowered,
    ParallelismRaised,
    ProvisionerRemoved,
    SizeField,
    SizeLowered,
    ThresholdRaised,
)
from reconciler.plan.explain.counterfactuals.edits import Counterfactual, replace, with_policy
from reconciler.plan.explain.counterfactuals.of_pods import less_work
from reconciler.plan.sizes_by_time import provisioners_now


def threshold(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """The lowest threshold that the usage does not exceed. A node that has none of the resource loses pods instead."""
    facts = weighed.reason.facts
    if not isinstance(facts, UtilizationTooHigh):
        return None
    percent = -(-100 * facts.used // facts.total) if facts.total else 101
    if percent > 100:
        return less_work(inputs, weighed)
    after = with_policy(inputs, "drains", weighed.policy, utilization_threshold_percent=percent)
    return Counterfactual(after, ThresholdRaised(weighed.policy, percent))


def cluster_min(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Every policy that wants more than that: the largest clusterMin of all holds for every node."""
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
    return Counterfactual(after, ClusterMinLowered(tuple(names), resource, str(left))) if names else None


def more_at_once(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """As many as go together."""
    policy = next((each for each in inputs.desired.drains if each.name == weighed.policy), None)
    facts = weighed.reason.facts
    if policy is None or not isinstance(facts, TooManyForGang):
        return None
    nodes = facts.nodes
    all_of_them = max(nodes, policy.spec.max_scale_down_parallelism)
    wider = {"max_drain_parallelism": nodes, "max_scale_down_parallelism": all_of_them}
    after = with_policy(inputs, "drains", weighed.policy, **wider)
    return Counterfactual(after, ParallelismRaised(weighed.policy, nodes))


def smaller_pool(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """By what its NodeProvisioner says; where no figure of that does it, there would have to be none."""
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
        return Counterfactual(after, ProvisionerRemoved(name))
    without_schedules = bool(wish.spec.schedules and fields.keys() & {"min_size", "warm_nodes"})
    others: dict[str, Any] = {"schedules": []} if without_schedules else {}
    after = with_policy(inputs, "provisioners", name, **fields, **others)
    return Counterfactual(after, SizeLowered(name, tuple(fields.items()), without_schedules))


def _lower(wish: NodeProvisioner, floor: Floor, wanted: int) -> dict[SizeField, int] | None:
    """The figures by which no more than so many nodes are kept (see floor_of); nothing where none does it."""
    used, total, each = floor.gpus_used, floor.gpus_total, floor.gpus_per_node
    if not each or wanted < 0:
        return None
    fields: dict[SizeField, int] = {}
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
