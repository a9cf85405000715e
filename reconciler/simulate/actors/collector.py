"""What is left behind is collected: pods of a node that is gone, its Leases, and pods that ended long ago.

Owner of which pods are on which node, and of those that have ended, in that order.
"""

from reconciler.model.plan.action import Ref
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.stage import Stage

MANAGER = "pod-garbage-collector"
_DELAY_MS = 40_000
_MOST_ENDED = 12_500  # that nobody has cleared away


class Collector:
    """For pods and Leases."""

    def __init__(self, delay_ms: int = _DELAY_MS, most_ended: int = _MOST_ENDED) -> None:
        self._delay_ms = delay_ms
        self._most_ended = most_ended
        self._on: dict[str, dict[Key, None]] = {}
        self._ended: dict[Key, None] = {}

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for body in stage.world.of("Pod"):
            self._noted(ObjectWrite(key_of(body), None, body))
        for name in tuple(self._on):
            if stage.world.at(("Node", "", name)) is None:
                self._collect_later(name)
        stage.world.subscribe(self._noted, "Node", "Pod")

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Node" and after is None:
            self._collect_later(written.key[2])
        if kind != "Pod":
            return
        was, now = (body["spec"].get("nodeName", "") if body else "" for body in (before, after))
        if was != now:
            self._move(written.key, was, now)
        if after is None:
            self._ended.pop(written.key, None)
        elif (after.get("status") or {}).get("phase") in {"Succeeded", "Failed"} and written.key not in self._ended:
            self._ended[written.key] = None
            if len(self._ended) > self._most_ended:
                self._stage.engine.after(0, "a pod that ended long ago is cleared away", self._clear_oldest)

    def _move(self, key: Key, was: str, now: str) -> None:
        if was and (there := self._on.get(was)) is not None:
            there.pop(key, None)
            if not there:
                del self._on[was]
        if now:
            self._on.setdefault(now, {})[key] = None

    def _collect_later(self, node: str) -> None:
        self._stage.engine.after(self._delay_ms, f"what {node} left is collected", lambda: self._collect(node))

    def _collect(self, node: str) -> None:
        world = self._stage.world
        if world.at(("Node", "", node)) is not None:
            return  # another of its name
        for key in tuple(self._on.get(node, ())):
            world.remove(Ref(*key), MANAGER)
        for lease in [each for each in world.of("Lease") if _belongs_to(each, node)]:
            world.remove(Ref(*key_of(lease)), MANAGER)

    def _clear_oldest(self) -> None:
        if len(self._ended) > self._most_ended:
            self._stage.world.remove(Ref(*next(iter(self._ended))), MANAGER)


def _belongs_to(body: dict[str, object], node: str) -> bool:
    owners: list[dict[str, str]] = body["metadata"].get("ownerReferences") or []  # type: ignore[attr-defined]
    return any((each.get("kind"), each.get("name")) == ("Node", node) for each in owners)
