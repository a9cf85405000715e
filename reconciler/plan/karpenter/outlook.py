"""What is ahead of one node once Karpenter is to take it away: what has to move, what is in the way, how long it takes.

By Karpenter's own rules: a pod that is finished or leaving holds nothing up; a DaemonSet's pod never has to move, yet
its do-not-disrupt or its PodDisruptionBudget stands in the way of the node like any other's; and what pods hold up is
bounded by the terminationGracePeriod of the NodeClaim (not by that of the NodePool, which may have been edited since),
while the annotation of the node itself holds without bound.
"""

import msgspec

from reconciler.fleet.gpu_requests import GpuRequests
from reconciler.model import names
from reconciler.model.cluster.pod import Pod, Toleration
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Hindrance
from reconciler.plan.karpenter.survey import Surveyed
from reconciler.plan.nodes.eviction import FOREVER, EvictionCandidate, EvictionObstacle, PodBudgets, stays_until
from reconciler.plan.sums.cost import MachineType

# What the API server fills in where a pod says nothing.
_DEFAULT_GRACE_SECONDS = 30


class NodeOutlook(msgspec.Struct, frozen=True, gc=False):
    """One node, or a NodeClaim whose node has not appeared yet."""

    name: str
    machine: MachineType | None  # None: nothing was bought yet
    gpus: int
    gpus_in_use: int
    pods: int  # that have to move
    leaving: bool  # someone is taking it away already
    kept: bool  # it is annotated itself: Karpenter does not begin
    held_by: tuple[Hindrance, ...]  # what stands in the way of its pods
    stalls: bool  # with no end known
    wait_seconds: int  # until Karpenter may begin
    drain_seconds: int  # from then on, until its pods are gone


class _EvictionDelay(msgspec.Struct, frozen=True, gc=False):
    by: frozenset[Hindrance]
    until: Instant  # FOREVER: no end is known


def outlook(surveyed_node: Surveyed, budgets: PodBudgets, gpu_requests: GpuRequests) -> NodeOutlook:
    """What is ahead of it."""
    moving = moving_pods(surveyed_node)
    held = _held(surveyed_node, budgets)
    bound = surveyed_node.bound_seconds
    grace = max((_grace_seconds(pod) for pod in moving), default=0)
    endless = held.until == FOREVER
    wait = 0 if endless else max(0, -((surveyed_node.now - held.until) // 1000))
    # Where there is a bound Karpenter begins at once, and waits for the pods until then.
    begins_in = wait if bound is None else 0
    drains_in = grace if bound is None else bound if endless else min(bound, wait + grace)
    gpus = surveyed_node.gpus
    return NodeOutlook(
        name=surveyed_node.name,
        machine=surveyed_node.machine,
        gpus=gpus,
        gpus_in_use=min(gpus, sum(map(gpu_requests.of, moving))),
        pods=len(moving),
        leaving=surveyed_node.is_leaving,
        kept=surveyed_node.is_kept,
        held_by=tuple(sorted(held.by)),
        stalls=endless and bound is None,
        wait_seconds=begins_in,
        drain_seconds=drains_in,
    )


def held_by(surveyed_node: Surveyed, budgets: PodBudgets) -> frozenset[Hindrance]:
    """Whatever keeps pods on it."""
    return _held(surveyed_node, budgets).by


def moving_pods(surveyed_node: Surveyed) -> list[Pod]:
    """The pods that need another place once it goes."""
    return [pod for pod in surveyed_node.pods if pod.is_reschedulable and not _goes_by_itself(pod)]


def _held(surveyed_node: Surveyed, budgets: PodBudgets) -> _EvictionDelay:
    by: set[Hindrance] = set()
    until = Instant(0)
    for pod in surveyed_node.pods:
        candidate = EvictionCandidate(pod, budgets.of(pod), surveyed_node.now)
        why = candidate.why_not
        if why is None or (why is not EvictionObstacle.DO_NOT_DISRUPT and outlasts_the_drain(pod)):
            continue
        by.update(candidate.held_by(why))
        until = max(until, stays_until(pod) if why is EvictionObstacle.DO_NOT_DISRUPT else FOREVER)
    return _EvictionDelay(frozenset(by), until)


def _goes_by_itself(pod: Pod) -> bool:
    """A leaving pod needs no new place, but a StatefulSet's does: only once it is gone another takes its name."""
    if not pod.metadata.leaving:
        return False
    owner = pod.metadata.controller
    return owner is None or owner.kind != "StatefulSet"


def outlasts_the_drain(pod: Pod) -> bool:
    """Karpenter never evicts a pod that tolerates the taint which it drains a node by, so no budget is asked."""
    return any(_tolerates_the_drain(each) for each in pod.spec.tolerations)


def _tolerates_the_drain(toleration: Toleration) -> bool:
    exists = toleration.operator == "Exists"
    return (
        toleration.effect in {"", "NoSchedule"}
        and (toleration.key == names.DISRUPTED if toleration.key else exists)
        and (exists or not toleration.value)
    )


def _grace_seconds(pod: Pod) -> int:
    given = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_SECONDS if given is None else given
