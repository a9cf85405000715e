"""Nothing that runs is taken away: the rules about deletions and evictions."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.protocol.presumed import Object
from reconciler.simulate.checkers.checker import Ground, goes, is_ours
from reconciler.simulate.objects import Written


class BusyNodes:
    """A node is deleted only when nothing that counts is on it."""

    rule = "no node with a pod that counts is deleted by us"
    kinds = ("Node",)

    def wrote(self, written: Written, ground: Ground) -> Iterator[str]:
        if is_ours(written) and goes(written):
            name = written.key[2]
            if number := ground.where.counting_on(name):
                first = next(each for each in ground.where.pods_on(name) if ground.where.pods[each].counts)
                more = f" and {number - 1} more" if number > 1 else ""
                yield f"Node/{name} is deleted with {'/'.join(first)}{more} on it"


class Claims:
    """NodeClaims are Karpenter's."""

    rule = "no NodeClaim is made or deleted by us"
    kinds = ("NodeClaim",)

    def wrote(self, written: Written, ground: Ground) -> Iterator[str]:
        if is_ours(written) and (written.before is None or goes(written)):
            yield f"NodeClaim/{written.key[2]} is {'made' if written.before is None else 'deleted'}"


class ProtectedPods:
    """Whoever says that a pod must not be disrupted is heard."""

    rule = "no pod that says so is disrupted by us"
    kinds = ("Pod",)

    def wrote(self, written: Written, ground: Ground) -> Iterator[str]:
        if not is_ours(written) or not goes(written) or written.before is None:
            return
        title = "/".join(part for part in written.key if part)
        if why := _why_protected(written.before):
            yield f"{title} is made to go although {why}"


def _why_protected(pod: Object) -> str:
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    if phase in {"Succeeded", "Failed"} or not (pod.get("spec") or {}).get("nodeName"):
        return ""
    if names.COMPONENT in (metadata.get("labels") or {}):  # what we made ourselves is nobody's work
        return ""
    annotations = metadata.get("annotations") or {}
    if annotations.get(names.DO_NOT_DISRUPT) == "true":
        return f"it carries {names.DO_NOT_DISRUPT}"
    if (said := annotations.get(names.SAFE_TO_EVICT)) in {"false", "on-completion"}:
        return f"it carries {names.SAFE_TO_EVICT}={said}"
    return ""
