"""The ledgers of all nodes as plain values for the planner, and back."""

from collections.abc import Callable, Iterable

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.plan.pressure import NodePods, PressureState


def pressure_state(ledgers: Iterable[tuple[str, NodeLedger]], load_milli: Callable[[str], int | None]) -> PressureState:
    """The state of ledgers, in a stable order. `load_milli`: the load that the agent of a pod reported last."""
    by_name = dict(ledgers)
    nodes = tuple(NodePods(name, dict(ledger.bounds), tuple(ledger.pods)) for name, ledger in sorted(by_name.items()))
    uids = sorted(pod.uid for ledger in by_name.values() for pod in ledger.elastic_pods)
    loads = {uid: load for uid in uids if (load := load_milli(uid)) is not None}
    return PressureState(nodes, loads)


def node_ledger(pods: NodePods) -> NodeLedger:
    """A new ledger with these entries."""
    ledger = NodeLedger(pods.bounds)
    for pod in pods.pods:
        ledger.put(pod)
    return ledger
