"""The ledgers of all nodes as data: for people, for metrics and for planners."""

from collections.abc import Iterable, Mapping

import msgspec

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.plan.pressure import Amounts, Bounds, LedgerPod


class PressureFigures(msgspec.Struct, frozen=True, gc=False):
    """One resource of a node, or of all nodes of a pool."""

    reservable: int = 0
    watermark: int = 0
    reserved: int = 0
    buffer: int = 0
    logical: int = 0
    capacity: int = 0
    accounted: int = 0
    left: int = 0  # what further migrations should relieve


class AgentState(msgspec.Struct, frozen=True, gc=False):
    """What is known of the agent of a pod: the load that it reported, and the compute units that it was told last."""

    load_milli: int = 0
    compute_unit: Amounts = {}


class NodePressure(msgspec.Struct, frozen=True):
    """The ledger of one node. Mappings are in the order of their keys, pods in the order of their uids."""

    node: str
    pool: str
    policy: str
    bounds: Mapping[str, Bounds]  # by resource
    figures: Mapping[str, PressureFigures]  # by resource
    pods: tuple[LedgerPod, ...]
    agents: Mapping[str, AgentState]  # by uid of the pod


class LedgerDump(msgspec.Struct, frozen=True):
    """All ledgers, by the name of the node."""

    epoch: int | None  # of the leadership; None: this replica does not lead
    nodes: tuple[NodePressure, ...] = ()


def node_figures(ledger: NodeLedger) -> dict[str, PressureFigures]:
    """The figures of a node by resource, in the order of their names."""
    found = {}
    for name, bounds in sorted(ledger.bounds.items()):
        pressure = ledger.pressure(name)
        found[name] = PressureFigures(bounds.reservable, bounds.watermark, *pressure, pressure.left)
    return found


def pool_figures(ledgers: Iterable[tuple[str, NodeLedger]]) -> dict[tuple[str, str], PressureFigures]:
    """The sums over all nodes, by pool and resource. `ledgers`: with the pool of each."""
    sums: dict[tuple[str, str], list[int]] = {}
    for pool, ledger in ledgers:
        for name, bounds in ledger.bounds.items():
            pressure = ledger.pressure(name)
            figures = (bounds.reservable, bounds.watermark, *pressure, pressure.left)
            known = sums.get((pool, name))
            sums[pool, name] = list(figures) if known is None else [a + b for a, b in zip(known, figures, strict=True)]
    return {key: PressureFigures(*each) for key, each in sorted(sums.items())}
