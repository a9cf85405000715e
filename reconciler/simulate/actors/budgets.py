"""Owner of how many pods each PodDisruptionBudget means, and how many of them are healthy; its status follows.

As the disruption controller does: a pod that was evicted counts as gone from then on, though it still runs. Shares of
pods, and how many may be away, are counted from the replicas of their owners: of owners that have no such number nobody
may go.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.instant import instant
from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.workloads.owned_pods import READY, how, owner_of
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.stage import Stage

MANAGER = "disruption-controller"
_DELAY_MS = 100
_BELIEVED_MS = 120_000  # so long it is believed that a pod which was evicted will go
_SCALELESS = frozenset({"DaemonSet", "Job", "Node"})


class _Meant:
    """What one budget means."""

    def __init__(self, budget: Object) -> None:
        selector = (budget.get("spec") or {}).get("selector")
        self.selector = None if selector is None else msgspec.convert(selector, LabelSelector)
        self.pods: dict[Key, tuple[bool, Key | None]] = {}  # whether it is healthy, and whose it is
        self.healthy = 0
        self.owners: Counter[Key | None] = Counter()

    def put(self, key: Key, pod: Object | None) -> bool:
        """Whether anything is different."""
        before = self.pods.pop(key, None)
        after = None if pod is None else (how(pod) == READY, _owner(pod))
        if before is not None:
            self.healthy -= before[0]
            self.owners[before[1]] -= 1
            if not self.owners[before[1]]:
                del self.owners[before[1]]
        if after is not None:
            self.pods[key] = after
            self.healthy += after[0]
            self.owners[after[1]] += 1
        return before != after

    def means(self, pod: Object) -> bool:
        ended = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        return self.selector is not None and not ended and self.selector.matches(pod["metadata"].get("labels") or {})


class Budgets:
    """Keeps the status of all of them."""

    def __init__(self, delay_ms: int = _DELAY_MS) -> None:
        self._delay_ms = delay_ms
        self._of: defaultdict[str, dict[Key, _Meant]] = defaultdict(dict)  # by namespace
        self._in: defaultdict[str, dict[Key, None]] = defaultdict(dict)  # pods by namespace
        self._due: dict[Key, None] = {}

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for kind in ("Pod", "PodDisruptionBudget"):
            for body in stage.world.of(kind):
                self._noted(ObjectWrite(key_of(body), None, body))
        stage.world.subscribe(self._noted, "Pod", "PodDisruptionBudget")

    def _noted(self, written: ObjectWrite) -> None:
        kind, namespace, _ = written.key
        if kind == "PodDisruptionBudget":
            self._note_budget(written)
        elif kind == "Pod":
            if written.after is None:
                self._in[namespace].pop(written.key, None)
            else:
                self._in[namespace][written.key] = None
            for key, meant in self._of[namespace].items():
                pod = written.after if written.after is not None and meant.means(written.after) else None
                if (pod is not None or written.key in meant.pods) and meant.put(written.key, pod):
                    self._look_at(key)

    def _note_budget(self, written: ObjectWrite) -> None:
        namespace = written.key[1]
        if written.after is None:
            self._of[namespace].pop(written.key, None)
            return
        if written.before is not None and written.before.get("spec") == written.after.get("spec"):
            return
        meant = self._of[namespace][written.key] = _Meant(written.after)
        for key in self._in[namespace]:
            pod = self._stage.world.at(key)
            if pod is not None and meant.means(pod):
                meant.put(key, pod)
        self._look_at(written.key)

    def _look_at(self, budget: Key) -> None:
        if not self._due:
            self._stage.engine.after(self._delay_ms, "disruption budgets are counted", self._tell)
        self._due[budget] = None

    def _tell(self) -> None:
        due = tuple(self._due)
        self._due.clear()
        for key in due:
            budget, meant = self._stage.world.at(key), self._of[key[1]].get(key)
            if budget is not None and meant is not None:
                status = self._status(budget, meant)
                # A merge patch would keep the pods that are no longer told of.
                gone = dict.fromkeys(_recorded_disruptions(budget).keys() - status.get("disruptedPods", {}).keys())
                if "disruptedPods" in status:
                    status["disruptedPods"] |= gone
                self._stage.world.edit(Ref(*key), {"status": status}, MANAGER)

    def _status(self, budget: Object, meant: _Meant) -> dict[str, Any]:
        found = self._wanted(budget.get("spec") or {}, meant)
        if found is None:
            return {"disruptionsAllowed": 0}
        expected, desired = found
        awaited = self._awaited(budget, meant)
        healthy = meant.healthy - sum(meant.pods[key][0] for key in awaited)
        return {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptedPods": {key[2]: when for key, when in awaited.items()},
        }

    def _awaited(self, budget: Object, meant: _Meant) -> dict[Key, str]:
        """Pods that were evicted and do not leave yet: for so long they count as gone."""
        result: dict[Key, str] = {}
        for name, when in _recorded_disruptions(budget).items():
            key = ("Pod", budget["metadata"]["namespace"], name)
            pod = self._stage.world.at(key) if key in meant.pods else None
            if pod is None or pod["metadata"].get("deletionTimestamp"):
                continue
            if instant(when) + _BELIEVED_MS >= self._stage.now:
                result[key] = when
        return result

    def _wanted(self, spec: Object, meant: _Meant) -> tuple[int, int] | None:
        """How many pods there should be, and how many of them healthy; None: the controller can't tell."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(meant.pods), least
        if any(owner is not None and owner[0] in _SCALELESS for owner in meant.owners):
            return None
        expected = sum(self._expected(meant))
        if least is not None:
            return expected, _share(least, expected)
        away = most if isinstance(most, int) else _share(most, expected) if most is not None else 0
        return expected, max(0, expected - away)

    def _expected(self, meant: _Meant) -> Iterator[int]:
        """Of each owner; pods that nobody owns are not expected."""
        for owner, count in meant.owners.items():
            if owner is not None:
                body = self._stage.world.at(owner)
                yield int(body["spec"].get("replicas", 1)) if body is not None else count


def _owner(pod: Object) -> Key | None:
    found = owner_of(pod)
    return found[0] if found else None


def _recorded_disruptions(budget: Object) -> dict[str, str]:
    result: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    return result


def _share(percent: str, of: int) -> int:
    """Rounded up, as the controller does."""
    return -(-int(percent.rstrip("%")) * of // 100)
