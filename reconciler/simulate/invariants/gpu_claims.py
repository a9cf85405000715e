"""GPUs of pods with a GpuClaim: lent once, with a Lease each, released in time, and not idle while a pod waits.

The checks read annotations, Leases and GpuNodeStatuses themselves, independently of the desk and the planner.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.nominated import Nominated
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.quantity import Quantity
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, checks
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    annotations_of,
    is_finished,
    is_leaving,
    labels_of,
    node_of,
    says,
)

_MOST_IDS = 16


def _is_bound_by(written: ObjectWrite) -> bool:
    """Whether this write binds a pod with a GpuClaim of the second scheduler."""
    after = written.after
    if after is None or written.before is None or not node_of(after) or node_of(written.before):
        return False
    return names.CLAIM in annotations_of(after) and after["spec"].get("schedulerName") == names.GPU_SCHEDULER


def _allocated(pod: Object) -> frozenset[int]:
    """The ids in the annotation of a bound pod."""
    node, _, ids = annotations_of(pod).get(names.ALLOCATED, "").rpartition(":")
    return frozenset(int(each) for each in ids.split(",") if each.isdigit()) if node == node_of(pod) else frozenset()


def _lease(node: str, number: int) -> Key:
    return "Lease", names.LEASES_NAMESPACE, f"gpu-{node}-{number}"


def _holder(lease: Object | None) -> str:
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


@checks("no GPU is lent to two pods", "Pod")
def lent_once(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """Checked when a pod is bound."""
    pod = written.after
    if pod is None or not _is_bound_by(written):
        return
    ids, node = _allocated(pod), node_of(pod)
    for key in context.where.pods_on(node):
        other = context.world.at(key)
        if key == written.key or other is None or is_finished(other):
            continue
        if shared := sorted(ids & _allocated(other)):
            yield f"Pod/{written.key[2]} and Pod/{key[2]} both have GPU {shared[0]} of Node/{node}"


@checks("each GPU of a bound pod with a GpuClaim has a Lease", "Lease", "Pod")
def lent_by_leases(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """Checked when a pod is bound, and when a Lease goes."""
    if written.key[0] == "Lease":
        yield from _taken_away(written, context)
        return
    pod = written.after
    if pod is None or not _is_bound_by(written):
        return
    node, ids, uid = node_of(pod), _allocated(pod), pod["metadata"]["uid"]
    claim = context.world.at(("GpuClaim", written.key[1], annotations_of(pod)[names.CLAIM]))
    count = _devices(claim).get("count")
    if len(ids) != count:
        yield f"Pod/{written.key[2]} is bound with {len(ids)} GPUs, and its claim has {count}"
    for number in sorted(ids):
        if _holder(context.world.at(_lease(node, number))) != uid:
            yield f"Pod/{written.key[2]} holds no Lease of GPU {number} of Node/{node}"


def _taken_away(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """Only Leases of nodes that are gone or not ready may go while their pod runs."""
    lease, uid = written.before, _holder(written.before)
    if lease is None or not uid or _holder(written.after) == uid:
        return
    pod = _pod_of(lease, context)
    if pod is None or not _uses(pod, lease):
        return
    node = context.node(node_of(pod))
    if node is not None and says(node, "Ready"):
        yield f"Lease/{written.key[2]} is gone while Pod/{pod['metadata']['name']} runs on Node/{node_of(pod)}"


def _node_of_lease(lease: Object) -> str:
    owners = lease["metadata"].get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each["kind"] == "Node"), "")


def _pod_of(lease: Object, context: InvariantContext) -> Object | None:
    """The pod that holds the Lease; None if the pod is gone."""
    namespace, _, name = annotations_of(lease).get(names.HOLDER, "").partition("/")
    pod = context.world.at(("Pod", namespace, name))
    return pod if pod is not None and pod["metadata"]["uid"] == _holder(lease) else None


def _uses(pod: Object, lease: Object) -> bool:
    """Whether the pod runs with this GPU."""
    number, ids = annotations_of(lease).get(names.DEVICE, ""), _allocated(pod)
    is_there = node_of(pod) == _node_of_lease(lease) and not is_finished(pod)
    return is_there and (not ids or not number.isdigit() or int(number) in ids)


def _may_act_on(node: str, context: InvariantContext) -> Declared[GpuPool] | None:
    """The pool of the node, if reconciler may act there."""
    observed, body = context.where.nodes.get(node), context.node(node)
    if observed is None or names.FROZEN_UNTIL in annotations_of(body):
        return None
    pool = context.desired().pool(observed.pool)
    return pool if pool is not None and pool.spec.mode == "Enforce" and not pool.spec.suspend else None


# --- Leases without a running pod.


class LeasesReleased:
    """Counts the time in which a controller ran with fresh observations."""

    rule = "Leases of GPUs are released within five minutes after their pods"
    kinds = ("Lease", "Node", "Pod")

    _LONGEST_MS = 300_000

    def __init__(self) -> None:
        self._of_pod: dict[str, set[Key]] = {}  # by uid of the holder
        self._unused_since: dict[Key, int] = {}  # the controller's presence at that time
        self._reported: set[str] = set()  # uids of Leases

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.key[0] == "Lease":
            self._note_lease(written, context)
        elif written.key[0] == "Pod" and self._of_pod:
            uid = ((written.after or written.before) or {})["metadata"]["uid"]
            for key in sorted(self._of_pod.get(uid, ())):
                self._look_at(key, context)
        yield from self._late(context)

    def _note_lease(self, written: ObjectWrite, context: InvariantContext) -> None:
        if before := _holder(written.before):
            held = self._of_pod.get(before, set())
            held.discard(written.key)
            if not held:
                self._of_pod.pop(before, None)
        lease = written.after
        if lease is None or labels_of(lease).get(names.MANAGED) != "true" or not _node_of_lease(lease):
            self._unused_since.pop(written.key, None)
            return
        self._of_pod.setdefault(_holder(lease), set()).add(written.key)
        self._look_at(written.key, context)

    def _look_at(self, key: Key, context: InvariantContext) -> None:
        lease = context.world.at(key)
        pod = _pod_of(lease, context) if lease is not None else None
        if pod is not None and lease is not None and _uses(pod, lease):
            self._unused_since.pop(key, None)
        else:
            self._unused_since.setdefault(key, context.presence_ms())

    def _late(self, context: InvariantContext) -> Iterator[str]:
        limit_ms = context.presence_ms() - self._LONGEST_MS
        for key, since_ms in list(self._unused_since.items()):
            if since_ms >= limit_ms:
                return
            lease = context.world.at(key)
            if lease is None or _may_act_on(_node_of_lease(lease), context) is None:
                del self._unused_since[key]
                if lease is not None:
                    self._unused_since[key] = context.presence_ms()
            elif lease["metadata"]["uid"] not in self._reported:
                self._reported.add(lease["metadata"]["uid"])
                yield f"Lease/{key[2]} is held for five minutes, and its pod does not run"


# --- Idle GPUs while a pod waits: a search by brute force.

_EVERY_MS = 15_000
_IDLE_MS = 60_000
_FLUSH_MS = 300_000  # kube-scheduler learns of changed policies by its regular retries only
_MOST_CLAIMS = 20  # per search


class NoIdleGpus:
    """A waiting pod fits at each search for a minute. Counts the time in which a controller ran."""

    rule = "no GPU is idle for a minute while a pod with a GpuClaim waits and fits"
    kinds = ("Lease", "Node", "Pod")

    def __init__(self) -> None:
        self._due_ms = 0
        self._fits_since: dict[str, int] = {}  # by uid of the pod
        self._desired: Desired | None = None
        self._allowed_until_ms = 0

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now_ms = context.presence_ms()
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + _EVERY_MS
        if self._desired is not context.desired():
            self._allowed_until_ms = now_ms + _FLUSH_MS if self._desired is not None else 0
            self._desired = context.desired()
        before, self._fits_since = self._fits_since, {}
        for pod in _oldest_of_claims(context):
            uid = pod.metadata.uid
            if node := _node_for(pod, context):
                since_ms = self._fits_since[uid] = before.get(uid, now_ms)
                if since_ms < now_ms - _IDLE_MS and now_ms >= self._allowed_until_ms:
                    self._fits_since[uid] = now_ms
                    yield f"Pod/{pod.name} has waited for a minute, and Node/{node} has free GPUs for its claim"


def _oldest_of_claims(context: InvariantContext) -> Iterator[Pod]:
    """The pod of each claim that has waited the longest."""
    claims: set[tuple[str, str]] = set()
    for key in context.where.waiting:
        claim = key[1], context.where.pods[key].claim
        if not claim[1] or claim in claims or len(claims) == _MOST_CLAIMS:
            continue
        pod: Pod | None = context.world.read_object(key)
        if pod is None or pod.spec.scheduling_gates or pod.metadata.leaving:
            continue
        if pod.spec.scheduler_name == names.GPU_SCHEDULER:
            claims.add(claim)
            yield pod


def _node_for(pod: Pod, context: InvariantContext) -> str:
    """A node that kube-scheduler accepts and that has free GPUs for the claim; empty if there is none."""
    fleet = context.snapshot()
    claim = context.world.at(("GpuClaim", pod.metadata.namespace, pod.metadata.annotations.claim))
    if claim is None or (claim.get("spec") or {}).get("suspend"):
        return ""
    with fleet.part(Nominated).asking(pod):
        mask = fleet.part(FilterChain).mask(fleet.classes.of(pod))
    names_of = (fleet.rows.node(row).name for row in fleet.rows.order[mask[fleet.rows.order]].tolist())
    return next((name for name in names_of if _serves(name, claim, context)), "")


def _serves(node: str, claim: Object, context: InvariantContext) -> bool:
    pool, wanted = _may_act_on(node, context), _devices(claim)
    if pool is None or (claim.get("spec") or {}).get("poolName", pool.name) != pool.name:
        return False
    has = pool.spec.devices
    if wanted.get("model", has.model) != has.model:
        return False
    if "memory" in wanted and Quantity.parse(str(wanted["memory"])).milli > has.memory.milli:
        return False
    islands = _free_by_island(node, pool.spec, context)
    if wanted.get("policy") == "requireContiguous":
        return max(islands, default=0) >= int(wanted["count"])
    return sum(islands) >= int(wanted["count"])


def _free_by_island(node: str, pool: GpuPool, context: InvariantContext) -> Sequence[int]:
    """Numbers of free, healthy GPUs. None where pods without a claim use GPUs: nobody knows which."""
    world, pods = context.world, [context.world.at(key) or {} for key in context.where.pods_on(node)]
    running = [each for each in pods if not is_finished(each)]
    if any(context.where.pods[key].gpus and not context.where.pods[key].claim for key in context.where.pods_on(node)):
        return ()
    used = {number for pod in running for number in _allocated(pod)}
    free: dict[str, int] = {}
    for number, island in _healthy(node, pool, context):
        if number not in used and not _holder(world.at(_lease(node, number))):
            free[island] = free.get(island, 0) + 1
    return list(free.values())


def _healthy(node: str, pool: GpuPool, context: InvariantContext) -> Iterator[tuple[int, str]]:
    """Id and island of each healthy GPU; of a node without a report, one island."""
    report = context.world.at(("GpuNodeStatus", "", node))
    devices = ((report or {}).get("status") or {}).get("devices") or ()
    if report is not None and (is_leaving(report) or (report.get("spec") or {}).get("suspend")):
        return
    if not devices and pool.allocation == "plugin":
        yield from ((number, "") for number in range(min(_MOST_IDS, context.where.nodes[node].gpus)))
    for each in devices:
        if each.get("health") != "Unhealthy" and (each.get("uuid") or pool.allocation == "plugin"):
            yield each["id"], each.get("island") or f"alone {each['id']}"


def _devices(claim: Object | None) -> Mapping[str, Any]:
    """The requested GPUs of a claim."""
    found = ((claim or {}).get("spec") or {}).get("devices")
    return found if isinstance(found, dict) and type(found.get("count")) is int else {"count": 0}
