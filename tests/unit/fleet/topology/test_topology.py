"""Where pods may go for the sake of other pods: the fleet and a slow reference agree on it."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model import names
from reconciler.model.cluster.node import Node
from tests.unit.fleet.topology import reference
from tests.unit.fleet.topology.stage import Json, node_of, observed_of, pod, pod_of, what_if_of
from tests.unit.fleet.topology.worlds import askers, nodes, pods, worlds

DRAINED = {"key": names.DRAINING, "effect": "NoSchedule", "value": "1"}
SLOW = {InterPod: reference.interpod_fits, SpreadFilter: reference.spread_fits}


def agree(fleet: Snapshot, world: Json, asking: Json) -> None:
    """The fleet says of each node what the reference says."""
    pod_class = fleet.classes.of(pod(asking))
    for predicate, slow in SLOW.items():
        asked: Any = fleet.part(predicate)
        mask = asked.mask(pod_class, fleet)
        for node in world["nodes"]:
            row = fleet.rows.row_of[node["metadata"]["name"]]
            expected = slow(world, asking, node)
            assert asked.fits(pod_class, row, fleet) == expected
            assert (mask is None or bool(mask[row])) == expected
            assert expected or asked.why(pod_class, row, fleet)
            assert expected or asked.concerns(pod_class, fleet)


@settings(max_examples=150)
@given(worlds(), pods("new"), pods("another"))
def test_it_says_what_the_reference_says(world: Json, first: Json, second: Json) -> None:
    fleet = what_if_of(world)
    agree(fleet, world, first)
    agree(fleet, world, second)


class Stage:
    """A what-if, and the manifests of what should be in it."""

    def __init__(self, world: Json, askers: list[Json], data: some.DataObject) -> None:
        self.askers = askers
        self.world = world
        self.fleet = what_if_of(world)
        self.draw = data.draw
        self._number = 0

    def name(self) -> str:
        self._number += 1
        return f"new{self._number}"

    @property
    def open_to_pods(self) -> list[Json]:
        """Nodes that were not vacated."""
        rows = self.fleet.rows
        return [each for each in self.world["nodes"] if rows.alive[rows.row_of[each["metadata"]["name"]]]]

    def book(self) -> None:
        if open_to_pods := self.open_to_pods:
            node = self.draw(some.sampled_from([each["metadata"]["name"] for each in open_to_pods]))
            made = self.draw(pods(self.name(), node))
            self.fleet.add(self.fleet.classes.of(pod(made)), self.fleet.rows.row_of[node])
            self.world = {**self.world, "pods": [*self.world["pods"], made]}

    def unbook(self) -> None:
        there = [each for each, _ in reference.running(self.world)]
        if there:
            gone = self.draw(some.sampled_from(there))
            self.fleet.remove(self.fleet.classes.of(pod(gone)), self.fleet.rows.row_of[gone["spec"]["nodeName"]])
            self.world = {**self.world, "pods": [each for each in self.world["pods"] if each is not gone]}

    def take_away(self) -> None:
        if open_to_pods := self.open_to_pods:
            gone = self.draw(some.sampled_from(open_to_pods))
            name = gone["metadata"]["name"]
            self.fleet.take_away(self.fleet.rows.row_of[name])
            left = [each for each in self.world["pods"] if each["spec"]["nodeName"] != name]
            kept = [each for each in self.world["nodes"] if each is not gone]
            self.world = {**self.world, "nodes": kept, "pods": left}

    def vacate(self) -> None:
        """The node stands, and counts as a domain; to those who honor taints it is one that is drained."""
        if open_to_pods := self.open_to_pods:
            vacated = self.draw(some.sampled_from(open_to_pods))
            name, spec = vacated["metadata"]["name"], vacated.get("spec") or {}
            self.fleet.vacate(self.fleet.rows.row_of[name])
            left = [each for each in self.world["pods"] if each["spec"]["nodeName"] != name]
            tainted = {**vacated, "spec": {**spec, "taints": [*spec.get("taints", ()), DRAINED]}}
            there = [tainted if each is vacated else each for each in self.world["nodes"]]
            self.world = {**self.world, "nodes": there, "pods": left}

    def bring(self) -> None:
        made = self.draw(nodes(self.name()))
        self.fleet.bring(msgspec.convert(made, Node))
        self.world = {**self.world, "nodes": [*self.world["nodes"], made]}

    def ask(self) -> None:
        agree(self.fleet, self.world, self.draw(pods("asking")))

    def check(self) -> None:
        """Nothing is miscounted, and who asked before is still told what the reference says."""
        for each in self.askers:
            agree(self.fleet, self.world, each)
        assert self.fleet.part(Counting).fingerprint(self.fleet) == []

    def fork(self, depth: int) -> None:
        """A few steps that are kept or taken back."""
        kept = self.draw(some.booleans()) and depth > 0
        before, world = self.fleet.fingerprint(), self.world
        with self.fleet.fork() as fork:
            for _ in range(self.draw(some.integers(1, 5))):
                self.step(depth)
            if kept:
                fork.commit()
        if not kept:
            self.world = world
            assert self.fleet.fingerprint() == before

    def step(self, depth: int) -> None:
        steps = [self.book, self.book, self.unbook, self.take_away, self.vacate, self.bring, self.ask]
        if depth < 3 and self.draw(some.booleans()):
            self.fork(depth + 1)
        else:
            self.draw(some.sampled_from(steps))()
        if self.draw(some.integers(0, 3)):
            self.check()


@settings(max_examples=60)
@given(worlds(), askers("first"), askers("second"), some.data())
def test_it_still_does_after_anything_was_booked_and_taken_back(
    world: Json, first: Json, second: Json, data: some.DataObject
) -> None:
    stage = Stage(world, [first, second], data)
    if data.draw(some.booleans()):
        stage.check()
    for _ in range(2):
        stage.fork(0)
        stage.check()


@settings(max_examples=100)
@given(worlds(), worlds(), askers("asking"))
def test_it_still_does_when_the_cluster_is_seen_again(before: Json, after: Json, asking: Json) -> None:
    fleet = what_if_of(before)
    agree(fleet, before, asking)
    fleet.advance(observed_of(after))
    agree(fleet, after, asking)
    assert fleet.part(Counting).fingerprint(fleet) == []


RULE = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
WEB = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}


def test_it_still_does_after_a_node_came_for_a_while_that_there_was_no_room_for() -> None:
    names = [f"n{number:02}" for number in range(16)]
    there = [pod_of({"at": "n00", "labels": {"app": "web"}}, "p0")]
    world = {"nodes": [node_of(name, {"zone": name[-1]}) for name in names], "pods": there, "namespaces": []}
    asking = pod_of({"labels": {"app": "web"}, "apart": [WEB], "spread": [{**RULE, **WEB}]})
    fleet = what_if_of(world)
    agree(fleet, world, asking)
    assert fleet.rows.capacity == len(names)
    with fleet.fork():
        made, last = node_of("new", {"zone": "0"}), pod_of({"at": "new", "labels": {"app": "web"}}, "p1")
        fleet.bring(msgspec.convert(made, Node))
        fleet.add(fleet.classes.of(pod(last)), fleet.rows.row_of["new"])
        agree(fleet, {**world, "nodes": [*world["nodes"], made], "pods": [*there, last]}, asking)
    assert fleet.rows.capacity > len(names)
    agree(fleet, world, asking)
    assert fleet.part(Counting).fingerprint(fleet) == []
    assert len(fleet.part(FilterChain).mask(fleet.classes.of(pod(asking)))) == fleet.rows.capacity


def test_it_still_does_when_only_another_pod_asked_while_a_node_was_there() -> None:
    names = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
    there = [pod_of({"at": name, "labels": {"app": "web"}}, name) for name in ("a1", "b1")]
    nodes = [node_of(name, {"zone": zone}) for name, zone in names.items()]
    world = {"nodes": nodes, "pods": there, "namespaces": []}
    asking = pod_of({"labels": {"app": "web"}, "spread": [{**RULE, **WEB}]})
    another = pod_of({"labels": {"app": "web"}, "spread": [{**RULE, **WEB, "topologyKey": "host"}]})
    fleet = what_if_of(world)
    agree(fleet, world, asking)
    with fleet.fork():
        made = node_of("d1", {"zone": "d"})
        fleet.bring(msgspec.convert(made, Node))
        agree(fleet, {**world, "nodes": [*nodes, made]}, another)
    fleet.take_away(fleet.rows.row_of["c1"])
    agree(fleet, {**world, "nodes": nodes[:-1]}, asking)
    assert fleet.part(Counting).fingerprint(fleet) == []


def test_it_still_does_when_most_nodes_go_at_once() -> None:
    names = [f"n{number:03}" for number in range(100)]
    there = [pod_of({"at": name, "labels": {"app": "web"}}, name) for name in ("n000", "n001")]
    world = {"nodes": [node_of(name, {"zone": name[-1]}) for name in names], "pods": there, "namespaces": []}
    asking = pod_of({"labels": {"app": "web"}, "spread": [{**RULE, **WEB}]})
    fleet = what_if_of(world)
    agree(fleet, world, asking)
    with fleet.fork():
        kept = [node for node in world["nodes"] if node["metadata"]["name"][-1] in "01"]
        for name in names:
            if name[-1] not in "01":
                fleet.take_away(fleet.rows.row_of[name])
        agree(fleet, {**world, "nodes": kept}, asking)
    agree(fleet, world, asking)
