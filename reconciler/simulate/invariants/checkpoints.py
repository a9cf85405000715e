"""A pod that asks for time to save its work has it."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.quantity import Duration
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_ours, policy_of
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS
from reconciler.simulate.objects import ObjectWrite

_LONGEST_MS = 86_400_000


class SavedFirst:
    """It was told when it goes, and that has come, or it has said since that it saved its work."""

    rule = "no pod that asks for time to save its work is evicted by us before it has"
    kinds = ("Pod",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        pod = written.before
        if pod is None or not is_ours(written) or not goes(written):
            return
        annotations = pod["metadata"].get("annotations") or {}
        asked, phase = annotations.get(names.CHECKPOINT), (pod.get("status") or {}).get("phase")
        if not asked or phase != "Running" or _is_daemon(pod) or not _may_wait(pod, context):
            return
        if why := _too_early(annotations, context.now(), _length_ms(asked)):
            yield f"Pod/{written.key[1]}/{written.key[2]} is made to go although {why}"


def _may_wait(pod: Object, context: InvariantContext) -> bool:
    """Whether its policy gives it any time, and that it runs could be known for a minute."""
    observed = context.where.nodes.get((pod.get("spec") or {}).get("nodeName", ""))
    policy = policy_of(observed.pool, context) if observed is not None else None
    started = _moment((pod.get("status") or {}).get("startTime", ""))
    is_known = started is None or context.now() - started >= OBSERVED_WITHIN_MS
    return is_known and (policy is None or policy.spec.max_graceful_termination_seconds > 0)


def _is_daemon(pod: Object) -> bool:
    if (pod["metadata"].get("annotations") or {}).get(names.DAEMONSET_POD) == "true":
        return True
    return any(each.get("kind") == "DaemonSet" for each in pod["metadata"].get("ownerReferences") or ())


def _too_early(annotations: dict[str, str], now: Instant, length_ms: int) -> str:
    evict_at, saved = _moment(annotations.get(names.EVICT_AT, "")), _moment(annotations.get(names.CHECKPOINTED_AT, ""))
    if evict_at is None:
        return "it was not told to save its work"
    # It may have been given less than it asks for, and was told no later than now; seconds are enough for both.
    told_since = min(evict_at - length_ms, now) - 1_000
    is_right = evict_at <= now or (saved is not None and saved >= told_since)
    return "" if is_right else f"it has until {timestamp(evict_at)} to save its work"


def _length_ms(requested: str) -> int:
    """What can't be read may be given any length."""
    try:
        return Duration.parse(requested).milliseconds
    except ValueError:
        return _LONGEST_MS


def _moment(written: str) -> Instant | None:
    try:
        return instant(written) if written else None
    except ValueError:
        return None
