"""The initial state: nodes of the scenario or of a dump, objects of the first policies, and owners of pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.node import NodeClass
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.workload import Workload
from reconciler.model.desired import Desired
from reconciler.model.instant import moment, timestamp
from reconciler.model.plan.decision import Apply, Decision, Preconditions, Reason, Ref
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.drain.blockers import custom_controller
from reconciler.plan.drain.context import Controllers
from reconciler.plan.manifests.reasons import Missing
from reconciler.plan.manifests.wanted_manifest import ref_of, wish_of
from reconciler.policy.shape import API_VERSION
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import PLATFORM, MarketOffering
from reconciler.simulate.actors.karpenter.lifecycle import ENDS_AT, FINALIZER, born
from reconciler.simulate.bootstrap.market import Capacity, capacity_of
from reconciler.simulate.openb import OpenbNode
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import NodeSet, ScenarioClaim
from reconciler.simulate.world import World


class NoSuchPool(ValueError):
    """Nodes whose pool the first policies do not declare, or cannot have; the message has a remedy."""


def put_nodes(world: World, play: Play, market: Sequence[MarketOffering]) -> None:
    """Creates all groups in the order of the scenario. Raises NoSuchPool."""
    zones = play.scenario.market.zones
    for group, name, number in numbered(play.scenario.cluster.nodes):
        placed = msgspec.structs.replace(group, zone=group.zone or zones[number % len(zones)])
        for body in _node(world, play, market, placed, name):
            world.put(body)


def numbered(groups: Iterable[NodeSet]) -> Iterator[tuple[NodeSet, str, int]]:
    """Each node: group, name, and number among nodes of the same name prefix."""
    taken: dict[str, int] = {}
    for group in groups:
        prefix = group.name or group.pool
        for _ in range(group.count):
            number = taken[prefix] = taken.get(prefix, 0) + 1
            yield group, f"{prefix}-{number:04d}", number


def put_openb_nodes(world: World, nodes: Sequence[OpenbNode]) -> None:
    """Machines of a trace: no more of them can be launched."""
    for each in nodes:
        labels = {names.GPU_TYPE: each.model} if each.model else {}
        world.put(_machine(each.name, each.capacity, labels))


def put_claims(world: World, claims: Iterable[ScenarioClaim]) -> None:
    """Creates the GpuClaims."""
    for each in claims:
        devices: Object = {"count": each.devices.count, "policy": each.devices.policy}
        if each.devices.model is not None:
            devices["model"] = each.devices.model
        if each.devices.memory is not None:
            devices["memory"] = str(each.devices.memory)
        spec = {"devices": devices} | ({"poolName": each.pool_name} if each.pool_name else {})
        head = {"apiVersion": API_VERSION, "kind": "GpuClaim"}
        world.put({**head, "metadata": {"name": each.name, "namespace": each.namespace}, "spec": spec})


def _node(world: World, play: Play, market: Sequence[MarketOffering], group: NodeSet, name: str) -> Iterator[Object]:
    if not group.pool:
        labels = {names.ZONE: group.zone, names.INSTANCE_TYPE: group.instance_type} | dict(group.labels)
        taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in group.taints]
        labels = {key: value for key, value in labels.items() if value}
        yield _machine(name, capacity_of(group.capacity), labels, taints)
        return
    declared, pool = play.first.pool(group.pool), world.get(Ref("NodePool", "", group.pool))
    if declared is None or pool is None:
        known = ", ".join(each.name for each in play.first.pools) or "none"
        raise NoSuchPool(f"nodes of pool {group.pool}: the first policies render no such NodePool; there are: {known}")
    claim, node = born(pool, _offering(market, group, declared.spec), name, world.now)
    node["metadata"]["labels"].update(group.labels)
    yield claim
    yield node


def _offering(market: Sequence[MarketOffering], group: NodeSet, pool: GpuPool) -> MarketOffering:
    wanted = group.instance_type or pool.instance_types[0].name
    capacity_type = group.capacity_type or pool.capacity_types[0]
    for each in market:
        if (each.instance_type, each.zone, each.capacity_type) == (wanted, group.zone, capacity_type):
            if not group.capacity:
                return each
            return msgspec.structs.replace(each, capacity=capacity_of(group.capacity, pool.devices.count))
    text = f"nodes of pool {group.pool}: {wanted} is not available in {group.zone} as {capacity_type}"
    raise NoSuchPool(f"{text}; use another instance type, or add it to spec.market")


def _machine(name: str, capacity: Capacity, labels: Mapping[str, str], taints: Sequence[Object] = ()) -> Object:
    """A node without a manager."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {names.HOSTNAME: name, **PLATFORM, **labels}},
        "spec": {"providerID": f"imagined:///{name}", "taints": [*taints]},
        "status": {"capacity": dict(capacity), "allocatable": dict(capacity), "conditions": [ready]},
    }


# --- The rendered objects of the first policies, as if the controller had created them before the start.

_CLASSES = {each.kind: each for each in RESOURCE_KINDS if each.type is NodeClass}
_VERSIONS = {"EC2NodeClass": "v1", "KWOKNodeClass": "v1alpha1"}


def put_pools(world: World, desired: Desired) -> None:
    """Node classes, NodePools and other rendered objects; all except the classes are owned by reconciler."""
    for body in node_classes(desired):
        world.put(body)
    decisions = [
        Decision(
            "manifests",
            ref_of(each, None),
            Apply(manifest=wish_of(each, None, desired.environment).text, presumes=Preconditions(absent=True)),
            Reason(Missing(object=ref_of(each, None)), each.origin),
            each.pool,
        )
        for each in desired.manifests
    ]
    for outcome in world.apply(decisions, _Always()):
        if outcome.result != "done":
            raise AssertionError(f"{outcome.subject.title} cannot be created in an empty cluster: {outcome.detail}")


def node_classes(desired: Desired) -> Iterator[Object]:
    """The node classes that pools refer to and Karpenter supports."""
    for pool in desired.pools:
        ref = pool.spec.node_class_ref
        resource_kind = _CLASSES.get(ref.kind)
        if resource_kind is not None and resource_kind.group == ref.group:
            version = f"{ref.group}/{_VERSIONS[ref.kind]}"
            yield {"apiVersion": version, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": {}}


class _Always:
    """A Fence that always allows writes."""

    def holds(self) -> bool:
        return True


# --- Stand-ins for owners that pods refer to but that were not observed: they recreate lost pods.
#
# kubectl output may lack Jobs or ReplicaSets, and operators' kinds are never read. A Job is replaced by a Job; any
# other kind by a ReplicaSet, and its pods are annotated with the original kind. Pods of an operator's kind are also
# annotated as not safe to evict, unless they have the annotation: drains leave them. DaemonSets are omitted: their pods
# belong to nodes. An owner that is missing from a complete list of its kind is not replaced: it does not exist, and its
# pods are not recreated.

_OWNERS_VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1"}
_OF_NODES = frozenset({"DaemonSet", "Node"})
_OF_ONE_POD = frozenset({"nodeName"})

_Owner = tuple[str, str, str]  # kind, namespace, name


class UnreadOwners:
    def __init__(self, observed: Observed) -> None:
        self._known = {(each.kind, each.metadata.namespace, each.metadata.name) for each in observed.workloads}
        self._controllers = Controllers(observed)
        self._pods: dict[_Owner, list[Pod]] = {}
        for pod in sorted(observed.pods, key=lambda each: (each.metadata.namespace, each.name)):
            if (owner := self._owner_of(pod)) is not None:
                self._pods.setdefault(owner, []).append(pod)

    def made_up(self) -> Iterator[Object]:
        """Owners that still have pods, by name."""
        for owner, pods in sorted(self._pods.items(), key=lambda each: each[0]):
            active = [each for each in pods if not each.is_finished]
            if active:
                yield _made_up(owner, active, len(pods) - len(active))

    def with_owner_note(self, body: Object, pod: Pod) -> Object:
        """The pod, with an annotation of its owner's original kind."""
        owner = self._owner_of(pod)
        if owner is None:
            return body
        made = {"apiVersion": _OWNERS_VERSIONS[_kind(owner)], "kind": _kind(owner)}
        references = [each | made if each.get("controller") else each for each in body["metadata"]["ownerReferences"]]
        return {**body, "metadata": _kept(pod, {**body["metadata"], "ownerReferences": references})}

    def _owner_of(self, pod: Pod) -> _Owner | None:
        owner = pod.metadata.controller
        if owner is None or owner.kind in _OF_NODES:
            return None
        if self._controllers.is_gone(pod.metadata.namespace, owner):
            return None
        found = owner.kind, pod.metadata.namespace, owner.name
        return None if found in self._known else found


def template_of(pod: Pod) -> Object:
    """The template of a pod, as far as it can be derived."""
    plain: Object = msgspec.to_builtins(pod)
    metadata: Object = {key: plain["metadata"].get(key) or {} for key in ("labels", "annotations")}
    spec = {key: value for key, value in plain.get("spec", {}).items() if key not in _OF_ONE_POD}
    return {"metadata": metadata, "spec": spec}


def _made_up(owner: _Owner, active: Sequence[Pod], done: int) -> Object:
    kind, (_, namespace, name), template = _kind(owner), owner, template_of(active[0])
    reference = active[0].metadata.controller
    uid = {"uid": reference.uid} if reference is not None and reference.uid else {}
    counts = {"parallelism": len(active), "completions": len(active) + done}
    spec: Object = counts if kind == "Job" else {"replicas": len(active)}
    return {
        "apiVersion": _OWNERS_VERSIONS[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **uid},
        "spec": {**spec, "template": {**template, "metadata": _kept(active[0], template["metadata"])}},
    }


def _kept(pod: Pod, metadata: Object) -> Object:
    """A stand-in hides the kind of the pod's controller, which drains depend on."""
    if custom_controller(pod) is None or pod.metadata.annotations.safe_to_evict == "true":
        return metadata
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), names.SAFE_TO_EVICT: "false"}}


def _kind(owner: _Owner) -> str:
    return "Job" if owner[0] == "Job" else "ReplicaSet"


# --- Copies an observed cluster into a simulated one.
#
# Templates of workloads are read only partly: missing fields are taken from one of the workload's pods.


def put_observed(world: World, observed: Observed) -> None:
    """Copies all objects; objects that were kept whole come last, and replace their partial form."""
    owners = UnreadOwners(observed)
    now = timestamp(world.now)
    for body in owners.made_up():
        world.put(body)
    done: set[str] = set()
    for resource_kind in RESOURCE_KINDS:
        if resource_kind.field not in done:
            done.add(resource_kind.field)
            for body in _bodies(resource_kind.field, observed, owners):
                world.put(_with_readable_times(body, now))


def _bodies(field: str, observed: Observed, owners: UnreadOwners) -> Iterator[Object]:
    sorts = {each.kind: each for each in RESOURCE_KINDS if each.field == field}
    only = next(iter(sorts.values()))
    pods = _pods_by_owner(observed) if field == "workloads" else {}
    for found in getattr(observed, field):
        if isinstance(found, Unstructured):
            yield _whole(found)
            continue
        body = _plain(sorts.get(getattr(found, "kind", ""), only), found)
        if isinstance(found, Workload):
            pod = pods.get((found.kind, found.metadata.namespace, found.metadata.name))
            body = _with_template(body, pod)
        yield owners.with_owner_note(body, found) if isinstance(found, Pod) else body


def _plain(resource_kind: ResourceKind, found: Any) -> Object:
    body: Object = msgspec.to_builtins(found)
    if isinstance(found, NodeClass):
        body.pop("images", None)
    body.setdefault("spec", {})  # actors expect a spec, even an empty one
    version, labels = resource_kind.version or "v1", body["metadata"].get("labels", {})
    if resource_kind.kind == "NodeClaim" or (resource_kind.kind == "Node" and names.KARPENTER_POOL in labels):
        body["metadata"]["finalizers"] = [FINALIZER]  # finalizers are not observed, but Karpenter always sets its own
    return {
        **body,
        "apiVersion": f"{resource_kind.group}/{version}" if resource_kind.group else version,
        "kind": resource_kind.kind,
    }


def _whole(unstructured: Unstructured) -> Object:
    body: Object = msgspec.to_builtins(unstructured)
    rest: Object = body.pop("rest", {})
    return body | rest


def _pods_by_owner(observed: Observed) -> dict[_Owner, Pod]:
    """The first pod by name of each owner."""
    pods: dict[_Owner, Pod] = {}
    for pod in sorted(observed.pods, key=lambda each: (each.metadata.namespace, each.name)):
        owner = pod.metadata.controller
        if owner is not None:
            pods.setdefault((owner.kind, pod.metadata.namespace, owner.name), pod)
    return pods


def _with_template(body: Object, pod: Pod | None) -> Object:
    if pod is None:
        return body
    spec, made = body.get("spec") or {}, template_of(pod)
    of_template = (spec.get("template") or {}).get("spec") or made["spec"]
    return {**body, "spec": {**spec, "template": {**made, "spec": of_template}}}


# --- Times in objects of an observed cluster, which may be any text.

_TIMES = frozenset(
    {"creationTimestamp", "deletionTimestamp", "startTime", "completionTime", "startedAt", "finishedAt"}
    | {"lastTransitionTime", "lastProbeTime", ENDS_AT}
)


def _with_readable_times(body: Object, now: str) -> Object:
    """The object; an invalid time in its metadata or status counts as now."""
    return {**body, **{part: _readable(body[part], now) for part in ("metadata", "status") if part in body}}


def _readable(value: Any, now: str) -> Any:
    if isinstance(value, dict):
        return {key: now if _is_unreadable(key, each) else _readable(each, now) for key, each in value.items()}
    return [_readable(each, now) for each in value] if isinstance(value, list) else value


def _is_unreadable(key: str, value: Any) -> bool:
    return key in _TIMES and isinstance(value, str) and bool(value) and moment(value) is None
