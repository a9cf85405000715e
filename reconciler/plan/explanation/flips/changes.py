"""The nearest change that would make a node a candidate for a drain, and what else stands behind it: a table by reason.

The change is made, in thought, and candidates are looked for again; what stands in the way then is lifted in its turn.
Only what, all of it done, makes the node a candidate is told.
"""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.weighed import Weighed
from reconciler.plan import removal
from reconciler.plan.draft import Draft
from reconciler.plan.drain import reasons
from reconciler.plan.drain.planner import drain
from reconciler.plan.explanation.flips import of_nodes, of_pods, of_policies
from reconciler.plan.explanation.flips.alike import all_like, together
from reconciler.plan.explanation.flips.edits import Edit, Line, once_it_is

_MOST_EDITS = 6  # what takes more is not near; the same done to several pods counts once
_MOST_ROUNDS = 20

_SAFE = of_pods.with_annotations("carries cluster-autoscaler.kubernetes.io/safe-to-evict: true", safe_to_evict="true")

LINES: dict[str, Line] = {
    # What others do with it
    removal.DisruptedByKarpenter.__name__: of_nodes.without_taint(names.DISRUPTED, "Karpenter does not disrupt {node}"),
    removal.DriverUpgrade.__name__: of_nodes.driver_upgraded,
    removal.CordonedByOthers.__name__: of_nodes.not_cordoned,
    reasons.FROZEN_NODE.code: of_nodes.thawed,
    reasons.BEING_DRAINED.code: of_nodes.without_taint(
        names.DRAINING, f"the taint {names.DRAINING} of {{node}} is taken off"
    ),
    reasons.SCALED_DOWN.code: of_nodes.without_taint(
        names.DELETION_TIME, f"the taint {names.DELETION_TIME} of {{node}} is taken off"
    ),
    reasons.OTHERS_TURN.code: of_nodes.others_done,
    # The node itself
    reasons.JUST_CAME.code: of_nodes.settled,
    removal.NodeOptedOut.__name__: of_nodes.opted_in,
    reasons.LOST.code: of_nodes.ready,
    reasons.LOST_WITH_POD.code: of_nodes.ready,
    reasons.LEAVES_SLOWLY.code: of_pods.gone,
    reasons.SET_BACK.code: once_it_is("until"),
    reasons.LENT.code: of_nodes.nothing_lent,
    reasons.EMPTY.code: of_nodes.with_work,
    reasons.EMPTY_SUSPENDED.code: of_nodes.with_work,
    reasons.POOL_UNREADY.code: of_nodes.more_ready,
    reasons.AT_MINIMUM.code: of_policies.smaller_pool,
    reasons.CLUSTER_AT_MINIMUM.code: of_policies.cluster_min,
    reasons.TOO_MUCH_USED.code: of_policies.threshold,
    reasons.DESTINATION.code: of_pods.with_room,
    reasons.NOT_EVALUATED.code: of_nodes.its_turn,
    reasons.NOT_TRIED.code: of_pods.gone,
    # Its pods
    reasons.DO_NOT_DISRUPT_POD.code: of_pods.with_annotations(
        "does not carry karpenter.sh/do-not-disrupt", do_not_disrupt=""
    ),
    reasons.TO_COMPLETION.code: of_pods.with_annotations("does not say that it runs to completion", safe_to_evict=""),
    reasons.NOT_SAFE_TO_EVICT.code: of_pods.with_annotations(
        "does not say that it is not safe to evict", safe_to_evict=""
    ),
    reasons.SMART_POD.code: of_pods.gone,
    reasons.GANG.code: of_pods.no_gang,
    reasons.GANG_BUDGET.code: of_pods.budget_opened,
    reasons.GANG_NO_PLACE.code: of_pods.with_room,
    reasons.CREW_FULL.code: of_policies.more_at_once,
    reasons.CREW_ELSEWHERE.code: of_pods.no_gang,
    reasons.CLAIM.code: of_pods.with_annotations("is of no GpuClaim", claim=""),
    reasons.NO_CONTROLLER.code: _SAFE,
    reasons.CUSTOM_CONTROLLER.code: _SAFE,
    reasons.CONTROLLER_GONE.code: _SAFE,
    reasons.LOCAL_STORAGE.code: _SAFE,
    reasons.SYSTEM_POD.code: _SAFE,
    reasons.PLACE_UNKNOWN.code: of_pods.gone,
    reasons.SEVERAL_BUDGETS.code: of_pods.one_budget,
    reasons.BUDGET_UNSEEN.code: of_pods.budget_opened,
    reasons.BUDGET_SPENT.code: of_pods.budget_opened,
    reasons.BUDGET_TAKEN.code: of_pods.budget_opened,
    reasons.NO_PLACE.code: of_pods.with_room,
}


def changes_of(inputs: Inputs, weighed: Weighed) -> str:
    """One sentence: what would have to be otherwise; nothing where nothing near would do."""
    after, told = flipped(inputs, weighed)
    return " and ".join(told) if after is not None else ""


def flipped(inputs: Inputs, weighed: Weighed) -> tuple[Inputs | None, list[str]]:
    """The inputs with which it is a candidate, and what was changed; None where it is none for all that."""
    edits: list[Edit] = []
    current: Weighed | None = weighed
    for _ in range(_MOST_ROUNDS):
        if current is None or current.is_candidate or len(together(edits)) >= _MOST_EDITS:
            break
        before = len(edits)
        for reason in all_like(inputs, current):
            edit = _edit(inputs, msgspec.structs.replace(current, reason=reason))
            if edit is not None:
                inputs = edit.inputs
                edits.append(edit)
        if len(edits) == before:
            return None, together(edits)
        current = weighed_again(inputs, weighed.node)
    is_one = bool(edits) and current is not None and current.is_candidate
    return (inputs if is_one else None), together(edits)


def _edit(inputs: Inputs, weighed: Weighed) -> Edit | None:
    line = LINES.get(weighed.reason.code)
    return line(inputs, weighed) if line is not None else None


def weighed_again(inputs: Inputs, node: str) -> Weighed | None:
    """What the node is found to be with these inputs."""
    verdict = drain(inputs, Draft(Fleet(inputs.observed), inputs.desired))
    return next((each for each in verdict.weighed if each.node == node), None)
