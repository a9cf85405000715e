"""A pod that asks for time to save its work has it."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.quantity import Duration
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_ours, policy_of
from reconciler.simulate.invariants.ownership import SEEN_WITHIN_MS
from reconciler.simulate.objects import Written

_LONGEST_MS = 86_400_000


class SavedFirst:
    """It was told when it goes, and that has come, or it has said since that it saved its work."""

    rule = "no pod that asks for time to save its work is evicted by us before it has"
    kinds = ("Pod",)

    def wrote(self, written: Written, ground: InvariantContext) -> Iterator[str]:
        pod = written.before
        if pod is None or not is_ours(written) or not goes(written):
            return
        annotations = pod["metadata"].get("annotations") or {}
        asked, phase = annotations.get(names.CHECKPOINT), (pod.get("status") or {}).get("phase")
        if not asked or phase != "Running" or _is_daemon(pod) or not _may_wait(pod, ground):
            return
        if why := _too_early(annotations, ground.now(), _length_ms(asked)):
            yield f"Pod/{written.key[1]}/{written.key[2]} is made to go although {why}"


def _may_wait(pod: Object, ground: InvariantContext) -> bool:
    """Whether its policy gives it any time, and that it runs could be known for a minute."""
    seen = ground.where.nodes.get((pod.get("spec") or {}).get("nodeName", ""))
    policy = policy_of(seen.pool, ground) if seen is not None else None
    started = _moment((pod.get("status") or {}).get("startTime", ""))
    is_known = started is None or ground.now() - started >= SEEN_WITHIN_MS
    return is_known and (policy is None or policy.spec.max_graceful_termination_seconds > 0)


def _is_daemon(pod: Object) -> bool:
    if (pod["metadata"].get("annotations") or {}).get(names.DAEMONSET_POD) == "true":
        return True
    return any(each.get("kind") == "DaemonSet" for each in pod["metadata"].get("ownerReferences") or ())


def _too_early(annotations: dict[str, str], now: Instant, length_ms: int) -> str:
    told, saved = _moment(annotations.get(names.EVICT_AT, "")), _moment(annotations.get(names.CHECKPOINTED_AT, ""))
    if told is None:
        return "it was not told to save its work"
    # It may have been given less than it asks for, and was told no later than now; seconds are enough for both.
    told_since = min(told - length_ms, now) - 1_000
    is_right = told <= now or (saved is not None and saved >= told_since)
    return "" if is_right else f"it has until {timestamp(told)} to save its work"


def _length_ms(asked: str) -> int:
    """What can't be read may be given any length."""
    try:
        return Duration.parse(asked).milliseconds
    except ValueError:
        return _LONGEST_MS


def _moment(written: str) -> Instant | None:
    try:
        return instant(written) if written else None
    except ValueError:
        return None
