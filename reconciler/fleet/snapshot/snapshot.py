"""Owner of the what-if state: nodes as rows, bookings on each row, and the journal for rollback.

Each change within a fork is recorded with its inverse. Leaving the fork without commit replays the inverses, newest
first, through the same methods, so listeners (counters of predicates) are rolled back as well.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from reconciler.fleet.amounts import counted, lent_by
from reconciler.fleet.occupancy import NO_PODS, BookingChange, NodePods, Occupancy
from reconciler.fleet.pod_classes import PodClass, Request
from reconciler.fleet.rows import NodeRows, differ
from reconciler.fleet.snapshot.diff import SnapshotDiff, change_between
from reconciler.fleet.snapshot.journal import Crowding, Fork, Journal
from reconciler.fleet.snapshot.resources import Left, LentGpus, NodeResources
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

# --- Listeners for changes of bookings.


class Listener(Protocol):
    """Keeps its own counters of bookings; called after each change, including rollbacks."""

    def added(self, pod_class: PodClass, row: int, count: int, fleet: "Snapshot") -> None: ...
    def removed(self, pod_class: PodClass, row: int, count: int, fleet: "Snapshot") -> None: ...
    def came(self, row: int, fleet: "Snapshot") -> None:
        """A node was added; nothing is booked on it yet."""

    def went(self, row: int, fleet: "Snapshot") -> None:
        """A node was removed; nothing is booked on it any more. Its labels can still be read."""

    def fingerprint(self, fleet: "Snapshot") -> object:
        """All counters: equal for equal bookings in any history; empty if there are none."""


def says_anything(figures: object) -> bool:
    """Whether nested lists contain any value."""
    return any(map(says_anything, figures)) if isinstance(figures, list | tuple) else bool(figures)


T = TypeVar("T")


class Snapshot:
    """Nodes and bookings; only its methods change them."""

    def __init__(self, observed: Observed, occupancy: Occupancy | None = None) -> None:
        """`occupancy`: of the same Observed; advanced by its owner, who passes the changes to `advance`."""
        self.sightings = 0  # changes when observed pods change
        self._build(observed, occupancy or Occupancy(observed))

    def _build(self, observed: Observed, occupancy: Occupancy) -> None:
        self.observed = observed
        self.occupancy = occupancy
        self.classes = occupancy.classes
        self.rows = NodeRows(len(observed.nodes))
        self.stock = NodeResources(self.classes, self.rows.capacity)
        self.observed_on: list[NodePods] = [NO_PODS] * self.rows.capacity  # by row; callers must not modify it
        self._booked: list[dict[PodClass, int]] = [{} for _ in range(self.rows.capacity)]
        self._journal = Journal()
        self._parts: dict[Callable[[Snapshot], Any], Any] = {}
        self._listeners: list[Listener] = []
        self.on_vacated: list[Callable[[int, int], None]] = []  # row; -1: vacated, 1: restored
        self.sightings += 1
        self.rows.on_growth.append(self._grow)
        nodes = sorted(observed.nodes, key=lambda each: each.name)
        for node in nodes:
            self.rows.add(node)
        self.stock.settle_all(self.rows.order, [self._has(node) for node in nodes])
        self._book_first()
        self._lending = LentGpus(self.classes, self.rows, self.stock)
        self._lending.lend(lent_by(observed.leases))
        self._lending.settle()
        self._crowding = Crowding(self.classes, self.rows)

    # Lookup

    def booked_on(self, row: int) -> dict[PodClass, int]:
        """The number of booked pods by class on a row. Must not be modified."""
        return self._booked[row]

    def pods_of_row(self, row: int) -> tuple[Pod, ...]:
        """The observed pods of the node, sorted, wherever they are booked."""
        return self.observed_on[row].pods

    @property
    def waiting(self) -> list[Pod]:
        """The observed pending pods, by namespace and name."""
        return self.occupancy.waiting

    @property
    def nominated(self) -> list[Pod]:
        """Pending pods with a nominated node, by namespace and name."""
        return self.occupancy.nominated

    @property
    def is_crowded(self) -> bool:
        """Whether most of the memory is for removed pods and nodes, so that a new snapshot is better."""
        return self.stock.is_sparse or self._crowding.is_over(self.occupancy.classes_in_use)

    def part(self, make: Callable[["Snapshot"], T]) -> T:
        """The snapshot's instance of `make`, created at first use; must not be kept across `advance`."""
        result: T | None = self._parts.get(make)
        if result is None:
            result = self._parts[make] = make(self)
        return result

    def listen(self, listener: Listener) -> None:
        """Registers a listener."""
        self._listeners.append(listener)

    # What-if changes

    def fork(self) -> Fork:
        """All changes in the `with` block are rolled back unless committed; forks nest."""
        return Fork(self._journal)

    def on_revert(self, undo: Callable[[], None]) -> None:
        """Registers the inverse of a change that was made elsewhere."""
        self._journal.note(undo)

    def add(self, pod_class: PodClass, row: int, count: int = 1) -> None:
        """Books pods on a row, whether or not they fit."""
        self._journal.note(self._unbook, pod_class, row, count)
        self._book(pod_class, row, count)

    def remove(self, pod_class: PodClass, row: int, count: int = 1) -> None:
        """Removes booked pods from a row."""
        if count > self._booked[row].get(pod_class, 0):
            raise LookupError(f"row {row} has fewer than {count} pods of class {pod_class.number}")
        self._journal.note(self._book, pod_class, row, count)
        self._unbook(pod_class, row, count)

    def take_away(self, row: int) -> None:
        """Removes a node with all its bookings."""
        self.vacate(row, stands=False)

    def vacate(self, row: int, stands: bool = True) -> None:
        """Drains a node: removes all its bookings and closes it to new pods.

        While `stands`, the node counts as a domain, except for pods that honor taints and do not tolerate the drain
        taint.
        """
        booked, self._booked[row] = self._booked[row], {}
        left = self.stock.give_all(row)
        self._journal.note(self._give_back, row, booked, left)
        for pod_class, count in booked.items():
            for each in self._listeners:
                each.removed(pod_class, row, count, self)
        self.rows.alive[row] = False
        for vacated in self.on_vacated:
            vacated(row, -1)
        if not stands:
            self._fall(row)

    def bring(self, node: Node) -> int:
        """Adds a node; returns its row."""
        before, capacity = self.rows.version, self.rows.capacity
        row = self.rows.add(node)
        self._journal.note(self._send_off, row, before, capacity)
        self.stock.settle(row, self._has(node))
        for each in self._listeners:
            each.came(row, self)
        return row

    def fingerprint(self) -> bytes:
        """A digest of everything that a fork may change: equal for equal snapshots after equal queries."""
        rows = [
            (
                (name, bool(self.rows.alive[row]), bool(self.rows.standing[row]), self.stock.fingerprint(row)),
                sorted((each.text, count) for each, count in self._booked[row].items()),
                _titles(self.observed_on[row].pods),
            )
            for name, row in sorted(self.rows.row_of.items())
        ]
        heard = sorted((type(each).__name__, each.fingerprint(self)) for each in self._listeners)
        fingerprints = [each for each in heard if says_anything(each[1])]
        strays = sorted((name, _titles(there)) for name, there in self._strays())
        return msgspec.json.encode((rows, strays, _titles(self.waiting), fingerprints), order="deterministic")

    # Advance to the next observation

    def advance(
        self, observed: Observed, change: SnapshotDiff | None = None, bookings: BookingChange | None = None
    ) -> None:
        """Advances to the next observation; the cost grows with the changes. Not allowed within a fork.

        If `change` is given, nodes and pods are not read from `observed`, and nothing is rebuilt. `bookings`: what the
        owner of the occupancy has applied to the occupancy.
        """
        if self._journal.is_open:
            raise RuntimeError("a fleet cannot advance within a fork")
        before, self.observed = self.observed, observed
        changed = change or change_between(before, observed)
        self.sightings += bool(changed.gone_pods or changed.came_pods)
        self._apply(changed, bookings or self.occupancy.advance(observed, changed))
        if observed.leases is not before.leases:
            self._lending.lend(lent_by(observed.leases))
        self._lending.settle()
        if change is None and self.is_crowded:
            self._build(observed, Occupancy(observed))

    def _apply(self, change: SnapshotDiff, bookings: BookingChange) -> None:
        row_of = self.rows.row_of.get
        for name in bookings.nodes:
            if (row := row_of(name)) is not None:
                self.observed_on[row] = self.occupancy.on(name)
        for name, pod_class in bookings.gone:
            if (row := row_of(name)) is not None:
                self._unbook(pod_class, row, 1)
        renewed = {each.name for each in change.came_nodes}
        for node in change.gone_nodes:
            if node.name not in renewed:
                self._drop(node)
        added = {node.name for node in change.came_nodes if self._renew(node)}
        for name, pod_class in bookings.came:
            if name not in added and (row := row_of(name)) is not None:
                self._book(pod_class, row, 1)

    def _book_first(self) -> None:
        """Books all observed pods, with the amounts of all rows at once and without listeners."""
        booked: list[tuple[int, int, int]] = []
        for name, there in self.occupancy.by_node.items():
            row = self.rows.row_of.get(name)
            if row is None:
                continue
            self.observed_on[row], counts = there, self._booked[row]
            for profile, count in there.counts.items():
                pod_class = profile.pod_class
                counts[pod_class] = counts.get(pod_class, 0) + count
            booked += [(each.number, row, count) for each, count in counts.items()]
        self.stock.take_all(self.classes.all, booked)

    def _renew(self, node: Node) -> bool:
        """Adds a new node, or replaces a changed one. Returns whether the node has a new row, with all its pods."""
        row = self.rows.row_of.get(node.name)
        if row is not None and not differ(self.rows.node(row), node):
            before = self.rows.node(row)
            self.rows.replace(row, node)
            if before.status.allocatable != node.status.allocatable:
                self.stock.settle(row, self._has(node))
            return False
        if row is not None:
            self._drop(self.rows.node(row))
        row = self.rows.add(node)
        self.stock.settle(row, self._has(node))
        for each in self._listeners:
            each.came(row, self)
        self.observed_on[row] = self.occupancy.on(node.name)
        for profile, count in self.observed_on[row].counts.items():
            self._book(profile.pod_class, row, count)
        return True

    def _drop(self, node: Node) -> None:
        row = self.rows.row_of[node.name]
        self.observed_on[row] = NO_PODS
        for pod_class, count in list(self._booked[row].items()):
            self._unbook(pod_class, row, count)
        self._leave(row)

    # The only methods that change state

    def _book(self, pod_class: PodClass, row: int, count: int) -> None:
        booked = self._booked[row]
        booked[pod_class] = booked.get(pod_class, 0) + count
        self.stock.take(pod_class.held, row, count)
        for each in self._listeners:
            each.added(pod_class, row, count, self)

    def _unbook(self, pod_class: PodClass, row: int, count: int) -> None:
        booked = self._booked[row]
        left = booked[pod_class] - count
        if left:
            booked[pod_class] = left
        else:
            del booked[pod_class]
        self.stock.give(pod_class.held, row, count)
        for each in self._listeners:
            each.removed(pod_class, row, count, self)

    def _give_back(self, row: int, booked: dict[PodClass, int], left: Left) -> None:
        self.rows.alive[row] = True
        for vacated in self.on_vacated:
            vacated(row, 1)
        if not self.rows.standing[row]:
            self.rows.standing[row] = True
            for each in self._listeners:
                each.came(row, self)
        self._booked[row] = booked
        self.stock.leave(row, left)
        for pod_class, count in booked.items():
            for each in self._listeners:
                each.added(pod_class, row, count, self)

    def _send_off(self, row: int, version: int, capacity: int) -> None:
        self._leave(row)
        if capacity == self.rows.capacity:
            self.rows.version = version

    def _leave(self, row: int) -> None:
        self.rows.alive[row] = False
        self._fall(row)
        self.rows.drop(row)
        self.stock.clear(row)
        self._lending.forget(row)

    def _fall(self, row: int) -> None:
        self.rows.standing[row] = False
        for each in self._listeners:
            each.went(row, self)

    def _has(self, node: Node) -> Request:
        amounts = counted(node.status.allocatable)
        return tuple([(self.classes.column(name), amounts[name]) for name in sorted(amounts)])

    def _strays(self) -> Iterator[tuple[str, tuple[Pod, ...]]]:
        """Names of missing nodes, with the pods that are bound to these nodes."""
        for name, there in self.occupancy.by_node.items():
            if there.booked and name not in self.rows.row_of:
                yield name, there.pods

    def _grow(self, capacity: int) -> None:
        self._booked += [{} for _ in range(capacity - len(self._booked))]
        self.observed_on += [NO_PODS] * (capacity - len(self.observed_on))
        self.stock.grow(capacity)


def _titles(pods: Iterable[Pod]) -> list[tuple[str, str]]:
    return [(each.title, each.metadata.uid) for each in pods]
