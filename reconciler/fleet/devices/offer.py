"""What a node offers a claim: how it compares with other nodes, and the Binding that takes its GPUs.

The extender's desk and the planner that binds pods itself compare nodes alike.
"""

import msgspec

from reconciler.fleet.devices.board import Board, DeviceSet
from reconciler.fleet.devices.choice import Chosen, choose
from reconciler.fleet.devices.device_lease import allocation_text, lease_name
from reconciler.fleet.devices.node_room import FreeAmounts, PodRequest, whole_gpus
from reconciler.fleet.devices.ranking import DemandWeights, FreeGpus, NodeRank, free_gpus, node_rank
from reconciler.model import names
from reconciler.model.plan.decision import Bind, LentDevice, Obstacle
from reconciler.model.policy.gpu import Allocation, ClaimedDevices


class Offer(msgspec.Struct, frozen=True, gc=False):
    """The GPUs that a claim gets on nodes with the same free GPUs, and what the requests seen lose by that."""

    chosen: Chosen
    rank: NodeRank  # without the loss
    left: FreeGpus
    demand: DemandWeights

    def rank_for(self, value: int, amounts: FreeAmounts, request: PodRequest) -> NodeRank:
        """How a node of this value, with so much free cpu and memory, compares with others for a pod; the smallest rank
        is the best.
        """
        return self.rank._replace(loss=value - self.left.value(amounts.without(request), self.demand))


def offer(board: Board, free: DeviceSet, devices: ClaimedDevices, demand: DemandWeights) -> Offer | Obstacle:
    """The best of the free GPUs for a claim, or why there are none."""
    chosen = choose(board, ~free, devices, demand.mix)
    if not isinstance(chosen, Chosen):
        return chosen
    free &= board.allocatable
    left = free_gpus(board.layout, whole_gpus(board.layout, free & ~chosen.devices), demand.mix)
    return Offer(chosen, node_rank(devices, chosen.score, 0, free.bit_count()), left, demand)


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
