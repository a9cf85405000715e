"""Owner of the pods as Karpenter keeps them in mind: those on each node, and those that no node would take."""

from collections.abc import Callable, Iterable

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import ObjectWrite

Name = tuple[str, str]  # namespace, name

_ENDED = frozenset({"Succeeded", "Failed"})
_TIED = frozenset({"DaemonSet", "Node"})


class Pods:
    """Told of each write."""

    def __init__(self, read: Callable[[Name], Pod | None]) -> None:
        """`read` tells of a pod as it stands."""
        self._read = read
        self.waiting: dict[Name, Object] = {}
        self.moved = 0  # another whenever a pod came to a node or left one
        self._on: dict[str, dict[Name, Object]] = {}
        self._stirred: dict[str, Instant] = {}
        self.busy: dict[str, int] = {}  # nodes with pods that certainly have to move once they go, and how many

    def take(self, written: ObjectWrite, now: Instant) -> str:
        """The node that it is on, or was."""
        name, before, after = written.key[1:], written.before, written.after
        was_on, is_on = _node(before), _node(after)
        self.waiting.pop(name, None)
        self._count(was_on, before, -1)
        self._count(is_on, after, 1)
        if was_on and (was_on != is_on or after is None):
            self._leave(was_on, name)
            self.moved += 1
        if after is None:
            return was_on
        if is_on:
            self._on.setdefault(is_on, {})[name] = after
            self.moved += not was_on
            if not is_tied(after) and (not was_on or _is_over(after) != _is_over(before)):
                self._stirred[is_on] = now
        elif is_unschedulable(after):
            self.waiting[name] = after
        return is_on

    def on(self, node: str) -> list[Pod]:
        """By namespace and name; finished ones too."""
        found = self._on.get(node)
        return self._in_order(found) if found else []

    def waiting_read(self) -> list[Pod]:
        """By namespace and name."""
        return self._in_order(self.waiting)

    def stirred(self, node: str) -> Instant:
        """When a pod last came, ended or began to leave there; 0: never."""
        return self._stirred.get(node, Instant(0))

    def forget(self, node: str) -> None:
        """The node is gone."""
        self._stirred.pop(node, None)

    def _leave(self, node: str, name: Name) -> None:
        found = self._on.get(node, {})
        found.pop(name, None)
        if not found:
            self._on.pop(node, None)

    def _count(self, node: str, body: Object | None, sign: int) -> None:
        if node and body is not None and _moves(body):
            self.busy[node] = self.busy.get(node, 0) + sign
            if not self.busy[node]:
                del self.busy[node]

    def _in_order(self, names: Iterable[Name]) -> list[Pod]:
        return [pod for name in sorted(names) if (pod := self._read(name)) is not None]


def is_unschedulable(body: Object) -> bool:
    """Whether a scheduler has found no node for it, and Karpenter is the one to ask."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    if spec.get("nodeName") or spec.get("schedulingGates") or status.get("nominatedNodeName") or is_tied(body):
        return False
    conditions = status.get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def is_tied(body: Object) -> bool:
    """Whether it comes and goes with its node."""
    return any(each["kind"] in _TIED for each in body["metadata"].get("ownerReferences") or ())


def _node(body: Object | None) -> str:
    result: str = (body.get("spec") or {}).get("nodeName", "") if body is not None else ""
    return result


def _is_over(body: Object | None) -> bool:
    if body is None:
        return False
    return bool(body["metadata"].get("deletionTimestamp")) or (body.get("status") or {}).get("phase") in _ENDED


def _moves(body: Object) -> bool:
    """Whether it certainly needs another place once its node goes."""
    if _is_over(body) or is_tied(body):
        return False
    return names.MIRROR_POD not in (body["metadata"].get("annotations") or {})
