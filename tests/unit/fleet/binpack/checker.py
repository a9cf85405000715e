"""Checks what packing says: binds pod after pod as the scheduler would, by rules of its own."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from reconciler.fleet.binpack.offers import Shape
from reconciler.fleet.binpack.result import NewNode, Packed
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod, PodTerm, TopologySpreadConstraint
from reconciler.plan.capacity.words import obstacle_words
from tests.unit.fleet.binpack.filters import (
    CAPACITY_TYPE,
    HOST,
    ZONE,
    Place,
    amount,
    asked,
    away,
    bears,
    clash,
    matches,
    meant,
    ports,
    rules,
    selector_name,
    selects,
    spread_selector,
    term_name,
)


@dataclass
class World:
    """All nodes, and what was counted so far: kept up pod by pod, since counting afresh for each would take days."""

    places: list[Place]
    bound: list[tuple[Pod, Place]] = field(default_factory=list)
    counts: dict[object, tuple[Callable[[Pod], bool], str, Counter[str]]] = field(default_factory=dict)
    holders: dict[object, tuple[PodTerm, str, Counter[str]]] = field(default_factory=dict)
    eligible: dict[bytes, list[Place]] = field(default_factory=dict)

    def bind(self, pod: Pod, place: Place) -> None:
        place.pods.append(pod)
        self.bound.append((pod, place))
        for name, wanted in asked(pod).items():
            place.free[name] = place.free.get(name, Decimal(0)) - wanted
        for means, key, counted in self.counts.values():
            if key in place.labels and means(pod):
                counted[place.labels[key]] += 1
        for term in away(pod):
            if term.topology_key in place.labels:
                name = term_name(term, pod.metadata.namespace)
                known = self.holders.setdefault(name, (term, pod.metadata.namespace, Counter()))
                known[2][place.labels[term.topology_key]] += 1

    def counted(self, name: object, key: str, means: Callable[[Pod], bool]) -> Counter[str]:
        """Pods that are meant, by the value of a label of their nodes."""
        if name not in self.counts:
            found = Counter(place.labels[key] for pod, place in self.bound if key in place.labels and means(pod))
            self.counts[name] = means, key, found
        return self.counts[name][2]

    def eligible_for(self, pod: Pod, rule: TopologySpreadConstraint) -> list[Place]:
        """Nodes whose domains and pods count for a rule of a pod."""
        keys = [each.topology_key for each in rules(pod)]
        honored = [pod.spec.node_selector, pod.spec.affinity and pod.spec.affinity.node_affinity, pod.spec.tolerations]
        name = msgspec.json.encode([keys, honored, rule.node_affinity_policy, rule.node_taints_policy], order="sorted")
        if name not in self.eligible:
            self.eligible[name] = [
                place
                for place in self.places
                if all(key in place.labels for key in keys)
                and (rule.node_affinity_policy == "Ignore" or selects(pod, place))
                and (rule.node_taints_policy != "Honor" or bears(pod, place))
            ]
        return self.eligible[name]


def faults(observed: Observed, shapes: Sequence[Shape], pods: Sequence[Pod], packed: Packed) -> list[str]:
    """Everything that is wrong with an outcome; nothing when it is right."""
    found = list(_lost(pods, packed)) + list(_mispriced(shapes, packed))
    bought = [new_place(f"bought-{number}", node, shapes) for number, node in enumerate(packed.nodes)]
    world = world_of(observed, bought)
    for number, index in packed.order:
        pod, place = packed.nodes[number].pods[index], bought[number]
        found += [f"{pod.name} on node {number}: {fault}" for fault in refusals(world, pod, place)]
        world.bind(pod, place)
    return found


def world_of(observed: Observed, bought: list[Place]) -> World:
    """What stands already, beside nodes that are empty yet."""
    there = [_standing(node) for node in observed.nodes]
    by_name = {place.name: place for place in there}
    world = World(there + bought)
    for pod in observed.pods:
        if pod.node in by_name and pod.status.phase not in {"Succeeded", "Failed"}:
            world.bind(pod, by_name[pod.node])
    return world


def refusals(world: World, pod: Pod, place: Place) -> Iterator[str]:
    """Every filter that would keep the pod from the node, as things stand."""
    for name, wanted in asked(pod).items():
        if wanted > place.free.get(name, Decimal(0)):
            yield f"{wanted} {name} asked, {place.free.get(name, 0)} free"
    if not selects(pod, place):
        yield "its selector or affinity does not match the node"
    if not bears(pod, place):
        yield "it does not tolerate a taint"
    taken = [port for each in place.pods for port in ports(each)]
    if any(clash(one, other) for one in ports(pod) for other in taken):
        yield "a port of the host is taken"
    yield from _uneven(world, pod, place)
    yield from _too_far(world, pod, place)
    yield from _too_near(world, pod, place)


def _uneven(world: World, pod: Pod, place: Place) -> Iterator[str]:
    for rule in rules(pod):
        if rule.topology_key not in place.labels:
            yield f"no label {rule.topology_key}"
            continue
        eligible = world.eligible_for(pod, rule)
        ids = {id(each) for each in eligible}
        selector, own = spread_selector(rule, pod), pod.metadata.labels
        name = ("spread", pod.metadata.namespace, selector_name(selector), rule.topology_key)
        everyone = len(ids) == len(world.places)
        if everyone:
            counted = world.counted(name, rule.topology_key, _counting(selector, pod))
        else:
            counted = Counter(
                at.labels[rule.topology_key]
                for other, at in world.bound
                if id(at) in ids and _counts(selector, other, pod)
            )
        domains = {each.labels[rule.topology_key] for each in eligible}
        least = min((counted.get(domain, 0) for domain in domains), default=0)
        least = least if len(domains) >= (rule.min_domains or 1) else 0
        here = counted.get(place.labels[rule.topology_key], 0) + int(matches(selector, own))
        if here - least > rule.max_skew:
            yield f"spread over {rule.topology_key}: {here} with it, the fewest {least}, maxSkew {rule.max_skew}"


def _counting(selector: LabelSelector | None, pod: Pod) -> Callable[[Pod], bool]:
    return lambda other: _counts(selector, other, pod)


def _counts(selector: LabelSelector | None, other: Pod, pod: Pod) -> bool:
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    same = other.metadata.namespace == pod.metadata.namespace and not other.metadata.deletion_timestamp
    return same and matches(selector, other.metadata.labels)


def _too_far(world: World, pod: Pod, place: Place) -> Iterator[str]:
    terms = pod.spec.affinity.pod_affinity.required if pod.spec.affinity else ()
    if not terms:
        return
    if any(term.topology_key not in place.labels for term in terms):
        yield "its affinity needs a label that the node lacks"
        return
    space = pod.metadata.namespace
    everybody = tuple(sorted(term_name(term, space) for term in terms))

    def means(other: Pod) -> bool:
        return all(meant(term, space, other) for term in terms)

    by_key = {
        key: world.counted(("near", key, everybody), key, means)
        for key in sorted({each.topology_key for each in terms})
    }
    if not any(sum(counted.values()) for counted in by_key.values()) and means(pod):
        return
    if not all(counted[place.labels[key]] for key, counted in by_key.items()):
        yield "no pod is near that its affinity asks for"


def _too_near(world: World, pod: Pod, place: Place) -> Iterator[str]:
    space = pod.metadata.namespace
    for term in away(pod):
        key = term.topology_key
        counted = world.counted(("apart", term_name(term, space), key), key, _meaning(term, space))
        if key in place.labels and counted[place.labels[key]]:
            yield f"a pod is there that its anti-affinity forbids within {key}"
    for term, of, counted in world.holders.values():
        if meant(term, of, pod) and counted[place.labels.get(term.topology_key, "")]:
            yield f"a pod is there whose anti-affinity forbids it within {term.topology_key}"


def _meaning(term: PodTerm, space: str) -> Callable[[Pod], bool]:
    return lambda other: meant(term, space, other)


def _lost(pods: Sequence[Pod], packed: Packed) -> Iterator[str]:
    """Pods that are not exactly once on a node or among those without a place."""
    placed = Counter(pod.metadata.uid for node in packed.nodes for pod in node.pods)
    left = Counter(pod.metadata.uid for pod in [each.pod for each in packed.unplaced] + list(packed.not_evaluated))
    for pod in pods:
        if placed[pod.metadata.uid] + left[pod.metadata.uid] != 1:
            yield f"{pod.name} is on {placed[pod.metadata.uid]} nodes and {left[pod.metadata.uid]} times without one"
    if placed.total() + left.total() != len(pods):
        yield "there are pods that nobody asked about"
    unexplained = (each.pod.name for each in packed.unplaced if not obstacle_words(each.why))
    yield from (f"{name} has no place, and no reason" for name in unexplained)
    order = Counter(packed.order)
    if order != Counter((number, index) for number, node in enumerate(packed.nodes) for index in range(len(node.pods))):
        yield "the order of binding does not name every placed pod once"


def _mispriced(shapes: Sequence[Shape], packed: Packed) -> Iterator[str]:
    """Nodes that are not on offer."""
    by_name = {shape.name: shape for shape in shapes}
    for number, node in enumerate(packed.nodes):
        if not node.pods:
            yield f"node {number} has no pods"
        offered = [
            each.micro_dollars_per_hour
            for each in by_name[node.shape].offerings
            if (each.zone, each.capacity_type, each.available) == (node.zone, node.capacity_type, True)
        ]
        if node.micro_dollars_per_hour not in offered:
            yield f"node {number} is not on offer at its price"
    for name, count in Counter(node.shape for node in packed.nodes).items():
        most = by_name[name].most_nodes
        if most is not None and count > most:
            yield f"{count} nodes of {name}, of which there are {most}"


def _standing(node: Node) -> Place:
    free = {name: amount(text) for name, text in node.status.allocatable.items()}
    return Place(node.name, node.metadata.labels, node.spec.taints, free)


def new_place(name: str, node: NewNode, shapes: Sequence[Shape]) -> Place:
    """A node that is bought, with nobody on it yet."""
    shape = next(each for each in shapes if each.name == node.shape)
    labels = shape.labels | {HOST: name}
    labels |= {ZONE: node.zone} if node.zone else {}
    labels |= {CAPACITY_TYPE: node.capacity_type} if node.capacity_type else {}
    free = {name: amount(text) for name, text in shape.allocatable.items()}
    return Place(name, labels, shape.taints, free)
