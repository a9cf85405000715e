"""A guard names the cluster it is for: in any other, nothing is done to what it guards."""

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.model.policy.change_guard import ChangeGuard
from reconciler.plan.guards.reasons import WrongCluster, guard_ref

_SHOWN = 8  # of a uid; enough to tell two apart, as a rule


class GuardClusterMessages(msgspec.Struct, frozen=True):
    """What a plan must say of them."""

    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def of_another_cluster(inputs: Inputs, pool: str) -> Reason | None:
    """Why nothing may be done here for the pool; nothing when no guard of it is for another cluster."""
    for guard in inputs.desired.guards:
        if {"*", pool} & set(guard.spec.pool_names) and is_elsewhere(inputs, guard):
            wanted, found = _uids(inputs, guard)
            facts = WrongCluster(guard=guard_ref(guard.name), wanted=wanted, found=found)
            return Reason(facts, guard.origin("spec.clusterUID"))
    return None


def guard_cluster_messages(inputs: Inputs) -> GuardClusterMessages:
    """Of each that is not suspended."""
    warnings, notices = [], []
    for guard in inputs.desired.guards:
        if guard.spec.suspend:
            continue
        title = f"ChangeGuard/{guard.name}"
        if is_elsewhere(inputs, guard):
            wanted, found = _uids(inputs, guard)
            where = "here" if "*" in guard.spec.pool_names else f"here to {', '.join(sorted(guard.spec.pool_names))}"
            warnings.append(f"{title} is for cluster {wanted}, this is {found}: nothing would be done {where}")
        elif guard.spec.cluster_uid and not inputs.observed.cluster_uid:
            notices.append(f"{title} is for cluster {guard.spec.cluster_uid[:_SHOWN]}, and which this is is not known")
    return GuardClusterMessages(tuple(warnings), tuple(notices))


def is_elsewhere(inputs: Inputs, guard: Declared[ChangeGuard]) -> bool:
    """Whether the guard is for another cluster than this."""
    wanted, found = guard.spec.cluster_uid, inputs.observed.cluster_uid
    return not guard.spec.suspend and bool(wanted and found) and wanted != found


def _uids(inputs: Inputs, guard: Declared[ChangeGuard]) -> tuple[str, str]:
    """As short as they still differ."""
    wanted, found = guard.spec.cluster_uid or "", inputs.observed.cluster_uid
    short = wanted[:_SHOWN], found[:_SHOWN]
    return short if short[0] != short[1] else (wanted, found)
