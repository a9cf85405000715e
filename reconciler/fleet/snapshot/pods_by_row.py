"""Owner of the observed pods by row, and of pending pods; finished pods are not included."""

from collections import defaultdict

from reconciler.model.cluster.pod import Pod

FINISHED = frozenset({"Succeeded", "Failed"})


class PodsByRow:
    """Pods by row; pods bound to a missing node by the node's name."""

    def __init__(self, capacity: int) -> None:
        self.on: list[list[Pod]] = [[] for _ in range(capacity)]  # other code may only modify it during construction
        self.told: list[tuple[Pod, ...] | None] = [
            None
        ] * capacity  # sorted pods of each row, cached; must not be modified
        self._waiting: dict[int, Pod] = {}  # pending pods, by object identity
        self._nominated: dict[int, Pod] = {}  # pending pods with a nominated node
        self._strays: defaultdict[str, list[Pod]] = defaultdict(list)

    def of_row(self, row: int) -> tuple[Pod, ...]:
        """Sorted by namespace and name; the same object until the row changes."""
        pods = self.told[row]
        if pods is None:
            pods = self.told[row] = tuple(sorted(self.on[row], key=_name))
        return pods

    def put_on(self, pod: Pod, row: int) -> None:
        """Binds a pod to the node of the row."""
        self.on[row].append(pod)
        self.told[row] = None

    @property
    def waiting(self) -> list[Pod]:
        """Pending pods, by namespace and name."""
        return sorted(self._waiting.values(), key=_name)

    @property
    def nominated(self) -> list[Pod]:
        """Pending pods with a nominated node, by namespace and name."""
        return sorted(self._nominated.values(), key=_name)

    def be_nowhere(self, pod: Pod) -> None:
        """Adds a pod that is pending, or bound to a missing node."""
        if pod.node:
            self._strays[pod.node].append(pod)
        else:
            self._waiting[id(pod)] = pod
            if pod.status.nominated_node_name:
                self._nominated[id(pod)] = pod

    def take_off(self, pod: Pod, row: int | None) -> None:
        """Removes a deleted or replaced pod."""
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
        """Removes the node; its pods stay bound to the missing node."""
        if self.on[row]:
            self._strays[name] += self.on[row]
            self.on[row] = []
            self.told[row] = None

    def back(self, name: str) -> list[Pod]:
        """Adds the node; returns the pods that were bound to the missing node."""
        return self._strays.pop(name, [])

    def grow(self, capacity: int) -> None:
        """Adds rows."""
        more = capacity - len(self.on)
        self.on += [[] for _ in range(more)]
        self.told += [None] * more

    def fingerprint(self) -> object:
        """Pods on missing nodes and pending pods; bound pods have a fingerprint per row."""
        strays = {name: sorted(map(_written, pods)) for name, pods in self._strays.items() if pods}
        return sorted(strays.items()), sorted(map(_written, self._waiting.values()))


def _name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _written(pod: Pod) -> tuple[str, str]:
    return pod.title, pod.metadata.uid
