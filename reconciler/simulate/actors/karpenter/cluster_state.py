"""The cluster state of the simulated Karpenter, updated with each write."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from reconciler.fleet.amounts import counted
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import NodeClaimTemplate, NodeTaint
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.instant import Instant
from reconciler.plan.karpenter.budgets import allowed_at_once, nanoseconds_unless_never
from reconciler.plan.karpenter.drift import Allowed, Demands, demands
from reconciler.plan.karpenter.template_hash import read_template, template_hash
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import Cloud, KarpenterInstanceType, intersects, joined, of_labels
from reconciler.simulate.actors.karpenter.machines import NODES, Machines, Timing
from reconciler.simulate.objects import (
    ObjectWrite,
    annotations_of,
    is_finished,
    is_leaving,
    is_unschedulable,
    node_of,
)
from reconciler.simulate.stage import Stage


class Knowledge:
    def __init__(self, stage: Stage, cloud: Cloud, timing: Timing) -> None:
        self.stage = stage
        self.world = stage.world
        self.cloud = cloud
        self.timing = timing
        self.machines = Machines()
        self.pods = Pods(lambda name: self.world.read_object(("Pod", *name)))
        self.pools = NodePools(tuple(cloud.types.values()))
        self.budgets_version = 0
        self._budgets: PodBudgets | None = None
        self.world.follow(self._note, "NodePool", "NodeClaim", "Node", "Pod", "PodDisruptionBudget")

    @property
    def now(self) -> Instant:
        return self.stage.now

    def snapshot(self) -> Snapshot:
        return self.stage.snapshot()

    def budgets(self) -> PodBudgets:
        if self._budgets is None:
            self._budgets = PodBudgets(self.stage.world.observe().budgets)
        return self._budgets

    def daemons(self) -> list[Pod]:
        """A pod of each DaemonSet, as on a new node."""
        return [_daemon(each) for each in self.world.of("DaemonSet")]

    def stamp(self) -> tuple[int, ...]:
        """Changes when pods may have new placements."""
        return self.machines.version, self.pools.version, self.cloud.version, self.pods.moved, self.budgets_version

    def _note(self, written: ObjectWrite) -> None:
        kind, name = written.key[0], written.key[2]
        if kind == "Pod":
            self.pods.take(written, self.now)
        elif kind == "Node":
            self.machines.take_node(name, written.after)
            if written.after is None:
                self.pods.forget(name)
        elif kind == "NodeClaim":
            self.machines.take_claim(name, written.after)
        elif kind == "NodePool":
            self.pools.take(name, written.after)
        else:
            self.budgets_version += 1
            self._budgets = None


def _daemon(body: Object) -> Pod:
    template = (body.get("spec") or {}).get("template") or {}
    metadata = body["metadata"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    spec = msgspec.convert(template.get("spec") or {}, PodSpec)
    return Pod(Metadata(metadata["name"], metadata.get("namespace", ""), labels=labels), spec)


# --- Owner of Karpenter's view of pods: those on each node, and unschedulable ones.

Name = tuple[str, str]  # namespace, name

_TIED = frozenset({"DaemonSet", "Node"})


class Pods:
    """Updated with each write."""

    def __init__(self, read: Callable[[Name], Pod | None]) -> None:
        """`read` returns the current pod."""
        self._read = read
        self.waiting: dict[Name, Object] = {}
        self.moved = 0  # changes when a pod was bound to a node or left one
        self._on: dict[str, dict[Name, Object]] = {}
        self._stirred: dict[str, Instant] = {}
        self.busy: dict[str, int] = {}  # nodes with pods that certainly need rescheduling, and their number

    def take(self, written: ObjectWrite, now: Instant) -> None:
        name, before, after = written.key[1:], written.before, written.after
        was_on, is_on = node_of(before), node_of(after)
        self.waiting.pop(name, None)
        self._count(was_on, before, -1)
        self._count(is_on, after, 1)
        if was_on and (was_on != is_on or after is None):
            self._leave(was_on, name)
            self.moved += 1
        if after is None:
            return
        if is_on:
            self._on.setdefault(is_on, {})[name] = after
            self.moved += not was_on
            if not is_tied(after) and (not was_on or _is_over(after) != _is_over(before)):
                self._stirred[is_on] = now
        elif _needs_a_node(after):
            self.waiting[name] = after

    def on(self, node: str) -> list[Pod]:
        """By namespace and name, including finished pods."""
        found = self._on.get(node)
        return self._in_order(found) if found else []

    def waiting_read(self) -> list[Pod]:
        """By namespace and name."""
        return self._in_order(self.waiting)

    def stirred(self, node: str) -> Instant:
        """When a pod was last bound, finished or deleted there; 0: never."""
        return self._stirred.get(node, Instant(0))

    def forget(self, node: str) -> None:
        self._stirred.pop(node, None)

    def _leave(self, node: str, name: Name) -> None:
        found = self._on.get(node, {})
        found.pop(name, None)
        if not found:
            self._on.pop(node, None)

    def _count(self, node: str, body: Object | None, sign: int) -> None:
        if node and body is not None and _moves(body):
            self.busy[node] = self.busy.get(node, 0) + sign
            if not self.busy[node]:
                del self.busy[node]

    def _in_order(self, names: Iterable[Name]) -> list[Pod]:
        return [pod for name in sorted(names) if (pod := self._read(name)) is not None]


def _needs_a_node(body: Object) -> bool:
    """Whether Karpenter considers the pod."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    is_held = spec.get("nodeName") or spec.get("schedulingGates") or status.get("nominatedNodeName") or is_tied(body)
    return not is_held and is_unschedulable(body)


def is_tied(body: Object) -> bool:
    """Whether the pod belongs to its node."""
    return any(each["kind"] in _TIED for each in body["metadata"].get("ownerReferences") or ())


def _is_over(body: Object | None) -> bool:
    return body is not None and (is_leaving(body) or is_finished(body))


def _moves(body: Object) -> bool:
    """Whether the pod certainly needs rescheduling when its node is removed."""
    return not (_is_over(body) or is_tied(body) or names.MIRROR_POD in annotations_of(body))


# --- Owner of the NodePools as Karpenter reads them; each is parsed only when it has changed.


class NodePool(msgspec.Struct, frozen=True):
    name: str
    uid: str
    spec: Mapping[str, Any]
    template: NodeClaimTemplate
    hash: str
    labels: dict[str, str]  # of all its nodes
    demands: Demands  # including those labels
    required: Mapping[str, Allowed]  # without those labels
    limits: Mapping[str, int]
    varied: Mapping[str, int]  # minValues: label -> number of values that a launch must leave open
    types: tuple[KarpenterInstanceType, ...]  # allowed instance types

    @property
    def weight(self) -> int:
        return int(self.spec.get("weight") or 0)

    @property
    def replicas(self) -> int | None:
        """The fixed number of nodes; None: by demand."""
        found = self.spec.get("replicas")
        return None if found is None else int(found)

    def is_varied(self, types: Iterable[KarpenterInstanceType]) -> bool:
        """Whether the instance types satisfy minValues."""
        if not self.varied:
            return True
        found: dict[str, set[str]] = {key: set() for key in self.varied}
        for machine in types:
            for key in found.keys() & machine.demands.keys():
                found[key].update(machine.demands[key].values)
        return all(len(found[key]) >= least for key, least in self.varied.items())

    @property
    def taints(self) -> tuple[NodeTaint, ...]:
        return tuple(NodeTaint(each.key, each.effect, each.value or "") for each in self.template.spec.taints or ())

    @property
    def prefers(self) -> bool:
        """Whether the NodePool has a PreferNoSchedule taint."""
        return any(each.effect == "PreferNoSchedule" for each in self.template.spec.taints or ())

    @property
    def policy(self) -> str:
        found = self.spec.get("disruption") or {}
        return str(found.get("consolidationPolicy") or "WhenEmptyOrUnderutilized")

    def consolidates(self, now: Instant) -> bool:
        """Whether Karpenter may consolidate nodes that are not drifted."""
        if self.consolidate_after_ms is None or self.replicas is not None:
            return False
        found = (self.spec.get("disruption") or {}).get("budgets")
        if found and any("schedule" in each for each in found):
            return True
        return any(allowed_at_once(self.spec, 1, reason, now) != 0 for reason in ("Empty", "Underutilized"))

    @property
    def consolidate_after_ms(self) -> int | None:
        """Delay after the last pod change; None: never."""
        found = self.spec.get("disruption") or {}
        length = nanoseconds_unless_never(str(found.get("consolidateAfter") or "0s"))
        return None if length is None else length // 1_000_000


class NodePools:
    """Updated with each change; unreadable NodePools launch nothing."""

    def __init__(self, types: tuple[KarpenterInstanceType, ...]) -> None:
        self.version = 0  # changes with any NodePool
        self._types = types
        self._by_name: dict[str, NodePool] = {}
        self._in_order: tuple[NodePool, ...] | None = None

    def take(self, name: str, body: Object | None) -> None:
        read = _read(body, self._types) if body is not None and not is_leaving(body) else None
        if read is None:
            changed = self._by_name.pop(name, None) is not None
        else:
            before, self._by_name[name] = self._by_name.get(name), read
            changed = before is None or before.spec != read.spec or before.uid != read.uid
        if changed:
            self.version += 1
            self._in_order = None

    def get(self, name: str) -> NodePool | None:
        return self._by_name.get(name)

    def in_order(self) -> tuple[NodePool, ...]:
        """In Karpenter's order: by weight, and within equal weight by descending name."""
        if self._in_order is None:
            by_name = sorted(self._by_name.values(), key=lambda each: each.name, reverse=True)
            self._in_order = tuple(sorted(by_name, key=lambda each: -each.weight))
        return self._in_order


def _read(body: Object, types: tuple[KarpenterInstanceType, ...]) -> NodePool | None:
    metadata, spec = body["metadata"], body.get("spec") or {}
    written = spec.get("template") or {}
    try:
        template, hashed = read_template(written), template_hash(written)
    except ValueError:
        return None
    name = metadata["name"]
    labels = dict(template.metadata.labels or {}) | {names.KARPENTER_POOL: name}
    reference = template.spec.node_class_ref
    if reference is not None and reference.kind:
        labels[f"{reference.group}/{reference.kind.lower()}"] = reference.name
    required = demands(template.spec.requirements or ())
    requirements_by_key = joined(required, of_labels(labels))
    return NodePool(
        name,
        metadata.get("uid", ""),
        spec,
        template,
        hashed,
        labels,
        requirements_by_key,
        required,
        _limits(spec.get("limits") or {}),
        _varied((written.get("spec") or {}).get("requirements") or ()),
        tuple(each for each in types if intersects(each.demands, requirements_by_key)),
    )


def _varied(requirements: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The maximum, if a label is named more than once."""
    result: dict[str, int] = {}
    for each in requirements:
        if each.get("minValues"):
            result[each["key"]] = max(result.get(each["key"], 0), int(each["minValues"]))
    return result


def _limits(written: Mapping[str, Any]) -> dict[str, int]:
    texts = {name: str(text) for name, text in written.items()}
    nodes = texts.pop(NODES, "")
    return counted(texts) | ({NODES: int(nodes)} if nodes.isdigit() else {})
