"""The nearest changes that would make a node a drain candidate: a table by reason.

A change is simulated and candidates are evaluated again; the next obstacle is then removed in the same way. Only a
sequence that makes the node a candidate counts.
"""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.evaluation import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft
from reconciler.plan.drain.codes.blockers import (
    ANNOTATION_BLOCKERS,
    BeingDrained,
    ClusterAtMinimum,
    DrainFailedLately,
    DrainPoolUnready,
    FrozenNode,
    GangBudget,
    GangOfAnotherPolicy,
    GangStays,
    GangWithoutPlace,
    GpusLent,
    IsDestination,
    NodeEmpty,
    NodeEmptySuspended,
    NodeLost,
    NodeLostWithPod,
    NodeSettles,
    NotEvaluated,
    NotTried,
    OthersTurn,
    PodBudgetSpent,
    PodBudgetTaken,
    PodBudgetUnseen,
    PodControllerGone,
    PodDoNotDisrupt,
    PodLeavesSlowly,
    PodNotSafeToEvict,
    PodOfClaim,
    PodOfCustomController,
    PodPlaceUnknown,
    PodRunsToCompletion,
    PodSeveralBudgets,
    PodWithLocalStorage,
    PodWithoutController,
    PodWithoutPlace,
    PoolAtMinimum,
    ScaledDown,
    SmartPodStays,
    SystemPod,
    TooManyForGang,
    UtilizationTooHigh,
)
from reconciler.plan.drain.planner import drain
from reconciler.plan.nodes import ownership
from reconciler.plan.reasons import Declared
from reconciler.report.explain.counterfactuals import of_nodes, of_pods
from reconciler.report.explain.counterfactuals.edits import Change, EditRule, all_like, once_it_is_time, together

_MOST_CHANGES = 6  # more changes are not near; the same change of several pods counts once
_MOST_ROUNDS = 20

_SAFE = of_pods.with_annotations(f"carries {names.SAFE_TO_EVICT}: true", safe_to_evict="true")

# Counterfactual of each reason code.
EDIT_RULES: dict[Declared, EditRule] = {
    **{
        code: of_pods.with_annotations(f"does not carry {code.key}", **{code.field: ""}) for code in ANNOTATION_BLOCKERS
    },
    # Actions of others on the node
    ownership.DisruptedByKarpenter: of_nodes.without_taint(names.DISRUPTED, "Karpenter is not disrupting Node/{node}"),
    ownership.DriverUpgrade: of_nodes.driver_upgraded,
    ownership.CordonedByOthers: of_nodes.not_cordoned,
    FrozenNode: of_nodes.thawed,
    BeingDrained: of_nodes.without_taint(names.DRAINING),
    ScaledDown: of_nodes.without_taint(names.DELETION_TIME),
    OthersTurn: of_nodes.others_done,
    # The node itself
    NodeSettles: of_nodes.settled,
    ownership.NodeOptedOut: of_nodes.opted_in,
    NodeLost: of_nodes.ready,
    NodeLostWithPod: of_nodes.ready,
    PodLeavesSlowly: of_pods.gone,
    DrainFailedLately: once_it_is_time,
    GpusLent: of_nodes.nothing_lent,
    NodeEmpty: of_nodes.with_work,
    NodeEmptySuspended: of_nodes.with_work,
    DrainPoolUnready: of_nodes.more_ready,
    PoolAtMinimum: of_nodes.smaller_pool,
    ClusterAtMinimum: of_nodes.cluster_min,
    UtilizationTooHigh: of_nodes.threshold,
    IsDestination: of_pods.with_room,
    NotEvaluated: of_nodes.next_in_order,
    NotTried: of_pods.gone,
    # Its pods
    PodDoNotDisrupt: of_pods.with_annotations(f"does not carry {names.DO_NOT_DISRUPT}", do_not_disrupt=""),
    PodRunsToCompletion: of_pods.with_annotations("is not marked as run-to-completion", safe_to_evict=""),
    PodNotSafeToEvict: of_pods.with_annotations("is not marked as unsafe to evict", safe_to_evict=""),
    SmartPodStays: of_pods.gone,
    GangStays: of_pods.no_gang,
    GangBudget: of_pods.budget_opened,
    GangWithoutPlace: of_pods.with_room,
    TooManyForGang: of_nodes.more_at_once,
    GangOfAnotherPolicy: of_pods.no_gang,
    PodOfClaim: of_pods.with_annotations("belongs to no GpuClaim", claim=""),
    PodWithoutController: _SAFE,
    PodOfCustomController: _SAFE,
    PodControllerGone: _SAFE,
    PodWithLocalStorage: _SAFE,
    SystemPod: _SAFE,
    PodPlaceUnknown: of_pods.gone,
    PodSeveralBudgets: of_pods.one_budget,
    PodBudgetUnseen: of_pods.budget_opened,
    PodBudgetSpent: of_pods.budget_opened,
    PodBudgetTaken: of_pods.budget_opened,
    PodWithoutPlace: of_pods.with_room,
}


def flipped(inputs: Inputs, weighed: DrainEligibility) -> tuple[Inputs | None, tuple[Change, ...]]:
    """Inputs with which the node is a candidate, and the changes; None if it never becomes one."""
    changes: list[Change] = []
    current: DrainEligibility | None = weighed
    for _ in range(_MOST_ROUNDS):
        if current is None or current.is_candidate or len(together(changes)) >= _MOST_CHANGES:
            break
        before = len(changes)
        for reason in all_like(inputs, current):
            line = EDIT_RULES.get(type(reason.facts))
            edit = line(inputs, msgspec.structs.replace(current, reason=reason)) if line is not None else None
            if edit is not None:
                inputs = edit.inputs
                changes.append(edit.change)
        if len(changes) == before:
            return None, together(changes)
        current = weighed_again(inputs, weighed.node)
    is_one = bool(changes) and current is not None and current.is_candidate
    return (inputs if is_one else None), together(changes)


def weighed_again(inputs: Inputs, node: str) -> DrainEligibility | None:
    """Drain eligibility of the node with these inputs."""
    verdict = drain(inputs, Draft(Fleet(inputs.observed), inputs.desired))
    return next((each for each in verdict.weighed if each.node == node), None)
