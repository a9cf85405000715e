"""Node agents: they report the GPUs of each node of a pool in a GpuNodeStatus, while the node exists."""

from collections.abc import Sequence

from reconciler.model.plan.decision import Ref
from reconciler.policy.shape import API_VERSION
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import Key, declared_pool_of
from reconciler.simulate.scenario.cluster import NodeBoard
from reconciler.simulate.stage import Stage

_MANAGER = "gpu-agent"


class Agents:
    """An Actor."""

    def __init__(self, boards: Sequence[NodeBoard]) -> None:
        self._boards = {each.pool: each for each in boards}

    def start(self, stage: Stage) -> None:
        self._world = stage.world
        if self._boards:
            stage.on_change("node agents report", ("Node",), self._look)

    def _look(self, keys: Sequence[Key]) -> None:
        for key in keys:
            node, name = self._world.at(key), key[2]
            report = Ref("GpuNodeStatus", "", name)
            board = self._boards.get(declared_pool_of(node)) if node is not None else None
            if node is None:
                self._world.remove(report, _MANAGER)
            elif board is not None and self._world.get(report) is None:
                self._world.put(report_of(name, board), _MANAGER)


def report_of(node: str, board: NodeBoard) -> Object:
    """The GpuNodeStatus of a node."""
    islands = [number for number, count in enumerate(board.islands) for _ in range(count)]
    devices = [
        {
            "id": at,
            "uuid": f"GPU-{node}-{at}",
            "island": f"nvlink-{island}",
            "bandwidthGBps": board.bandwidth_gbps,
            "health": "Unhealthy" if at in board.unhealthy else "Healthy",
        }
        for at, island in enumerate(islands)
    ]
    head = {"apiVersion": API_VERSION, "kind": "GpuNodeStatus", "metadata": {"name": node}, "spec": {}}
    return {**head, "status": {"devices": devices}}
