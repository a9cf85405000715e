"""What a node offers a claim: how it compares with other nodes, and the Binding that takes its GPUs.

The extender's desk and the planner that binds pods itself compare nodes alike.
"""

from collections import Counter
from collections.abc import Mapping

from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet
from reconciler.fleet.devices.choice import Chosen
from reconciler.fleet.devices.device_lease import allocation_text, lease_name
from reconciler.fleet.devices.fragmentation import NodeRoom, RequestMix, fragmentation_increase, whole_gpus
from reconciler.model import names
from reconciler.model.plan.decision import Bind, LentDevice
from reconciler.model.policy.gpu import Allocation, ClaimedDevices

Rank = tuple[int, ...]  # of a node for a claim: the smallest is the best
FreeOfModel = Mapping[str, int]  # free GPUs of the cluster, by model

NO_FREE: FreeOfModel = Counter()


def rank(
    layout: BoardLayout,
    free: DeviceSet,
    devices: ClaimedDevices,
    chosen: Chosen,
    mix: RequestMix,
    free_of_model: FreeOfModel = NO_FREE,
) -> Rank:
    """First the bandwidth of the GPUs, then what the node and the cluster lose; at last the fullest node."""
    score, model = chosen.score, layout.gpus[0].model
    requested = sum(weight for request, weight in mix.requests if request.model == model)
    before = NodeRoom(whole_gpus(layout, free))
    after = NodeRoom(whole_gpus(layout, free & ~chosen.devices))
    return (
        int(devices.policy != "any" and not score.is_one_island),
        -score.smallest_gbps,
        -score.sum_gbps,
        0 if devices.model else requested,
        0 if devices.model else -free_of_model.get(model, 0),
        score.lost.pairs,
        score.lost.quads,
        score.lost.eights,
        fragmentation_increase(layout, before, after, mix),
        free.bit_count(),
    )


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
