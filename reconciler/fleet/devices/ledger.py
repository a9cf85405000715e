"""Owner of the record which GPUs of which node are lent or used; updated incrementally by changed Leases and pods.

A GPU is taken if a held Lease names it, by UUID or by id: after a reboot, the GPU with the UUID of a Lease may have
another id, while the name of the Lease still occupies the old one.

A pod also uses GPUs without Leases: one without a GpuClaim, whose GPUs the kubelet chooses, or one whose Lease was
deleted. As many GPUs as the pod lacks Leases for count as used: first those that its annotation `allocated` names, then
the highest healthy ids that are free. A held Lease that names no GPU counts as one of unknown id as well.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, KeysView
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.fleet.amounts import GpuRequests, claim_of
from reconciler.fleet.devices.board import Board, DeviceSet
from reconciler.fleet.devices.device_lease import UNKNOWN, DeviceLease, read_allocation, read_device_lease
from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.pod import Pod


class LeaseConflict(msgspec.Struct, frozen=True, gc=False, order=True):
    """One GPU that several pods hold."""

    node: str
    id: int
    leases: tuple[DeviceLease, ...]


class GpuUser(msgspec.Struct, frozen=True, gc=False, order=True):
    """An unfinished pod on a node that uses GPUs."""

    uid: str
    title: str  # namespace/name
    gpus: int
    claim: tuple[str, str] | None = None  # namespace and name
    allocated: tuple[int, ...] = ()  # ids in its annotation


class TakenDevices(msgspec.Struct, frozen=True, gc=False):
    """GPUs of a board that are not free for another pod."""

    lent: DeviceSet = 0  # by Leases
    assumed: DeviceSet = 0  # used without a Lease
    excess: int = 0  # GPUs used without a Lease for which no healthy GPU of the board is left

    @property
    def all(self) -> DeviceSet:
        return self.lent | self.assumed


_NOTHING = TakenDevices()


class _NodeEntry(msgspec.Struct):
    """The Leases and GPU users of one node, and the last answer."""

    leases: dict[str, DeviceLease] = {}  # by name
    users: dict[str, GpuUser] = {}  # by uid
    board: Board | None = None  # of the last answer
    taken: TakenDevices = _NOTHING


class DeviceLedger:
    """The GPUs in use by node. Each method costs what it changes or returns, whatever the size of the cluster."""

    def __init__(
        self, leases: Iterable[Lease] = (), pods: Iterable[Pod] = (), gpu_requests: GpuRequests | None = None
    ) -> None:
        self._gpu_requests = gpu_requests or GpuRequests()
        self._by_node: dict[str, _NodeEntry] = {}
        self._node_of_lease: dict[str, str] = {}
        self._node_of_user: dict[str, str] = {}
        self._pods_of_claim: dict[tuple[str, str], dict[str, Pod]] = {}
        self._leases_of_holder: dict[str, set[str]] = {}
        self._touched: set[str] = set()
        for lease in leases:
            self.put_lease(lease)
        for pod in pods:
            self.put_pod(pod)

    # Changes

    def put_lease(self, lease: Lease) -> None:
        """A new or changed Lease."""
        if lease.metadata.namespace != names.LEASES_NAMESPACE:
            return
        self.drop_lease(lease.metadata.name)
        found = read_device_lease(lease)
        if found is None:
            return
        self._node_of_lease[found.name] = found.node
        self._leases_of_holder.setdefault(found.holder, set()).add(found.name)
        self._touch(found.node).leases[found.name] = found

    def drop_lease(self, name: str) -> None:
        """A deleted Lease."""
        node = self._node_of_lease.pop(name, None)
        if node is None:
            return
        lease = self._touch(node).leases.pop(name)
        held = self._leases_of_holder[lease.holder]
        held.discard(name)
        if not held:
            del self._leases_of_holder[lease.holder]
        self._forget_if_empty(node)

    def put_pod(self, pod: Pod) -> None:
        """A new or changed pod."""
        uid = pod.metadata.uid
        self.drop_pod(uid)
        gpus = self._gpu_requests.of(pod)
        has_claim = bool(pod.metadata.annotations.claim)
        if not pod.node or pod.is_finished or not (gpus or has_claim):
            return
        if has_claim:  # also with 0 GPUs: the claim may be created later
            self._pods_of_claim.setdefault(claim_of(pod), {})[uid] = pod
        allocated = read_allocation(pod.metadata.annotations.allocated, pod.node) if has_claim else ()
        user = GpuUser(uid, pod.title, gpus, claim_of(pod) if has_claim else None, allocated)
        self._node_of_user[uid] = pod.node
        self._touch(pod.node).users[uid] = user

    def drop_pod(self, uid: str) -> None:
        """A deleted pod."""
        node = self._node_of_user.pop(uid, None)
        if node is None:
            return
        user = self._touch(node).users.pop(uid)
        if user.claim is not None:
            pods = self._pods_of_claim[user.claim]
            pods.pop(uid, None)
            if not pods:
                del self._pods_of_claim[user.claim]
        self._forget_if_empty(node)

    def take_requests(self, gpu_requests: GpuRequests) -> None:
        """The observed GpuClaims changed."""
        differing = self._gpu_requests.differing(gpu_requests)
        self._gpu_requests = gpu_requests
        for claim in sorted(differing & self._pods_of_claim.keys()):
            for pod in list(self._pods_of_claim[claim].values()):
                self.put_pod(pod)

    def advance(
        self,
        gone_leases: Iterable[Lease],
        came_leases: Iterable[Lease],
        gone_pods: Iterable[Pod],
        came_pods: Iterable[Pod],
    ) -> None:
        """Applies removed and added objects; a replaced object is in both."""
        for lease in gone_leases:
            if lease.metadata.namespace == names.LEASES_NAMESPACE:
                self.drop_lease(lease.metadata.name)
        for lease in came_leases:
            self.put_lease(lease)
        for pod in gone_pods:
            self.drop_pod(pod.metadata.uid)
        for pod in came_pods:
            self.put_pod(pod)

    def take_touched(self) -> set[str]:
        """Names of nodes with changes since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    # Answers

    def taken(self, node: str, board: Board) -> TakenDevices:
        """The GPUs of the node that are not free."""
        entry = self._by_node.get(node)
        if entry is None:
            return _NOTHING
        if entry.board is not board:
            entry.board, entry.taken = board, self._taken(entry, board)
        return entry.taken

    def taken_without(self, node: str, board: Board, uids: AbstractSet[str]) -> TakenDevices:
        """The same if these pods and their Leases were gone."""
        entry = self._by_node.get(node)
        if entry is None:
            return _NOTHING
        leases = {name: each for name, each in entry.leases.items() if each.holder not in uids}
        users = {uid: each for uid, each in entry.users.items() if uid not in uids}
        return self._taken(_NodeEntry(leases, users), board)

    def free(self, node: str, board: Board) -> DeviceSet:
        """The GPUs of the node that may be lent."""
        return board.allocatable & ~self.taken(node, board).all

    def leases_on(self, node: str) -> list[DeviceLease]:
        """The held Leases of a node's GPUs, by id."""
        entry = self._by_node.get(node)
        return sorted(entry.leases.values()) if entry is not None else []

    def leases_of(self, uid: str) -> list[DeviceLease]:
        """The Leases that a pod holds, by node and id."""
        held = self._leases_of_holder.get(uid, ())
        return sorted(self._by_node[self._node_of_lease[name]].leases[name] for name in held)

    @property
    def holders(self) -> KeysView[str]:
        """Uids of the pods that hold Leases."""
        return self._leases_of_holder.keys()

    def users_without_claim(self, node: str) -> list[GpuUser]:
        """Pods on the node that use GPUs and have no GpuClaim, by uid."""
        entry = self._by_node.get(node)
        return sorted(each for each in entry.users.values() if each.claim is None) if entry is not None else []

    def conflicts_on(self, node: str) -> list[LeaseConflict]:
        """GPUs of the node that several pods hold, by id. A GPU with a UUID in one Lease is the same in another."""
        by_gpu: dict[tuple[int, str], list[DeviceLease]] = {}
        for lease in self.leases_on(node):
            if lease.id != UNKNOWN:
                by_gpu.setdefault((lease.id, ""), []).append(lease)
            if lease.uuid:
                by_gpu.setdefault((UNKNOWN, lease.uuid), []).append(lease)
        several = {
            tuple(leases): leases[0].id for leases in by_gpu.values() if len({each.holder for each in leases}) > 1
        }
        return sorted(LeaseConflict(node, device_id, leases) for leases, device_id in several.items())

    def nodes_with_leases(self) -> Iterator[str]:
        """Names of nodes with a held Lease; walks all nodes in use."""
        return (node for node, entry in sorted(self._by_node.items()) if entry.leases)

    def fingerprint(self) -> tuple[object, ...]:
        """All Leases and users: equal for equal observations in any history."""
        entries = sorted(self._by_node.items())
        return tuple((name, *sorted(entry.leases.values()), *sorted(entry.users.values())) for name, entry in entries)

    # The only methods that change entries

    def _touch(self, node: str) -> _NodeEntry:
        self._touched.add(node)
        entry = self._by_node.get(node)
        if entry is None:
            entry = self._by_node[node] = _NodeEntry({}, {})
        entry.board = None
        return entry

    def _forget_if_empty(self, node: str) -> None:
        entry = self._by_node[node]
        if not entry.leases and not entry.users:
            del self._by_node[node]

    def _taken(self, entry: _NodeEntry, board: Board) -> TakenDevices:
        layout, lent, assumed, lacking = board.layout, 0, 0, 0
        for lease in entry.leases.values():
            devices = layout.set_of((lease.id,)) | board.set_of_uuid(lease.uuid)
            lent |= devices
            lacking += lease.id == UNKNOWN and not devices
        leases = Counter(lease.holder for lease in entry.leases.values())
        for user in sorted(entry.users.values()):
            lacks = max(0, user.gpus - leases[user.uid])
            if not lacks:
                continue
            named = [layout.set_of((device_id,)) & ~(lent | assumed) for device_id in user.allocated]
            known = [each for each in named if each][:lacks]
            assumed |= sum(known)
            lacking += lacks - len(known)
        left = board.healthy & ~(lent | assumed)
        while lacking and left:
            highest = 1 << (left.bit_length() - 1)
            assumed, left, lacking = assumed | highest, left ^ highest, lacking - 1
        return TakenDevices(lent, assumed, lacking)
