"""Reads the node list of an openb trace: sn, cpu_milli, memory_mib, gpu, model."""

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Text
from reconciler.model.problem import Problem
from reconciler.simulate.workloads.openb.columns import NODE_COLUMNS, Cells, TraceRows
from reconciler.simulate.workloads.openb.naming import model_of, named

_PODS = "250"  # on one node; the list does not say, and large machines of it hold more than kubelets' usual 110


class OpenbNode(msgspec.Struct, frozen=True):
    """A machine."""

    name: str
    capacity: tuple[tuple[str, str], ...]
    model: str  # of its GPUs


class OpenbNodes(msgspec.Struct, frozen=True):
    """What a node list says; nothing of it counts where it has problems."""

    nodes: tuple[OpenbNode, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_nodes(text: Text) -> OpenbNodes:
    """A node a line."""
    rows = TraceRows(text, NODE_COLUMNS)
    openb_nodes: dict[str, OpenbNode] = {}
    for row in rows:
        node = _node(row)
        if node.name in openb_nodes:
            row.refuse(f"sn: there is a {node.name} already", "give each node a name of its own")
        openb_nodes[node.name] = node
    return OpenbNodes(tuple(openb_nodes.values()), tuple(rows.problems))


def _node(row: Cells) -> OpenbNode:
    cpu, memory, gpus = (row.number(name) for name in ("cpu_milli", "memory_mib", "gpu"))
    capacity = [("cpu", f"{cpu}m"), ("memory", f"{memory}Mi"), ("pods", _PODS)]
    if gpus:
        capacity.append((names.NVIDIA_GPU, str(gpus)))
    return OpenbNode(named(row.text("sn")), tuple(sorted(capacity)), model_of(row.text("model")))
