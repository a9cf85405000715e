"""Changes of nodes, and of what others do with them, by which a node would become a candidate."""

from collections.abc import Callable

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, PodSpec, PodStatus
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.drain.codes.eligibility import DrainPoolUnready, FrozenNode, OthersTurn
from reconciler.plan.explain.counterfactuals.change import (
    Change,
    DriverUpgraded,
    GpusReturned,
    NodeReady,
    NodesReady,
    NodeUncordoned,
    OptOutRemoved,
    PlannerDone,
    PodArrives,
    PoolResumed,
    TaintRemoved,
    Thawed,
    TurnComes,
)
from reconciler.plan.explain.counterfactuals.edits import (
    Counterfactual,
    EditRule,
    annotated,
    once_it_is_time,
    replace,
    untainted,
    with_node,
    with_observed,
    with_policy,
)
from reconciler.plan.guards.frozen import Freezes, FreezeScope
from reconciler.plan.nodes.ownership import NodeOptedOut
from reconciler.plan.sums import brake

_ANNOTATIONS = {names.SCALE_DOWN_DISABLED: "scale_down_disabled", names.DO_NOT_DISRUPT: "do_not_disrupt"}


def without_taint(key: str, change: Callable[[str], Change] | None = None) -> EditRule:
    def line(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
        after = with_node(inputs, weighed.node, lambda node: untainted(node, key))
        return Counterfactual(after, change(weighed.node) if change is not None else TaintRemoved(weighed.node, key))

    return line


def settled(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Its startup taint has to go first: until then time does not count."""
    node = next(each for each in inputs.observed.nodes if each.name == weighed.node)
    if node.taint(names.ARRIVING) is not None:
        return without_taint(names.ARRIVING)(inputs, weighed)
    return once_it_is_time(inputs, weighed)


def not_cordoned(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    after = with_node(inputs, weighed.node, lambda node: replace(node, spec=replace(node.spec, unschedulable=False)))
    return Counterfactual(after, NodeUncordoned(weighed.node))


def driver_upgraded(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    def done(node: Node) -> Node:
        labels = {**node.metadata.labels, names.UPGRADE_STATE: "upgrade-done"}
        return replace(node, metadata=replace(node.metadata, labels=labels))

    return Counterfactual(with_node(inputs, weighed.node, done), DriverUpgraded(weighed.node))


def opted_in(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    opted_out = weighed.reason.facts
    if not isinstance(opted_out, NodeOptedOut):
        return None
    field = _ANNOTATIONS[opted_out.key]
    after = with_node(inputs, weighed.node, lambda node: annotated(node, **{field: ""}))
    return Counterfactual(after, OptOutRemoved(weighed.node, opted_out.key, opted_out.value))


def thawed(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Whatever the freeze sits on: a suspended pool, everything, a pool or a guard, or a node."""
    facts = weighed.reason.facts
    if not isinstance(facts, FrozenNode):
        return None
    if facts.until is None:
        after = with_policy(inputs, "pools", weighed.pool, suspend=False)
        return Counterfactual(after, PoolResumed(weighed.pool))
    observed = inputs.observed
    fleet = Fleet(observed)
    before = Freezes(inputs, fleet).of_node(weighed.node)
    if before is None:
        return None
    own = tuple(annotated(each, frozen_until="") for each in observed.namespaces)
    everything = with_observed(inputs, namespaces=own)
    if Freezes(everything, fleet).of_node(weighed.node) != before:
        return Counterfactual(everything, Thawed(FreezeScope("everything")))
    pools = tuple(map(_thawed, observed.node_pools))
    policies = tuple(_thawed(each) if each.kind in {"GpuPool", "ChangeGuard"} else each for each in observed.policies)
    wide = with_observed(inputs, node_pools=pools, policies=policies)
    if Freezes(wide, fleet).of_node(weighed.node) != before:
        return Counterfactual(wide, Thawed(before.scope))
    after = with_node(inputs, weighed.node, lambda node: annotated(node, frozen_until=""))
    return Counterfactual(after, Thawed(before.scope))


def _thawed(whole: Unstructured) -> Unstructured:
    left = {key: text for key, text in whole.metadata.annotations.items() if key != names.FROZEN_UNTIL}
    return replace(whole, metadata=replace(whole.metadata, annotations=left))


def nothing_lent(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    def is_of_it(owners: tuple[OwnerReference, ...]) -> bool:
        return any(each.kind == "Node" and each.name == weighed.node for each in owners)

    left = tuple(each for each in inputs.observed.leases if not is_of_it(each.metadata.owner_references))
    return Counterfactual(with_observed(inputs, leases=left), GpusReturned(weighed.node))


def with_work(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Something that asks for nothing, and that somebody would make anew."""
    owner = OwnerReference("ReplicaSet", "some", "some", controller=True)
    metadata = Metadata("some", "default", f"some-on-{weighed.node}", owner_references=(owner,))
    running = PodStatus("Running", conditions=(Condition("Ready", "True"),))
    pods = (*inputs.observed.pods, Pod(metadata, PodSpec(weighed.node), running))
    return Counterfactual(with_observed(inputs, pods=pods), PodArrives(weighed.node))


def more_ready(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """As many as it takes to let go of the brake."""
    facts = weighed.reason.facts
    if not isinstance(facts, DrainPoolUnready):
        return None
    size, unready = facts.size, facts.unready
    wanted = next(count for count in range(unready + 1) if not brake.is_on(size, unready - count))
    of_pool = [each for each in inputs.observed.nodes if each.pool == weighed.pool and not each.is_ready]
    names_of = {each.name for each in of_pool[:wanted]}
    after = tuple(_ready(each) if each.name in names_of else each for each in inputs.observed.nodes)
    return Counterfactual(with_observed(inputs, nodes=after), NodesReady(weighed.pool, wanted))


def ready(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    return Counterfactual(with_node(inputs, weighed.node, _ready), NodeReady(weighed.node))


def _ready(node: Node) -> Node:
    conditions = (replace(each, status="True") if each.type == "Ready" else each for each in node.status.conditions)
    return replace(node, status=replace(node.status, conditions=tuple(conditions)))


def next_in_order(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """So many are tried in any case, and the next plan begins with the first that was left out."""
    drained = replace(inputs.memory.drained, begin_at=weighed.node)
    after = replace(inputs, memory=replace(inputs.memory, drained=drained))
    return Counterfactual(after, TurnComes())


def others_done(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    facts = weighed.reason.facts
    return Counterfactual(inputs, PlannerDone(facts.planner)) if isinstance(facts, OthersTurn) else None
