"""Owner of which pods were seen on which node, and which on none yet; a pod that has finished is nowhere."""

from collections import defaultdict

from reconciler.model.cluster.pod import Pod

FINISHED = frozenset({"Succeeded", "Failed"})


class PodsByRow:
    """Pods by row; those bound to a node that is not there, by its name."""

    def __init__(self, capacity: int) -> None:
        self.on: list[list[Pod]] = [[] for _ in range(capacity)]  # to be changed from elsewhere only at the very first
        self.told: list[tuple[Pod, ...] | None] = [
            None
        ] * capacity  # of each row in order, once it was asked for; not to be changed
        self._waiting: dict[int, Pod] = {}  # not bound to a node, by the identity of the object
        self._nominated: dict[int, Pod] = {}  # those of them for which a node was nominated
        self._strays: defaultdict[str, list[Pod]] = defaultdict(list)

    def of_row(self, row: int) -> tuple[Pod, ...]:
        """By namespace and name; the same object for as long as nothing changes there."""
        pods = self.told[row]
        if pods is None:
            pods = self.told[row] = tuple(sorted(self.on[row], key=_name))
        return pods

    def put_on(self, pod: Pod, row: int) -> None:
        """It is bound to the node of that row."""
        self.on[row].append(pod)
        self.told[row] = None

    @property
    def waiting(self) -> list[Pod]:
        """Pods that are not bound to a node, by namespace and name."""
        return sorted(self._waiting.values(), key=_name)

    @property
    def nominated(self) -> list[Pod]:
        """Those of them for which a node was nominated, by namespace and name."""
        return sorted(self._nominated.values(), key=_name)

    def be_nowhere(self, pod: Pod) -> None:
        """It is not bound to a node, or to one that is not there."""
        if pod.node:
            self._strays[pod.node].append(pod)
        else:
            self._waiting[id(pod)] = pod
            if pod.status.nominated_node_name:
                self._nominated[id(pod)] = pod

    def take_off(self, pod: Pod, row: int | None) -> None:
        """The pod is gone, or is another object now."""
        if not pod.node:
            del self._waiting[id(pod)]
            self._nominated.pop(id(pod), None)
            return
        among = self._strays[pod.node] if row is None else self.on[row]
        del among[next(place for place, each in enumerate(among) if each is pod)]
        if row is not None:
            self.told[row] = None
        elif not among:
            del self._strays[pod.node]

    def leave(self, name: str, row: int) -> None:
        """The node went, and its pods are bound to it still."""
        if self.on[row]:
            self._strays[name] += self.on[row]
            self.on[row] = []
            self.told[row] = None

    def back(self, name: str) -> list[Pod]:
        """The node is there: the pods that are bound to it, no longer astray."""
        return self._strays.pop(name, [])

    def grow(self, capacity: int) -> None:
        """More rows."""
        more = capacity - len(self.on)
        self.on += [[] for _ in range(more)]
        self.told += [None] * more

    def fingerprint(self) -> object:
        """Who is astray, and who waits; who is where is told row by row."""
        strays = {name: sorted(map(_written, pods)) for name, pods in self._strays.items() if pods}
        return sorted(strays.items()), sorted(map(_written, self._waiting.values()))


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _written(pod: Pod) -> tuple[str, str]:
    return pod.title, pod.metadata.uid
