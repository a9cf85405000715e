"""What a node offers a claim: how it compares with other nodes, and the Binding that takes its GPUs.

The extender's desk and the planner that binds pods itself compare nodes alike.
"""

from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet
from reconciler.fleet.devices.choice import Chosen
from reconciler.fleet.devices.device_lease import allocation_text, lease_name
from reconciler.fleet.devices.fragmentation import NodeRoom, whole_gpus
from reconciler.fleet.devices.ranking import DemandWeights, NodeRank, loss, node_rank
from reconciler.model import names
from reconciler.model.plan.decision import Bind, LentDevice
from reconciler.model.policy.gpu import Allocation, ClaimedDevices


def rank(
    layout: BoardLayout, free: DeviceSet, devices: ClaimedDevices, chosen: Chosen, demand: DemandWeights
) -> NodeRank:
    """How a node with these free GPUs compares with others; the smallest rank is the best."""
    before, after = NodeRoom(whole_gpus(layout, free)), NodeRoom(whole_gpus(layout, free & ~chosen.devices))
    return node_rank(devices, chosen.score, loss(layout, before, after, demand), free.bit_count())


def binding(node: str, board: Board, devices: DeviceSet, allocation: Allocation) -> Bind:
    """With the device plugin, the kubelet chooses the GPUs: Leases count slots, and UUIDs are not known yet."""
    is_chosen = allocation == "agent"
    ids = board.layout.ids_of(devices)
    uuids = [board.uuids[position] for position in range(board.layout.size) if devices >> position & 1]
    leases = tuple(
        LentDevice(lease_name(node, device), device, uuid if is_chosen else "")
        for device, uuid in zip(ids, uuids, strict=True)
    )
    annotations = [(names.ALLOCATED, allocation_text(node, ids))]
    annotations += [(names.DEVICES, ",".join(uuids))] if is_chosen else []
    return Bind(node=node, leases=leases, annotations=tuple(annotations))
