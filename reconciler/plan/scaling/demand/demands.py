"""Pods that find no place: who serves which, on nodes that are kept, that are on their way, or that are bought.

Theory of operation. A pod that the scheduler calls unschedulable and that fits on a node that stays is only not
scheduled yet: it is no demand, though the node is spoken for. Each of the others goes to the first provisioner, by
order and name, on whose nodes it could be. There it is placed on marked empty nodes first, which then are kept: on the
last in removal order first; then on machines that were bought and are on their way; and for the rest new nodes are
packed, as many as the largest size and the limits of the pool allow. All of that happens in a fork of the fleet.

Pods behind our gate wait in the same way, though Karpenter does not see them. Smart pods are no demand: they are what
was asked for already, and the pods they were made for are served by the machines that come for them. Nor are pods that
come after evicted ones, for a minute, where the place that was found for them still has room.

For pods that were evicted lately and that nobody has made anew yet nothing is bought, but the empty node that is the
only place of one of them stays, marked or not (awaiting.py).
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.fleet.judging import Judging
from reconciler.fleet.packing.looks import labels_of, new_node
from reconciler.fleet.packing.shape import Shape
from reconciler.fleet.placing import Search
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.predicates.selection import selects
from reconciler.fleet.predicates.taints import untolerated
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask
from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.containment import planning_for
from reconciler.plan.recent_evictions import unreplaced
from reconciler.plan.requests.promised import Promise, promises
from reconciler.plan.requests.waiting import is_coming, is_gated, waits
from reconciler.plan.scaling.demand.arrived import Arrived, real_name
from reconciler.plan.scaling.demand.awaiting import Awaiting
from reconciler.plan.scaling.demand.promised import keep
from reconciler.plan.scaling.demand.serving import Demand, Serving
from reconciler.plan.scaling.demand.shapes import shapes_of
from reconciler.plan.scaling.ground import Ground, Site

Shapes = dict[str, list[Shape]]  # by the name of the provisioner


class Demands(msgspec.Struct, frozen=True):
    """Of all provisioners, by their names; and nodes that stay, for which pods wait that fit there."""

    of: dict[str, Demand] = {}
    spoken_for: frozenset[str] = frozenset()
    places: dict[str, str] = {}  # uid of a pod behind our gate -> name of the node that has room for it
    unfit: frozenset[str] = frozenset()  # smart pods whose nodes take none of those they were for
    promised: tuple[Promise, ...] = ()  # that are kept
    awaiting: frozenset[str] = frozenset()  # names of empty nodes that are the only place of pods evicted lately


def demands(site: Site, grounds: Sequence[Ground]) -> Demands:
    """`grounds` in the order in which they are asked."""
    waiting = site.fleet.occupancy.waiting
    nominated = frozenset(pod.status.nominated_node_name for pod in waiting) - {""}
    pods = [pod for pod in waiting if waits(pod)]
    evicted = unreplaced(site.inputs)
    if not pods and not evicted:
        return Demands(spoken_for=nominated)
    what_if = site.fleet.what_if
    pods.sort(key=lambda pod: what_if.classes.of(pod).anew.rank)  # those of one class are sorted by name
    with what_if.fork():
        arrived = Arrived(site, what_if)
        for each in grounds:
            with planning_for(each.pool.name):
                arrived.open(each)
        if any(is_gated(pod) for pod in pods):
            # Those that were let go keep the place they were let go to, though no scheduler has looked at them yet.
            place(what_if, [pod for pod in waiting if is_coming(pod)], Search(budget=site.inputs.budget))
        by_uid = {pod.metadata.uid: pod for pod in pods}
        unfit = frozenset(name for each in grounds for name in arrived.unfit(each, by_uid))
        shapes = {each.wish.name: _shapes(each) for each in grounds}
        allowed = _staying(site, grounds)
        kept = keep(what_if, promises(site.inputs, pods), allowed)
        pods = [pod for pod in pods if pod.metadata.uid not in kept.uids]
        staying = place(what_if, pods, Search(allowed=allowed, budget=site.inputs.budget))
        left = [pod for pod in pods if pod.metadata.uid in staying.unplaced]
        own = _assigned(what_if, shapes, left)
        awaited = Awaiting(site, grounds, evicted)
        awaited.on_staying(allowed)
        found = {each.wish.name: _served(each, shapes[each.wish.name], own[each.wish.name]) for each in grounds}
        awaited.on_marked()
        places = {uid: real_name(name) for uid, name in staying.destinations.items()} | dict(kept.at_once)
        gated = {uid: name for uid, name in places.items() if is_gated(by_uid[uid]) and _is_ready(site, name)}
        spoken_for = nominated.union(places.values(), (each.home for each in kept.promises))
        return Demands(found, spoken_for, gated, unfit, kept.promises, frozenset(awaited.nodes))


def _shapes(ground: Ground) -> list[Shape]:
    with planning_for(ground.pool.name):
        return shapes_of(ground)


def _served(ground: Ground, shapes: list[Shape], pods: list[Pod]) -> Demand:
    with planning_for(ground.pool.name):
        return Serving(ground, shapes).serve(pods)


def _is_ready(site: Site, name: str) -> bool:
    node = site.fleet.node(name)
    return node is not None and node.is_ready


def _staying(site: Site, grounds: Sequence[Ground]) -> Mask:
    """Nodes that nobody takes away."""
    rows = site.fleet.what_if.rows
    found: Mask = rows.alive.copy()
    going = [noted.node.name for ground in grounds for noted in ground.noted]
    going += [each.name for each in site.fleet.nodes_unsettled]
    found[[rows.row_of[name] for name in going]] = False
    return found


def _assigned(what_if: WhatIf, shapes: Shapes, pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """The pods of each provisioner; those that none could serve are left out."""
    found: dict[str, list[Pod]] = {name: [] for name in shapes}
    with what_if.fork():
        classes = {what_if.classes.of(pod).anew for pod in pods}
        rows = {name: list(_tried(what_if, _new_nodes(name, each), classes)) for name, each in shapes.items()}
        judging = what_if.part(Judging)
        first: dict[PodClass, str] = {}
        for pod in pods:
            pod_class = what_if.classes.of(pod).anew
            if pod_class not in first:
                fitting = (name for name, tried in rows.items() if any(judging.fits(pod_class, row) for row in tried))
                first[pod_class] = next(fitting, "")
            if first[pod_class]:
                found[first[pod_class]].append(pod)
    return found


def _new_nodes(name: str, shapes: Sequence[Shape]) -> Iterator[Node]:
    """One for each way in which it could be bought."""
    for shape in shapes:
        for number, each in enumerate(shape.offerings):
            labels = labels_of(shape, each.zone, each.capacity_type)
            yield new_node(f"tried/{name}/{shape.name}/{number}", labels, shape)


def _tried(what_if: WhatIf, nodes: Iterable[Node], classes: Iterable[PodClass]) -> Iterator[int]:
    """Rows of those of the nodes that labels and taints alone do not rule out: most do for most pods."""
    needs = {each.needs.number: each.needs for each in classes}.values()
    for node in nodes:
        if any(selects(each, node) and untolerated(node.spec.taints, each.tolerations) is None for each in needs):
            yield what_if.bring(node)
