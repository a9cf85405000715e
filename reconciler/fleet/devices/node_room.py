"""What is free on a node, what a pod takes of that beside GPUs, and which pods have taken how much."""

from typing import NamedTuple

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY, counted, pod_held, pod_request
from reconciler.fleet.devices.board import BoardLayout, DeviceSet
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod

WHOLE = 1_000  # thousandths of a GPU

FreeParts = tuple[int, ...]  # thousandths of each GPU that are free, by position


class PodRequest(NamedTuple):
    """What a pod requests beside GPUs."""

    cpu_milli: int = 0
    memory: int = 0  # bytes

    @classmethod
    def of(cls, pod: Pod) -> "PodRequest":
        """The requests of a pod that is to be placed."""
        amounts = pod_request(pod)
        return cls(amounts.get(CPU, 0), amounts.get(MEMORY, 0))

    @classmethod
    def held_by(cls, pod: Pod) -> "PodRequest":
        """What a pod on a node takes, also during a resize."""
        amounts = pod_held(pod)
        return cls(amounts.get(CPU, 0), amounts.get(MEMORY, 0))

    def plus(self, other: "PodRequest") -> "PodRequest":
        return PodRequest(self.cpu_milli + other.cpu_milli, self.memory + other.memory)


NO_REQUEST = PodRequest()


class FreeAmounts(NamedTuple):
    """Free cpu and memory of a node; None: unknown, enough for every request."""

    cpu_milli: int | None = None
    memory: int | None = None  # bytes

    @classmethod
    def of(cls, node: Node) -> "FreeAmounts":
        """Of a node without pods."""
        offered = counted(node.status.allocatable)
        return cls(offered.get(CPU), offered.get(MEMORY))

    def without(self, request: PodRequest) -> "FreeAmounts":
        return FreeAmounts(_less(self.cpu_milli, request.cpu_milli), _less(self.memory, request.memory))


class NodeRoom(msgspec.Struct, frozen=True, gc=False):
    """What is free on a node."""

    gpus: FreeParts
    amounts: FreeAmounts = FreeAmounts()


def whole_gpus(layout: BoardLayout, free: DeviceSet) -> FreeParts:
    """Free parts if each GPU is either free or used as a whole."""
    return tuple([WHOLE if free >> position & 1 else 0 for position in range(layout.size)])


def _less(amount: int | None, taken: int) -> int | None:
    return None if amount is None else max(0, amount - taken)


# --- The room of many nodes, so that nodes with about the same room are alike.

BITS = 4  # of an amount that are kept: steps of a sixteenth to an eighth of the amount


class Useful(NamedTuple):
    """The most cpu and memory of a node that make a difference."""

    cpu_milli: int
    memory: int


def in_steps(amounts: FreeAmounts, useful: Useful) -> FreeAmounts:
    """Free amounts, rounded down. More than the useful amounts is no more use."""
    return FreeAmounts(_in_steps(amounts.cpu_milli, useful.cpu_milli), _in_steps(amounts.memory, useful.memory))


def _in_steps(amount: int | None, useful: int) -> int | None:
    if amount is None or amount >= useful:
        return None if amount is None else useful
    shift = max(0, amount.bit_length() - BITS)
    return amount >> shift << shift


# --- What pods have taken.


class RequestLedger:
    """Owner of the record how much cpu and memory the pods on each node take; updated by each changed pod."""

    def __init__(self) -> None:
        self._of_pod: dict[str, tuple[str, PodRequest]] = {}  # node and request by uid
        self._taken: dict[str, PodRequest] = {}  # by node
        self._touched: set[str] = set()

    def put_pod(self, pod: Pod) -> None:
        """A new or changed pod."""
        uid = pod.metadata.uid
        entry = (pod.node, PodRequest.held_by(pod)) if pod.node and not pod.is_finished else None
        if self._of_pod.get(uid) == entry:
            return
        self.drop_pod(uid)
        if entry is not None:
            self._of_pod[uid] = entry
            self._add(*entry)

    def drop_pod(self, uid: str) -> None:
        """A deleted pod."""
        entry = self._of_pod.pop(uid, None)
        if entry is not None:
            node, request = entry
            self._add(node, PodRequest(-request.cpu_milli, -request.memory))

    def taken(self, node: str) -> PodRequest:
        """What the pods on the node take together."""
        return self._taken.get(node, NO_REQUEST)

    def take_touched(self) -> set[str]:
        """Names of nodes with changes since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    def _add(self, node: str, request: PodRequest) -> None:
        after = self._taken.pop(node, NO_REQUEST).plus(request)
        if any(after):
            self._taken[node] = after
        self._touched.add(node)
