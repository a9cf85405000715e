"""Owner of the lifecycle of NodeClaims up to deletion: launch, registration, initialization and expiry."""

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model import names
from reconciler.model.cluster.node import EXPIRES_AFTER, NodePoolRequirement
from reconciler.model.instant import Instant, instant
from reconciler.plan.karpenter.budgets import nanoseconds_unless_never
from reconciler.plan.karpenter.drift import demands
from reconciler.plan.karpenter.template_hash import HASH_VERSION, template_hash
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import (
    WELL_KNOWN,
    KarpenterInstanceType,
    MarketOffering,
    instance_types,
    joined,
    matches_demands,
    one_of,
    quantity,
    some_value,
    written,
)
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.machines import (
    INITIALIZED,
    LAUNCH_LIMIT_MS,
    LAUNCHED,
    REGISTERED,
    REGISTRATION_LIMIT_MS,
    new_condition,
)
from reconciler.simulate.actors.karpenter.scheduling_round import NewNodeClaim
from reconciler.simulate.objects import Key, is_leaving, ref_of, says, taints_of, with_condition

BY = "karpenter"


class Living:
    """Updated with changed claims and nodes; each step has a delay."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._world = known.world
        self._engine = known.stage.engine
        self._requested: dict[str, tuple[str, set[str]]] = {}  # claim -> uid, and scheduled steps

    def changed(self, keys: Sequence[Key]) -> None:
        """Called with claims or nodes."""
        for kind, _, name in keys:
            claim = self._known.machines.claims.get(name) if kind == "NodeClaim" else None
            if kind == "NodeClaim" and claim is None:
                self._requested.pop(name, None)
            claim = self._known.machines.claim_of(name) if kind == "Node" else claim
            if claim is not None and not is_leaving(claim):
                self._go_on(claim)

    def _go_on(self, claim: Object) -> None:
        timing = self._known.timing
        self._expire_in_time(claim)
        if not (claim.get("status") or {}).get("providerID"):
            self._after(claim, "launch", timing.launch_ms)
            self._after(claim, "give up launching", LAUNCH_LIMIT_MS)
            self._after(claim, "give up waiting for", REGISTRATION_LIMIT_MS)
        elif not says(claim, REGISTERED):
            is_there = self._known.machines.node_of(claim) is not None
            self._after(claim, "join", 0 if is_there else timing.registration_ms)
        elif not says(claim, INITIALIZED):
            self._after(claim, "clean", timing.startup_taints_ms)
            self._after(claim, "ready", timing.initialization_ms)
            self._initialize(claim)

    def _after(self, claim: Object, step: str, delay_ms: int) -> None:
        self._at(claim, step, Instant(self._engine.now + delay_ms))

    def _at(self, claim: Object, step: str, when: Instant) -> None:
        """Schedules each step once per claim."""
        metadata = claim["metadata"]
        uid, requested = self._requested.get(metadata["name"], ("", set[str]()))
        if uid != metadata["uid"]:
            requested = set()
            self._requested[metadata["name"]] = metadata["uid"], requested
        if step not in requested:
            requested.add(step)
            self._engine.at(when, f"{step} {metadata['name']}", lambda: self._step(metadata, step))

    def _step(self, metadata: Object, step: str) -> None:
        claim = self._known.machines.claims.get(metadata["name"])
        if claim is None or claim["metadata"]["uid"] != metadata["uid"] or is_leaving(claim):
            return
        match step:
            case "launch":
                self._launch(claim)
            case "join":
                self._join(claim)
            case "clean":
                self._clean(claim)
            case "ready":
                self._mark_ready(claim)
            case "give up launching" if (claim.get("status") or {}).get("providerID"):
                return
            case "give up waiting for" if says(claim, REGISTERED):
                return
            case _:  # expire, or give up
                self._world.delete(ref_of(claim), BY)

    def _launch(self, claim: Object) -> None:
        written = (claim.get("spec") or {}).get("requirements") or ()
        lines = [
            NodePoolRequirement(each["key"], each["operator"], tuple(each.get("values") or ())) for each in written
        ]
        cloud, chance = self._known.cloud, self._engine.stream("what is bought")
        offering = cloud.buy(demands(lines), self._engine.now, chance)
        if offering is None:
            self._world.remove(ref_of(claim), BY)
            return
        machine = cloud.types[offering.instance_type]
        self._world.edit(ref_of(claim), launched(claim, machine, offering, self._engine.now), BY)

    def _join(self, claim: Object) -> None:
        now = self._engine.now
        node = self._known.machines.node_of(claim)
        if node is None:
            node = node_of(claim, now)
            self._world.put(node)
        conditions = with_condition(claim, new_condition(REGISTERED, now))
        status = {"nodeName": node["metadata"]["name"], "conditions": conditions}
        self._world.edit(ref_of(claim), {"status": status}, BY)

    def _clean(self, claim: Object) -> None:
        """Startup taints of others are removed by others; reconciler removes its own."""
        node = self._known.machines.node_of(claim)
        startup = {each["key"] for each in (claim.get("spec") or {}).get("startupTaints") or ()}
        passing = {key for key in startup if not key.startswith(names.OURS)}
        if node is not None and passing:
            left = [each for each in taints_of(node) if each["key"] not in passing]
            self._world.edit(ref_of(node), {"spec": {"taints": left}}, "startup")

    def _mark_ready(self, claim: Object) -> None:
        node, now = self._known.machines.node_of(claim), self._engine.now
        if node is None or node["metadata"]["name"] in self._known.stage.silent_nodes:
            return
        taints = [each for each in taints_of(node) if each["key"] != NOT_READY["key"]]
        amounts = {key: claim["status"][key] for key in ("capacity", "allocatable")}
        conditions = with_condition(node, new_condition("Ready", now, reason="KubeletReady"))
        self._world.edit(ref_of(node), {"spec": {"taints": taints}, "status": amounts | {"conditions": conditions}})

    def _initialize(self, claim: Object) -> None:
        """Initializes the node once it is ready, without startup taints and with the requested resources."""
        node = self._known.machines.node_of(claim)
        if node is None or not says(node, "Ready"):
            return
        spec = claim.get("spec") or {}
        startup = {each["key"] for each in spec.get("startupTaints") or ()}
        asked = (spec.get("resources") or {}).get("requests") or {}
        there = node["status"].get("allocatable") or {}
        if any(each["key"] in startup for each in taints_of(node)) or any(
            there.get(name, "0") == "0" for name in asked
        ):
            return
        self._world.edit(ref_of(node), {"metadata": {"labels": {INITIALIZED_LABEL: "true"}}}, BY)
        self._world.set_condition(claim, new_condition(INITIALIZED, self._engine.now), BY)

    def _expire_in_time(self, claim: Object) -> None:
        written = (claim.get("spec") or {}).get("expireAfter") or EXPIRES_AFTER
        length = nanoseconds_unless_never(written)
        if length is not None:
            created = instant(claim["metadata"]["creationTimestamp"])
            self._at(claim, "expire", Instant(created + length // 1_000_000))


# --- NodeClaims and Nodes, from launch until pods can run.

FINALIZER = "karpenter.sh/termination"
ENDS_AT = "karpenter.sh/nodeclaim-termination-timestamp"  # annotation: the end of terminationGracePeriod
REGISTERED_LABEL = "karpenter.sh/registered"
INITIALIZED_LABEL = "karpenter.sh/initialized"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

_FROM_TEMPLATE = ("taints", "startupTaints", "nodeClassRef", "expireAfter", "terminationGracePeriod")


def claim_of(opened: NewNodeClaim, name: str, now: Instant) -> Object:
    """The NodeClaim for the cloud, without the placeholder name of its node, which only scheduling needed."""
    pool, template = opened.pool, opened.pool.spec.get("template") or {}
    types = one_of(each.machine.name for each in opened.sold)
    sold = [each for one in opened.sold for each in one.offerings if matches_demands(each, opened.demands)]
    capacity_types = one_of(each.capacity_type for each in sold)
    settled = {key: allowed for key, allowed in opened.demands.items() if key != names.HOSTNAME}
    demands = joined(settled, {names.INSTANCE_TYPE: types, names.CAPACITY_TYPE: capacity_types})
    custom = {key: some_value(allowed) for key, allowed in demands.items() if key not in WELL_KNOWN}
    labels = {key: value for key, value in sorted(custom.items()) if value} | pool.labels
    requests = {resource: quantity(resource, amount) for resource, amount in sorted(opened.used.items()) if amount}
    claim = _claim(name, labels, template, pool.uid)
    spec = {**claim["spec"], "requirements": written(demands), "resources": {"requests": requests}}
    awaited = [
        new_condition(each, now, "Unknown", "AwaitingReconciliation") for each in (LAUNCHED, REGISTERED, INITIALIZED)
    ]
    return {**claim, "spec": spec, "status": {"conditions": awaited}}


def launched(claim: Object, machine: KarpenterInstanceType, offering: MarketOffering, now: Instant) -> Object:
    """A patch with the launch result."""
    name = claim["metadata"]["name"]
    where = {names.ZONE: offering.zone, names.CAPACITY_TYPE: offering.capacity_type}
    labels = machine.labels | dict(offering.labels) | {key: value for key, value in where.items() if value}
    status = {
        "providerID": f"imagined:///{name}",
        "capacity": machine.capacity,
        "allocatable": machine.allocatable,
        "conditions": with_condition(claim, new_condition(LAUNCHED, now)),
    }
    return {"metadata": {"labels": labels | claim["metadata"]["labels"]}, "status": status}


def node_of(claim: Object, now: Instant) -> Object:
    """The newly registered Node; devices are not published yet."""
    metadata, spec, status = claim["metadata"], claim.get("spec") or {}, claim["status"]
    devices = {name: "0" for name in status["capacity"] if "/" in name}
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": metadata["name"], "uid": metadata["uid"]}
    joined_labels = {names.HOSTNAME: metadata["name"], REGISTERED_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": metadata["name"],
            "labels": metadata["labels"] | joined_labels,
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {
            "providerID": status["providerID"],
            "taints": [*(spec.get("taints") or ()), *(spec.get("startupTaints") or ()), NOT_READY],
        },
        "status": {
            "capacity": status["capacity"] | devices,
            "allocatable": status["allocatable"] | devices,
            "conditions": [new_condition("Ready", now, "False", "KubeletNotReady")],
        },
    }


def born(node_pool: Object, offering: MarketOffering, name: str, now: Instant) -> tuple[Object, Object]:
    """An initialized NodeClaim with its Node, for the current NodePool."""
    (machine,) = instance_types((offering,), {})
    metadata, template = node_pool["metadata"], (node_pool.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    claim = _claim(name, labels | {names.KARPENTER_POOL: metadata["name"]}, template, metadata.get("uid", ""))
    patch = launched(claim, machine, offering, now)
    conditions = [new_condition(each, now) for each in (LAUNCHED, REGISTERED, INITIALIZED)]
    status = {**patch["status"], "nodeName": name, "conditions": conditions}
    full = {**claim, "metadata": {**claim["metadata"], "labels": patch["metadata"]["labels"]}, "status": status}
    node = node_of({**full, "metadata": {"uid": "", **full["metadata"]}}, now)
    node["metadata"]["labels"][INITIALIZED_LABEL] = "true"
    node["metadata"].pop("ownerReferences")  # the claim gets its uid when it is stored
    node["spec"]["taints"] = list((template.get("spec") or {}).get("taints") or ())
    node["status"] = {
        "capacity": machine.capacity,
        "allocatable": machine.allocatable,
        "conditions": [new_condition("Ready", now, reason="KubeletReady")],
    }
    return full, node


def _claim(name: str, labels: Mapping[str, str], template: Mapping[str, Any], pool_uid: str) -> Object:
    spec = template.get("spec") or {}
    hashed = {names.POOL_HASH: template_hash(template), names.POOL_HASH_VERSION: HASH_VERSION}
    annotations = dict((template.get("metadata") or {}).get("annotations") or {}) | hashed
    pool = labels[names.KARPENTER_POOL]
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool, "uid": pool_uid}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": annotations,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {key: spec[key] for key in _FROM_TEMPLATE if key in spec},
    }
