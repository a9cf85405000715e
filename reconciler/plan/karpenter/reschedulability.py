"""Whether pods would fit elsewhere after their nodes are gone: on a remaining node, or on a new one of any NodePool.

A new node resembles existing nodes of its NodePool: their common labels, and their capacity minus that of
DaemonSets, with labels and taints of the edited template. The capacity of a NodePool without nodes is unknown and
assumed to be unlimited. Any number of new nodes can be launched, so a pod that fits on one always has a place; other
pods share the free capacity of remaining nodes.

A pod whose placement cannot be evaluated (fleet/questions.py) is not reported as homeless.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.first_fit import Search
from reconciler.fleet.fleet import Fleet
from reconciler.fleet.obstacles import NoNodePoolLeft
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import place, why_it_stays
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeClaimTemplate, NodeSpec, NodeStatus, NodeTaint
from reconciler.model.cluster.observed import comes_with_each_node, daemon_sets
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.consequence import Homeless, homeless_order
from reconciler.model.plan.decision import Obstacle
from reconciler.plan.karpenter.template_hash import read_template

# Assumed amount of each requested resource on a machine with unknown capacity.
_PLENTY = str(10**12)

_Kind = tuple[str, str, str, frozenset[tuple[str, str]]]


class Goes(msgspec.Struct, frozen=True):
    """A NodePool whose nodes are removed."""

    node_pool: str
    after_spec: Mapping[str, Any] | None  # spec of its new nodes; None: it launches none
    others: frozenset[str] = frozenset()  # other removed nodes


def homeless_of(
    fleet: Fleet, goes: Goes, pods: Mapping[str, Sequence[Pod]], steps: int
) -> dict[str, tuple[Homeless, ...]]:
    """By node, pods that have to move and fit on no node."""
    if not any(pods.values()):
        return {}
    with fleet.snapshot.fork():
        why = _Search(fleet, goes, pods).run(steps)
    homelesses: dict[str, tuple[Homeless, ...]] = {}
    for node, moving in pods.items():
        counted = Counter((pod.made_by, why[pod.metadata.uid]) for pod in moving if pod.metadata.uid in why)
        if counted:
            homelesses[node] = tuple(
                Homeless(owner, why, count) for (owner, why), count in sorted(counted.items(), key=homeless_order)
            )
    return homelesses


class _Search:
    """One search: the fleet without the removed nodes, and with a new node of each possible kind."""

    def __init__(self, fleet: Fleet, goes: Goes, pods: Mapping[str, Sequence[Pod]]) -> None:
        self._snapshot = snapshot = fleet.snapshot
        self._pods = sorted((pod for moving in pods.values() for pod in moving), key=lambda pod: pod.title)
        self._node_pool = goes.node_pool
        kinds = list(_kinds(fleet, goes))
        for name, row in sorted(snapshot.rows.row_of.items()):
            if name in pods or name in goes.others or _goes(snapshot.rows.node(row)):
                snapshot.take_away(row)
        self._new = [(node_pool, _brought(snapshot, node, daemons)) for node_pool, node, daemons in kinds]
        self._stays = snapshot.rows.alive.copy()
        self._stays[[row for _, row in self._new]] = False

    def run(self, steps: int) -> dict[str, tuple[Obstacle, ...]]:
        """By pod uid, why the pod fits on no node."""
        snapshot, waiting = self._snapshot, self._without_new_node()
        placed = place(snapshot, waiting, Search(allowed=self._stays, budget=steps))
        return {
            pod.metadata.uid: self._why(snapshot.classes.of(pod).anew, placed.unplaced[pod.metadata.uid])
            for pod in waiting
            if pod.metadata.uid in placed.unplaced
        }

    def _without_new_node(self) -> list[Pod]:
        """Pods that fit on no new node."""
        snapshot, judging = self._snapshot, self._snapshot.part(FilterChain)
        rows = [row for _, row in self._new]
        waiting: list[Pod] = []
        has_home: dict[PodClass, bool] = {}
        for pod in self._pods:
            pod_class = snapshot.classes.of(pod).anew
            if pod_class not in has_home:
                is_unknown = bool(why_it_stays(pod_class, snapshot))
                has_home[pod_class] = is_unknown or any(judging.fits(pod_class, row) for row in rows)
            if not has_home[pod_class]:
                waiting.append(pod)
        return waiting

    def _why(self, pod_class: PodClass, ruled_out: Rejections) -> tuple[Obstacle, ...]:
        """Obstacles on new nodes of its own NodePool; otherwise obstacles on the remaining nodes."""
        judging = self._snapshot.part(FilterChain)
        own = [row for node_pool, row in self._new if node_pool == self._node_pool]
        if own:
            return judging.reasons(pod_class, own[0])
        return (NoNodePoolLeft(ruled_out),)


def _goes(node: Node) -> bool:
    return node.metadata.leaving or node.taint(names.DISRUPTED) is not None


def _brought(snapshot: Snapshot, node: Node, daemons: Sequence[Pod]) -> int:
    """Adds the node and those DaemonSet pods that would also run on it; returns its row."""
    row = snapshot.bring(node)
    judging = snapshot.part(FilterChain)
    for pod in daemons:
        pod_class = snapshot.classes.of(pod).anew
        if judging.fits(pod_class, row):
            snapshot.add(pod_class, row)
    return row


def _kinds(fleet: Fleet, goes: Goes) -> Iterator[tuple[str, Node, Sequence[Pod]]]:
    """A new node of each possible kind, with the DaemonSet pods of similar nodes."""
    known = daemon_sets(fleet.observed)
    specs: dict[str, Mapping[str, Any]]
    specs = {each.name: each.spec for each in fleet.observed.node_pools if not each.metadata.deletion_timestamp}
    specs.pop(goes.node_pool, None)
    if goes.after_spec is not None:
        specs[goes.node_pool] = goes.after_spec
    for node_pool, spec in sorted(specs.items()):
        template = _template(spec)
        alike: defaultdict[_Kind, list[Node]] = defaultdict(list)
        for node in fleet.nodes_of(node_pool):
            alike[_kind(node)].append(node)
        for number, nodes in enumerate(alike.values()):
            made = _like(nodes, template, f"new/{node_pool}/{number}")
            daemons = [pod for pod in fleet.pods_on(nodes[0].name) if comes_with_each_node(pod, known)]
            yield node_pool, made, daemons
        if not alike:
            yield node_pool, _unknown(node_pool, template, fleet.snapshot.classes.columns), ()


def _kind(node: Node) -> _Kind:
    labels = node.metadata.labels
    machine, sold = labels.get(names.INSTANCE_TYPE, ""), labels.get(names.CAPACITY_TYPE, "")
    return machine, sold, labels.get(names.ZONE, ""), frozenset(node.status.allocatable.items())


def _like(nodes: Sequence[Node], template: NodeClaimTemplate, name: str) -> Node:
    """A new node with the common properties of these nodes."""
    shared = set(nodes[0].metadata.labels.items()).intersection(*(node.metadata.labels.items() for node in nodes[1:]))
    return _made(name, dict(shared) | _declared(template, dict(shared)), template, nodes[0].status)


def _unknown(node_pool: str, template: NodeClaimTemplate, resources: Iterable[str]) -> Node:
    plenty = dict.fromkeys(resources, _PLENTY)
    labels = {names.KARPENTER_POOL: node_pool} | _declared(template, {})
    return _made(f"new/{node_pool}", labels, template, NodeStatus(allocatable=plenty))


def _made(name: str, labels: dict[str, str], template: NodeClaimTemplate, status: NodeStatus) -> Node:
    taints = tuple(NodeTaint(each.key, each.effect, each.value or "") for each in template.spec.taints or ())
    return Node(Metadata(name, labels=labels | {names.HOSTNAME: name}), NodeSpec(taints=taints), status)


def _declared(template: NodeClaimTemplate, labels: Mapping[str, str]) -> dict[str, str]:
    """Labels from the template, and from requirements that existing nodes no longer meet."""
    found: dict[str, str] = {}
    for each in template.spec.requirements or ():
        if each.operator == "In" and each.values and labels.get(each.key) not in each.values:
            found[each.key] = min(each.values)
    return found | (template.metadata.labels or {})


def _template(spec: Mapping[str, Any]) -> NodeClaimTemplate:
    written = spec.get("template")
    try:
        return read_template(written) if isinstance(written, Mapping) else NodeClaimTemplate()
    except ValueError:
        return NodeClaimTemplate()
