"""Owner of the pods and Leases of each GpuClaim, updated incrementally, and of the claims whose status is published.

A fleet has one instance, so that a plan costs what changed since the plan before, and not the number of claims. A
claim is settled once its published status was found to be the current one; every change of the claim, its pods, their
Leases or the pools ends that.
"""

from collections.abc import Iterable, Mapping

from reconciler.fleet.amounts import claim_of
from reconciler.fleet.devices.device_lease import DeviceLease, read_device_lease
from reconciler.fleet.snapshot.diff import changes
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import GpuPool

Key = tuple[str, str]  # namespace and name of a claim


def waits_for_gpus(pod: Pod) -> bool:
    """Whether the pod of a claim has no node yet."""
    return not pod.node and not pod.is_finished


class ClaimIndex:
    """`fleet.part(ClaimIndex)`; `follow` takes the current observation."""

    def __init__(self) -> None:
        self._observed = Observed()
        self._pools: tuple[Declared[GpuPool], ...] = ()
        self.claims: Mapping[Key, Unstructured] = {}
        self._pods: dict[Key, dict[str, Pod]] = {}  # by uid
        self._claim_of_pod: dict[str, Key] = {}
        self._leases: dict[str, dict[str, DeviceLease]] = {}  # by holder and name
        self._unsettled: set[Key] = set()
        self._waiting: dict[Key, int] = {}  # number of waiting pods

    def follow(self, observed: Observed, pools: tuple[Declared[GpuPool], ...]) -> None:
        """Takes the next observation."""
        before, self._observed = self._observed, observed
        if observed.policies is not before.policies:
            self._follow_claims(gpu_claims(observed.policies))
        gone, came = changes(before.pods, observed.pods)
        for pod in gone:
            self._drop_pod(pod)
        for pod in came:
            self._put_pod(pod)
        gone_leases, came_leases = changes(before.leases, observed.leases)
        self._drop_leases(gone_leases)
        self._put_leases(came_leases)
        if pools is not self._pools and pools != self._pools:
            self._pools = pools
            self._unsettled.update(self.claims)

    def _follow_claims(self, claims: Iterable[Unstructured]) -> None:
        after = {(each.metadata.namespace, each.name): each for each in claims}
        changed = {key for key, each in after.items() if self.claims.get(key) is not each}
        self._unsettled |= changed
        self._unsettled -= self.claims.keys() - after.keys()
        self.claims = after

    def _put_pod(self, pod: Pod) -> None:
        if not pod.metadata.annotations.claim:
            return
        key, uid = claim_of(pod), pod.metadata.uid
        self._pods.setdefault(key, {})[uid] = pod
        self._claim_of_pod[uid] = key
        self._unsettled.add(key)
        if waits_for_gpus(pod):
            self._waiting[key] = self._waiting.get(key, 0) + 1

    def _drop_pod(self, pod: Pod) -> None:
        key = self._claim_of_pod.pop(pod.metadata.uid, None)
        if key is None:
            return
        pods = self._pods[key]
        before = pods.pop(pod.metadata.uid)
        if not pods:
            del self._pods[key]
        self._unsettled.add(key)
        if waits_for_gpus(before):
            self._waiting[key] -= 1
            if not self._waiting[key]:
                del self._waiting[key]

    def _drop_leases(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            device = read_device_lease(lease)
            if device is None or device.holder not in self._leases:
                continue
            held = self._leases[device.holder]
            held.pop(device.name, None)
            if not held:
                del self._leases[device.holder]
            self._touch_pod(device.holder)

    def _put_leases(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            device = read_device_lease(lease)
            if device is not None:
                self._leases.setdefault(device.holder, {})[device.name] = device
                self._touch_pod(device.holder)

    def _touch_pod(self, uid: str) -> None:
        if (key := self._claim_of_pod.get(uid)) is not None:
            self._unsettled.add(key)

    # Answers

    def settle(self, key: Key) -> None:
        """The published status of the claim is the current one."""
        self._unsettled.discard(key)

    @property
    def unsettled(self) -> list[Key]:
        """Existing claims whose status may have to be written, by namespace and name."""
        return sorted(self._unsettled & self.claims.keys())

    @property
    def waiting(self) -> list[Key]:
        """Claims, also absent ones, with a pod that waits, by namespace and name."""
        return sorted(self._waiting)

    def count_waiting(self, key: Key) -> int:
        """The number of pods of the claim that wait."""
        return self._waiting.get(key, 0)

    def pods_of(self, key: Key) -> list[Pod]:
        """The pods that name the claim, by name."""
        return sorted(self._pods.get(key, {}).values(), key=lambda each: (each.name, each.metadata.uid))

    def leases_of(self, pod: Pod) -> list[DeviceLease]:
        """Leases of GPUs that the pod holds, by name."""
        held = self._leases.get(pod.metadata.uid, {})
        return [held[name] for name in sorted(held)]

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a claim nor a pod that names one."""
        return not self.claims and not self._pods
