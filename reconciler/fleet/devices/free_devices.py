"""Owner of the free GPUs of each row in the what-if fleet.

The GPUs that the ledger calls taken belong to observed pods. Pods that a fork removes from a row give theirs back, and
pods that a fork adds take the best free ones: first claims that require one island, then those that prefer one, larger
claims first. Which GPUs they take depends only on the bookings of the row, not on their order, so a rollback restores
the free GPUs with the bookings. A row is computed again when its bookings, its node, its report or its Leases change.

A node that is not observed, such as a node to be launched, has the GPUs of a reported node of the same pool and
instance type. Without such a node it has one island, as a node without a report.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet, layout_of, read_board
from reconciler.fleet.devices.choice import best_set, can_serve, obstacle
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask, Numbers, grown
from reconciler.fleet.snapshot.diff import changes
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Obstacle
from reconciler.model.policy.gpu import ClaimedDevices, Devices

_MOST_STATES = 65_536
_POLICIES = ("requireContiguous", "contiguous", "any")  # in this order, pods take their GPUs

Claim = tuple[str, str]  # namespace and name


class ClaimRequest(msgspec.Struct, frozen=True):
    """What a readable GpuClaim requests, and which pools can serve the claim."""

    devices: ClaimedDevices
    pools: frozenset[str]


class ClaimRequests(msgspec.Struct, frozen=True):
    """All readable GpuClaims, and the devices that pools declare."""

    by_claim: Mapping[Claim, ClaimRequest] = {}
    declared: Mapping[str, Devices] = {}  # by pool


class FreeDevices:
    """A snapshot has one instance, `snapshot.part(FreeDevices)`. Without claims it is never made and costs nothing."""

    def __init__(self, fleet: Snapshot) -> None:
        self._fleet = fleet
        self._claims = ClaimRequests()
        self._observed = Observed()
        self._gpu_requests = fleet.classes.asked_gpus
        self._ledger = DeviceLedger(gpu_requests=self._gpu_requests)
        self._reports: dict[str, Unstructured] = {}
        self._names: frozenset[str] = frozenset()  # of observed nodes
        self._peers: dict[tuple[str, str], BoardLayout] = {}  # by pool and instance type
        self._boards: dict[str, tuple[object, Board]] = {}  # of observed nodes, with their inputs
        self._with_added: set[int] = set()  # rows with pods that no observation has there
        self._changed: set[int] = set(range(fleet.rows.capacity))
        self._forget_states()
        fleet.listen(self)

    # Listener

    def added(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        self._changed.add(row)

    def removed(self, pod_class: PodClass, row: int, count: int, fleet: Snapshot) -> None:
        self._changed.add(row)

    def came(self, row: int, fleet: Snapshot) -> None:
        self._changed.add(row)

    def went(self, row: int, fleet: Snapshot) -> None:
        self._changed.add(row)

    def fingerprint(self, fleet: Snapshot) -> object:
        """Empty: all answers follow from the bookings."""
        return ()

    # Input

    def follow(self, claims: ClaimRequests) -> None:
        """Takes the current observation of the snapshot, and the claims that pods are judged by."""
        before, observed, row_of = self._observed, self._fleet.observed, self._fleet.rows.row_of
        if claims != self._claims:
            self._changed.update(self._with_added if claims.declared == self._claims.declared else row_of.values())
            self._claims = claims
        if observed is before:
            return
        self._observed = observed
        if observed.nodes is not before.nodes:
            self._names = frozenset([node.name for node in observed.nodes])
            gone, came = changes(before.nodes, observed.nodes)
            self._changed.update([row_of[node.name] for node in came if node.name in row_of])
            for node in gone:
                if node.name not in self._names:
                    self._boards.pop(node.name, None)
        if observed.policies is not before.policies:
            self._follow_reports(observed)
        self._follow_users(before, observed)
        if observed.nodes is not before.nodes or observed.policies is not before.policies:
            # No row depends on the previous peers: a snapshot advances only outside of forks, without nodes of forks.
            self._peers = dict(self._find_peers())

    def _follow_reports(self, observed: Observed) -> None:
        reports = {each.name: each for each in observed.policies if each.kind == "GpuNodeStatus"}
        row_of = self._fleet.rows.row_of
        for name in sorted(reports.keys() | self._reports.keys()):
            if reports.get(name) is not self._reports.get(name) and name in row_of:
                self._changed.add(row_of[name])
        self._reports = reports

    def _follow_users(self, before: Observed, observed: Observed) -> None:
        gpu_requests, row_of = self._fleet.classes.asked_gpus, self._fleet.rows.row_of
        if gpu_requests is not self._gpu_requests:
            self._gpu_requests = gpu_requests
            self._ledger.take_requests(gpu_requests)
        self._ledger.advance(*changes(before.leases, observed.leases), *changes(before.pods, observed.pods))
        self._changed.update([row_of[name] for name in self._ledger.take_touched() if name in row_of])

    def _find_peers(self) -> Iterator[tuple[tuple[str, str], BoardLayout]]:
        """The layout of the first reported node by name, for each pool and instance type."""
        rows = self._fleet.rows
        for name in sorted(self._reports, reverse=True):
            row = rows.row_of.get(name)
            if row is not None and (board := self._board(rows.node(row))).is_reported:
                node = rows.node(row)
                yield (node.pool, node.instance_type), board.layout

    # Answers

    def mask(self, claimed: ClaimedDevices) -> Mask:
        """The rows with free GPUs for the claim; a new array."""
        self._settle()
        serving = self._serving.setdefault(claimed, [])
        serving += [can_serve(layout, free, claimed) for layout, free in self._states[len(serving) :]]
        mask: Mask = np.array(serving, bool)[self._state_of_row]
        return mask

    def serves(self, row: int, claimed: ClaimedDevices) -> bool:
        """Like `mask`, for one row."""
        board, free = self.free_board(row)
        return can_serve(board.layout, free, claimed)

    def why(self, row: int, claimed: ClaimedDevices) -> Obstacle:
        """Why a row that does not serve the claim has no free GPUs for it."""
        board, free = self.free_board(row)
        return obstacle(board, board.layout.everything & ~free, claimed)

    def free_on(self, row: int) -> tuple[int, ...]:
        """The ids of the free GPUs of a row."""
        board, free = self.free_board(row)
        return board.layout.ids_of(free)

    def board_on(self, row: int) -> Board:
        """The GPUs of a row, whether or not they are free."""
        return self._board(self._fleet.rows.node(row))

    def different(self, rows: Numbers) -> list[int]:
        """The first row of each layout and set of free GPUs, in the order of the given rows."""
        self._settle()
        _, first = np.unique(self._state_of_row[rows], return_index=True)
        return [int(rows[place]) for place in sorted(first)]

    def free_count(self, rows: Numbers) -> int:
        """The number of free GPUs of these rows."""
        self._settle()
        counts = np.array([free.bit_count() for _, free in self._states], np.int64)
        return int(counts[self._state_of_row[rows]].sum())

    # State of rows

    def _forget_states(self) -> None:
        self._states: list[tuple[BoardLayout, DeviceSet]] = [(layout_of(()), 0)]  # the first: rows without a node
        self._number: dict[tuple[BoardLayout, DeviceSet], int] = {}
        self._serving: dict[ClaimedDevices, list[bool]] = {}
        self._state_of_row: Numbers = np.zeros(self._fleet.rows.capacity, np.int32)
        self._changed.update(range(self._fleet.rows.capacity))

    def _settle(self) -> None:
        """Computes the states of all changed rows."""
        if len(self._states) > _MOST_STATES:
            self._forget_states()
        for row in sorted(self._changed):
            self._settle_row(row)

    def _settle_row(self, row: int) -> None:
        rows = self._fleet.rows
        if len(self._state_of_row) < rows.capacity:
            self._state_of_row = grown(self._state_of_row, rows.capacity)
        state = 0
        if rows.nodes[row] is not None:
            board, free = self._compute(row)
            key = board.layout, free
            state = self._number.get(key, 0)
            if not state:
                state = self._number[key] = len(self._states)
                self._states.append(key)
        self._state_of_row[row] = state
        self._changed.discard(row)

    def free_board(self, row: int) -> tuple[Board, DeviceSet]:
        """The GPUs of a row, and the free ones among them."""
        if row in self._changed:
            self._settle_row(row)
        return self._board(self._fleet.rows.node(row)), self._states[self._state_of_row[row]][1]

    def _compute(self, row: int) -> tuple[Board, DeviceSet]:
        fleet = self._fleet
        node, booked = fleet.rows.node(row), fleet.booked_on(row)
        board, pods = self._board(node), fleet.pods_of_row(row)
        classes = [fleet.classes.of(pod) for pod in pods]
        observed = Counter(classes)
        moved: set[str] = set()
        for pod_class, count in observed.items():
            if (fewer := count - booked.get(pod_class, 0)) > 0:
                of_class = [pod for pod, each in zip(pods, classes, strict=True) if each is pod_class]
                moved.update([pod.metadata.uid for pod in of_class[:fewer]])
        ledger = self._ledger
        taken = ledger.taken_without(node.name, board, moved) if moved else ledger.taken(node.name, board)
        added = {each: count - observed[each] for each, count in booked.items() if count > observed[each]}
        if added:
            self._with_added.add(row)
        else:
            self._with_added.discard(row)
        return board, self._without_added(board, board.allocatable & ~taken.all, added)

    def _without_added(self, board: Board, free: DeviceSet, added: Mapping[PodClass, int]) -> DeviceSet:
        """The free GPUs that remain after added pods have taken theirs."""
        claiming: list[tuple[int, int, bytes, ClaimedDevices, int]] = []
        others = 0
        for pod_class, count in added.items():
            request = self._claims.by_claim.get(pod_class.gpu_claim)
            if request is None:
                others += count * self._fleet.classes.asked_gpus.of(pod_class.pod)
            else:
                rank = _POLICIES.index(request.devices.policy), -request.devices.count, pod_class.text
                claiming.append((*rank, request.devices, count))
        for *_, claimed, count in sorted(claiming, key=lambda each: each[:3]):
            for _ in range(count if free else 0):
                # Pods that do not fit were booked without being asked about: they take what there is.
                free &= ~(best_set(board.layout, free, claimed) or _highest(free, claimed.count))
        return free & ~_highest(free, others)

    def _board(self, node: Node) -> Board:
        declared = self._claims.declared.get(node.pool)
        if node.name not in self._names:
            layout = self._peers.get((node.pool, node.instance_type))
            if layout is None:
                return read_board(node, None, declared)
            return Board(layout, ("",) * layout.size, layout.everything)
        report = self._reports.get(node.name)
        inputs = report, declared, node.status.allocatable.get(names.NVIDIA_GPU)
        known = self._boards.get(node.name)
        if known is not None and known[0] == inputs:
            return known[1]
        board = read_board(node, report, declared)
        if known is not None and known[1] == board:
            board = known[1]
        self._boards[node.name] = inputs, board
        return board


def _highest(devices: DeviceSet, count: int) -> DeviceSet:
    """The highest GPUs of a set."""
    highest = 0
    while devices and count > 0:
        one = 1 << (devices.bit_length() - 1)
        highest, devices, count = highest | one, devices ^ one, count - 1
    return highest
