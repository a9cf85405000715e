"""Emptying a node: whom Karpenter evicts next, and whom it waits for."""

from collections.abc import Sequence

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.action import Ref
from reconciler.plan.karpenter.outlook import outlasts_the_drain
from reconciler.plan.nodes.eviction import FOREVER, stays_until
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.lifecycle import BY

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_DEFAULT_GRACE_SECONDS = 30
_STUCK_MS = 60_000  # so long after its end a pod is no longer waited for
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 10_000


class TerminationDrain:
    """Owner of how far one node is."""

    def __init__(self, began: Instant) -> None:
        self.began = began
        self.wait_ms = _FIRST_WAIT_MS  # until an eviction that was refused is asked for again
        self.next_look: Instant | None = None
        self.is_over = False


def drain(known: Knowledge, node: str, ends_at: Instant | None, state: TerminationDrain) -> Instant | None:
    """Evicts who may go; when to look again, or None: nobody is waited for any more."""
    now = known.now
    waiting = [pod for pod in known.pods.on(node) if _is_waited_for(pod, now)]
    again = [_delete_in_time(known, pod, ends_at) for pod in waiting if ends_at is not None]
    group = min((_group(pod) for pod in waiting), default=0)
    first = [pod for pod in waiting if _group(pod) == group and not pod.metadata.leaving]
    if _evict(known, first):
        again.append(Instant(now + state.wait_ms))
        state.wait_ms = min(2 * state.wait_ms, _LONGEST_WAIT_MS)
    again += [until for pod in first if now < (until := stays_until(pod)) < FOREVER]
    again += [Instant(instant(pod.metadata.deletion_timestamp) + _STUCK_MS + 1) for pod in waiting if _leaves(pod)]
    return min((each for each in again if each > now), default=FOREVER) if waiting else None


def _evict(known: Knowledge, pods: Sequence[Pod]) -> bool:
    """Whether somebody has to be asked again."""
    is_refused = False
    for pod in pods:
        if stays_until(pod) <= known.now:
            is_refused |= known.world.evict(_ref(pod), BY).result != "done"
    return is_refused


def _delete_in_time(known: Knowledge, pod: Pod, ends_at: Instant) -> Instant:
    """Deleted such that it still has its whole grace, or what is left of it; when that is."""
    requested = pod.spec.termination_grace_period_seconds
    grace_ms = 1000 * (_DEFAULT_GRACE_SECONDS if requested is None else requested)
    due = Instant(ends_at - grace_ms)
    if due <= known.now and not pod.metadata.leaving:
        known.world.delete(_ref(pod), BY, max(1, (ends_at - known.now) // 1000))
    return due


def _is_waited_for(pod: Pod, now: Instant) -> bool:
    if pod.is_finished or outlasts_the_drain(pod) or pod.metadata.annotations.mirror_pod:
        return False
    return not (_leaves(pod) and now > instant(pod.metadata.deletion_timestamp) + _STUCK_MS)


def _group(pod: Pod) -> int:
    """Those that matter to the node itself go last."""
    return 2 * (pod.spec.priority_class_name in _CRITICAL) + pod.is_daemon_or_mirror


def _leaves(pod: Pod) -> bool:
    return pod.metadata.leaving


def _ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name)
