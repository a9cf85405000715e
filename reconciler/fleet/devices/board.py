"""The GPUs of one node: ids, islands, bandwidths, models, memory and health.

A board is read from the Node, the status of its GpuNodeStatus, and the devices that its GpuPool declares. Without a
report, the node has one island of unknown bandwidth. Sets of GPUs are integers: bit N stands for the GPU at position N,
and positions are in the order of ids.

An agent may report anything, so reading is bounded and total: at most 16 GPUs with the ids 0 to 15 take part, and a
field with an invalid value counts as absent.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.policy.gpu import ClaimedDevices, Devices
from reconciler.model.quantity import Quantity

MOST_DEVICES = 16
PCIE_GBPS = 64  # between two islands, of GPUs that are not alone in theirs

DeviceSet = int  # bit N: the GPU at position N

_MOST_REPORTED = 64  # entries of a report that are read
_MOST_GBPS = 1_000_000
_LONGEST_NAME = 63
_LONGEST_QUANTITY = 32
# No comma: the annotation with the UUIDs of a pod separates them by commas.
_UUID = re.compile(r"[A-Za-z0-9._/:-]{1,96}", re.ASCII)


class Gpu(msgspec.Struct, frozen=True, gc=False):
    """The part of one GPU's description that boards of one layout share."""

    id: int
    island: int  # number of the island, in order of first appearance
    bandwidth_gbps: int | None = None  # to the other GPUs of the island; None if unknown
    model: str = ""  # empty if unknown
    memory_milli: int = 0  # thousandths of a byte, as in a Quantity; 0 if unknown


class BoardLayout:
    """GPUs with their islands and pair bandwidths; boards with equal GPUs share one layout object.

    Layouts are compared by identity, so that a layout is a fast key of a cache.
    """

    __slots__ = ("_position_of", "everything", "gpus", "islands", "pairs", "size")

    def __init__(self, gpus: tuple[Gpu, ...]) -> None:
        self.gpus = gpus
        self.size = len(gpus)
        self.everything: DeviceSet = (1 << self.size) - 1
        self.islands: tuple[DeviceSet, ...] = _islands(gpus)
        self.pairs = _pairs(gpus, self.islands)  # GB/s by two positions; None if unknown
        self._position_of = {gpu.id: position for position, gpu in enumerate(gpus)}

    def position_of(self, device_id: int) -> int | None:
        """Position of the GPU with this id; None if there is no such GPU."""
        return self._position_of.get(device_id)

    def ids_of(self, devices: DeviceSet) -> tuple[int, ...]:
        """The ids of a set, ascending."""
        return tuple([self.gpus[position].id for position in positions(devices)])

    def set_of(self, device_ids: tuple[int, ...]) -> DeviceSet:
        """The set of these ids, without ids that the board does not have."""
        return sum({1 << at for each in device_ids if (at := self._position_of.get(each)) is not None})


class Board(msgspec.Struct, frozen=True, gc=False):
    """The GPUs of one node."""

    layout: BoardLayout
    uuids: tuple[str, ...]  # by position; empty if unknown
    healthy: DeviceSet
    is_reported: bool = False  # by a GpuNodeStatus
    is_suspended: bool = False  # the GpuNodeStatus suspends new allocations

    @property
    def allocatable(self) -> DeviceSet:
        """GPUs that may be lent if nobody uses them."""
        return 0 if self.is_suspended else self.healthy

    def set_of_uuid(self, uuid: str) -> DeviceSet:
        """The GPU with this UUID; the empty set if the UUID is unknown."""
        return 1 << self.uuids.index(uuid) if uuid and uuid in self.uuids else 0


def positions(devices: DeviceSet) -> Iterator[int]:
    """The positions of a set, ascending."""
    while devices:
        lowest = devices & -devices
        yield lowest.bit_length() - 1
        devices ^= lowest


@lru_cache(maxsize=4_096)
def layout_of(gpus: tuple[Gpu, ...]) -> BoardLayout:
    """The one layout of these GPUs, which must be in the order of ids."""
    return BoardLayout(gpus)


@lru_cache(maxsize=65_536)
def suitable(layout: BoardLayout, model: str | None, memory_milli: int) -> DeviceSet:
    """GPUs with the model and at least so much memory, whether or not they are free."""
    return sum(
        1 << position
        for position, gpu in enumerate(layout.gpus)
        if model in {None, gpu.model} and memory_milli <= gpu.memory_milli
    )


def suitable_for(layout: BoardLayout, claimed: ClaimedDevices) -> DeviceSet:
    """GPUs with the requested model and memory, whether or not they are free."""
    return suitable(layout, claimed.model, 0 if claimed.memory is None else claimed.memory.milli)


def read_board(node: Node, report: Unstructured | None, declared: Devices | None) -> Board:
    """The board of a node. `report`: its GpuNodeStatus; `declared`: the devices of its GpuPool, if known."""
    is_suspended = report is not None and report.spec.get("suspend") is True
    reported = _read_report(report.status) if report is not None else []
    if not reported:
        count = min(MOST_DEVICES, _count_without_report(node, declared))
        layout = layout_of(tuple([_described(Gpu(number, 0), declared) for number in range(count)]))
        return Board(layout, ("",) * count, layout.everything, is_suspended=is_suspended)
    layout = layout_of(_numbered(reported, declared))
    known: set[str] = set()
    healthy = 0
    for position, each in enumerate(reported):
        # Two entries with one UUID are one GPU: only the first can be lent.
        healthy |= (each.is_healthy and each.uuid not in known) << position
        known |= {each.uuid} - {""}
    uuids = tuple([each.uuid for each in reported])
    return Board(layout, uuids, healthy, is_reported=True, is_suspended=is_suspended)


# --- Reading of a report.


class _Reported(msgspec.Struct, frozen=True, gc=False):
    """A valid entry of a report."""

    id: int
    uuid: str
    island: str
    bandwidth_gbps: int | None
    model: str
    memory_milli: int
    is_healthy: bool


def _read_report(status: Mapping[str, Any]) -> list[_Reported]:
    """The GPUs of the report in the order of ids; of several entries with one id, the first."""
    entries = status.get("devices")
    by_id: dict[int, _Reported] = {}
    for entry in entries[:_MOST_REPORTED] if isinstance(entries, list) else ():
        device_id = entry.get("id") if isinstance(entry, dict) else None
        if type(device_id) is int and 0 <= device_id < MOST_DEVICES and device_id not in by_id:
            by_id[device_id] = _read_entry(device_id, entry)
    return [by_id[each] for each in sorted(by_id)]


def _read_entry(device_id: int, entry: Mapping[str, Any]) -> _Reported:
    uuid, bandwidth = entry.get("uuid"), entry.get("bandwidthGBps")
    return _Reported(
        id=device_id,
        uuid=uuid if isinstance(uuid, str) and _UUID.fullmatch(uuid) else "",
        island=_name(entry.get("island")),
        bandwidth_gbps=bandwidth if type(bandwidth) is int and 0 <= bandwidth <= _MOST_GBPS else None,
        model=_name(entry.get("model")),
        memory_milli=_milli(entry.get("memory")),
        is_healthy=entry.get("health") != "Unhealthy",
    )


def _name(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _LONGEST_NAME else ""


def _milli(value: Any) -> int:
    text = str(value) if type(value) is int and 0 <= value < 2**63 else value
    if not isinstance(text, str) or len(text) > _LONGEST_QUANTITY:
        return 0
    try:
        return Quantity.parse(text).milli
    except ValueError:
        return 0


def _count_without_report(node: Node, declared: Devices | None) -> int:
    """Allocatable GPUs; of a node that does not advertise GPUs yet, the number that the pool declares."""
    if names.NVIDIA_GPU in node.status.allocatable:
        return node.gpus
    return declared.count if declared is not None else 0


def _numbered(reported: list[_Reported], declared: Devices | None) -> tuple[Gpu, ...]:
    """GPUs with islands as numbers, so that names of islands make no difference. A GPU without one is alone."""
    numbers: dict[str, int] = {}
    gpus = []
    for position, each in enumerate(reported):
        key = f"named {each.island}" if each.island else f"alone {position}"
        island = numbers.setdefault(key, len(numbers))
        gpus.append(_described(Gpu(each.id, island, each.bandwidth_gbps, each.model, each.memory_milli), declared))
    return tuple(gpus)


def _described(gpu: Gpu, declared: Devices | None) -> Gpu:
    """Model and memory of the pool where the report has none."""
    if declared is None:
        return gpu
    return Gpu(
        gpu.id, gpu.island, gpu.bandwidth_gbps, gpu.model or declared.model, gpu.memory_milli or declared.memory.milli
    )


# --- Islands and pair bandwidths.


def _islands(gpus: tuple[Gpu, ...]) -> tuple[DeviceSet, ...]:
    found: dict[int, DeviceSet] = {}
    for position, gpu in enumerate(gpus):
        found[gpu.island] = found.get(gpu.island, 0) | 1 << position
    return tuple(found.values())


def _pairs(gpus: tuple[Gpu, ...], islands: tuple[DeviceSet, ...]) -> tuple[tuple[int | None, ...], ...]:
    """GB/s of each pair. Within an island, the smaller bandwidth; between islands, that of PCIe for a GPU with others
    in its island, and the reported one for a GPU that is alone.
    """
    alone = {position for island in islands for position in positions(island) if island.bit_count() == 1}
    outward = [gpu.bandwidth_gbps if position in alone else PCIE_GBPS for position, gpu in enumerate(gpus)]
    return tuple(
        tuple(
            _smaller(one.bandwidth_gbps, other.bandwidth_gbps)
            if one.island == other.island
            else _smaller(outward[first], outward[second])
            for second, other in enumerate(gpus)
        )
        for first, one in enumerate(gpus)
    )


def _smaller(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
