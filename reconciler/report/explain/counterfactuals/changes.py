"""The nearest changes that would make a node a drain candidate: a table by reason.

A change is simulated and candidates are evaluated again; the next obstacle is then removed in the same way. Only a
sequence that makes the node a candidate counts.
"""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.evaluation import DrainEligibility, DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft
from reconciler.plan.drain.codes import blockers
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
        code: of_pods.with_annotations(f"does not carry {code.key}", **{code.field: ""})
        for code in blockers.ANNOTATION_BLOCKERS
    },
    # Actions of others on the node
    ownership.DisruptedByKarpenter: of_nodes.without_taint(names.DISRUPTED, "Karpenter is not disrupting Node/{node}"),
    ownership.DriverUpgrade: of_nodes.driver_upgraded,
    ownership.CordonedByOthers: of_nodes.not_cordoned,
    blockers.FrozenNode: of_nodes.thawed,
    blockers.BeingDrained: of_nodes.without_taint(names.DRAINING),
    blockers.ScaledDown: of_nodes.without_taint(names.DELETION_TIME),
    blockers.OthersTurn: of_nodes.others_done,
    # The node itself
    blockers.NodeSettles: of_nodes.settled,
    ownership.NodeOptedOut: of_nodes.opted_in,
    blockers.NodeLost: of_nodes.ready,
    blockers.NodeLostWithPod: of_nodes.ready,
    blockers.PodLeavesSlowly: of_pods.gone,
    blockers.DrainFailedLately: once_it_is_time,
    blockers.GpusLent: of_nodes.nothing_lent,
    blockers.NodeEmpty: of_nodes.with_work,
    blockers.NodeEmptySuspended: of_nodes.with_work,
    blockers.DrainPoolUnready: of_nodes.more_ready,
    blockers.PoolAtMinimum: of_nodes.smaller_pool,
    blockers.ClusterAtMinimum: of_nodes.cluster_min,
    blockers.UtilizationTooHigh: of_nodes.threshold,
    blockers.IsDestination: of_pods.with_room,
    blockers.NotEvaluated: of_nodes.next_in_order,
    blockers.NotTried: of_pods.gone,
    # Its pods
    blockers.PodDoNotDisrupt: of_pods.with_annotations(f"does not carry {names.DO_NOT_DISRUPT}", do_not_disrupt=""),
    blockers.PodRunsToCompletion: of_pods.with_annotations("is not marked as run-to-completion", safe_to_evict=""),
    blockers.PodNotSafeToEvict: of_pods.with_annotations("is not marked as unsafe to evict", safe_to_evict=""),
    blockers.SmartPodStays: of_pods.gone,
    blockers.GangStays: of_pods.no_gang,
    blockers.GangBudget: of_pods.budget_opened,
    blockers.GangWithoutPlace: of_pods.with_room,
    blockers.TooManyForGang: of_nodes.more_at_once,
    blockers.GangOfAnotherPolicy: of_pods.no_gang,
    blockers.PodOfClaim: of_pods.with_annotations("belongs to no GpuClaim", claim=""),
    blockers.PodWithoutController: _SAFE,
    blockers.PodOfCustomController: _SAFE,
    blockers.PodControllerGone: _SAFE,
    blockers.PodWithLocalStorage: _SAFE,
    blockers.SystemPod: _SAFE,
    blockers.PodPlaceUnknown: of_pods.gone,
    blockers.PodSeveralBudgets: of_pods.one_budget,
    blockers.PodBudgetUnseen: of_pods.budget_opened,
    blockers.PodBudgetSpent: of_pods.budget_opened,
    blockers.PodBudgetTaken: of_pods.budget_opened,
    blockers.PodWithoutPlace: of_pods.with_room,
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
    return next((each for each in verdict.report(DrainReport).weighed if each.node == node), None)
