"""Owner of which pods each workload has, and in how many each way they are: so that no change walks them."""

from collections.abc import Callable, Iterable, Iterator

from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import says
from reconciler.simulate.objects import Key, ObjectWrite, key_of

WAITING, RUNNING, READY, LEAVING, SUCCEEDED, FAILED = "waiting", "running", "ready", "leaving", "succeeded", "failed"
ACTIVE = (WAITING, RUNNING, READY)


def owner_of(pod: Object) -> tuple[Key, str] | None:
    """The key and uid of its controller."""
    metadata = pod["metadata"]
    for each in metadata.get("ownerReferences") or ():
        if each.get("controller"):
            namespace = "" if each["kind"] == "Node" else metadata.get("namespace", "")
            return (each["kind"], namespace, each["name"]), each.get("uid", "")
    return None


def how(pod: Object) -> str:
    """In which way it is, of those above."""
    phase = (pod.get("status") or {}).get("phase", "Pending")
    if phase == "Succeeded":
        return SUCCEEDED
    if phase == "Failed":
        return FAILED
    if pod["metadata"].get("deletionTimestamp"):
        return LEAVING
    if phase != "Running":
        return WAITING
    return READY if says(pod, "Ready") == "True" else RUNNING


class Kin:
    """The pods of one workload."""

    def __init__(self) -> None:
        self.pods: dict[Key, str] = {}  # how each is
        self.counts = dict.fromkeys((*ACTIVE, LEAVING, SUCCEEDED, FAILED), 0)
        self.made = 0  # names given so far

    @property
    def active(self) -> int:
        """Those that are there or will be."""
        return sum(self.counts[each] for each in ACTIVE)

    def that_are(self, ways: Iterable[str]) -> Iterator[Key]:
        """In the order of ways, then as they were made."""
        for way in ways:
            if self.counts[way]:
                yield from [key for key, each in self.pods.items() if each == way]

    def put(self, key: Key, way: str | None) -> None:
        """None: it is gone."""
        before = self.pods.pop(key, None) if way is None else self.pods.get(key)
        if before is not None:
            self.counts[before] -= 1
        if way is not None:
            self.pods[key] = way
            self.counts[way] += 1


class Kinship:
    """All workloads; tells which of them something happened to."""

    def __init__(self, on_change: Callable[[Key, ObjectWrite], None]) -> None:
        self._on_change = on_change
        self._of: dict[str, Kin] = {}  # by uid of the owner
        self._bereaved: set[str] = set()  # uids of owners that are gone, while they have pods

    def of(self, uid: str) -> Kin:
        kin = self._of.get(uid)
        if kin is None:
            kin = self._of[uid] = Kin()
        return kin

    def bereave(self, uid: str) -> tuple[Key, ...]:
        """The owner is gone; the pods that it leaves."""
        left = tuple(self.of(uid).pods)
        self._bereaved.add(uid)
        self._forget_if_done(uid)
        return left

    def note(self, written: ObjectWrite) -> None:
        """A write of a pod."""
        body = written.after or written.before
        owner = owner_of(body) if body else None
        if owner is None:
            return
        key, uid = owner
        kin, way = self.of(uid), how(written.after) if written.after else None
        if kin.pods.get(written.key) != way:
            kin.put(written.key, way)
            self._on_change(key, written)
        self._forget_if_done(uid)

    def begin(self, pods: Iterable[Object]) -> None:
        """Pods that are there already."""
        for pod in pods:
            self.note(ObjectWrite(key_of(pod), None, pod))

    def _forget_if_done(self, uid: str) -> None:
        if uid in self._bereaved and not self._of[uid].pods:
            self._bereaved.discard(uid)
            del self._of[uid]
