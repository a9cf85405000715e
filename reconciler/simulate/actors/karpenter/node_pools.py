"""Owner of the NodePools as Karpenter reads them, each read again only when it changed."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reconciler.fleet.amounts import counted
from reconciler.model import names
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.instant import Instant
from reconciler.plan.karpenter.budgets import allowed_at_once
from reconciler.plan.karpenter.durations import nanoseconds_unless_never
from reconciler.plan.karpenter.requirements import Allowed, Demands, demands
from reconciler.plan.karpenter.template import NodeClaimTemplate, read_template
from reconciler.plan.karpenter.template_hash import template_hash
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.instance_types import KarpenterInstanceType
from reconciler.simulate.actors.karpenter.machines import NODES
from reconciler.simulate.actors.karpenter.requirements import intersects, joined, of_labels


class NodePool(msgspec.Struct, frozen=True):
    """One, as it stands."""

    name: str
    uid: str
    spec: Mapping[str, Any]
    template: NodeClaimTemplate
    hash: str
    labels: dict[str, str]  # that each of its nodes has
    demands: Demands  # with those labels
    required: Mapping[str, Allowed]  # without them
    limits: Mapping[str, int]
    varied: Mapping[str, int]  # label -> how many values of it a purchase must leave open
    types: tuple[KarpenterInstanceType, ...]  # that it could buy

    @property
    def weight(self) -> int:
        return int(self.spec.get("weight") or 0)

    @property
    def replicas(self) -> int | None:
        """How many nodes it always has; None: as many as pods need."""
        found = self.spec.get("replicas")
        return None if found is None else int(found)

    def is_varied(self, types: Iterable[KarpenterInstanceType]) -> bool:
        """Whether so few instance types still leave open what is to be left open."""
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
        """Whether it has a taint that pods would only rather avoid."""
        return any(each.effect == "PreferNoSchedule" for each in self.template.spec.taints or ())

    @property
    def policy(self) -> str:
        found = self.spec.get("disruption") or {}
        return str(found.get("consolidationPolicy") or "WhenEmptyOrUnderutilized")

    def consolidates(self, now: Instant) -> bool:
        """Whether nodes of it could be taken away though they are as they should be."""
        if self.consolidate_after_ms is None or self.replicas is not None:
            return False
        found = (self.spec.get("disruption") or {}).get("budgets")
        if found and any("schedule" in each for each in found):
            return True
        return any(allowed_at_once(self.spec, 1, reason, now) != 0 for reason in ("Empty", "Underutilized"))

    @property
    def consolidate_after_ms(self) -> int | None:
        """How long after the last coming or going of a pod; None: never."""
        found = self.spec.get("disruption") or {}
        length = nanoseconds_unless_never(str(found.get("consolidateAfter") or "0s"))
        return None if length is None else length // 1_000_000


class NodePools:
    """Told of each that changed; those that can't be read buy nothing."""

    def __init__(self, types: tuple[KarpenterInstanceType, ...]) -> None:
        self.version = 0  # another whenever one changed
        self._types = types
        self._by_name: dict[str, NodePool] = {}
        self._in_order: tuple[NodePool, ...] | None = None

    def take(self, name: str, body: Object | None) -> None:
        """As it stands now."""
        read = _read(body, self._types) if body is not None and not body["metadata"].get("deletionTimestamp") else None
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
        """As Karpenter tries them: by weight, and of equal weight the last by name first."""
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
    alloweds = joined(required, of_labels(labels))
    return NodePool(
        name,
        metadata.get("uid", ""),
        spec,
        template,
        hashed,
        labels,
        alloweds,
        required,
        _limits(spec.get("limits") or {}),
        _varied((written.get("spec") or {}).get("requirements") or ()),
        tuple(each for each in types if intersects(each.demands, alloweds)),
    )


def _varied(requirements: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The largest, where a label is named more than once."""
    result: dict[str, int] = {}
    for each in requirements:
        if each.get("minValues"):
            result[each["key"]] = max(result.get(each["key"], 0), int(each["minValues"]))
    return result


def _limits(written: Mapping[str, Any]) -> dict[str, int]:
    texts = {name: str(text) for name, text in written.items()}
    nodes = texts.pop(NODES, "")
    return counted(texts) | ({NODES: int(nodes)} if nodes.isdigit() else {})
