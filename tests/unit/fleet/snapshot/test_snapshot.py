"""What holds for every fleet: what is tried is taken back, and what was seen before leaves no trace."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle
from tests.unit.fleet.stage import node, pod
from tests.unit.fleet.worlds import World, alike_words, changed, node_words, pod_words, worlds


def answers(fleet: Snapshot, pods: list[Pod]) -> dict[tuple[str, str], tuple[Obstacle, ...]]:
    """Every pod asked about on every node; each predicate's three ways to answer agree."""
    judging = fleet.part(FilterChain)
    found = {}
    for each in pods:
        pod_class = fleet.classes.of(each)
        mask = judging.mask(pod_class)
        masks = {predicate.name: predicate.mask(pod_class, fleet) for predicate in judging.predicates}
        for name, row in fleet.rows.row_of.items():
            if not fleet.rows.alive[row]:
                assert not mask[row]
                continue
            why = judging.reasons(pod_class, row)
            found[each.name, name] = why
            assert bool(mask[row]) == (not why) == judging.fits(pod_class, row)
            for predicate in judging.predicates:
                fits = predicate.fits(pod_class, row, fleet)
                within = masks[predicate.name]
                assert fits == (within is None or bool(within[row])), predicate.name
                assert fits or predicate.concerns(pod_class, fleet)
    return found


def shape(fleet: Snapshot) -> tuple[bytes, bytes, list[dict[bytes, int]]]:
    """All that is behind the fingerprint, of the nodes that there are."""
    order = fleet.rows.order
    booked = [{each.text: count for each, count in fleet.booked_on(int(row)).items()} for row in order]
    return (
        fleet.fingerprint(),
        fleet.stock.allocatable[order, :4].tobytes() + fleet.stock.free[order, :4].tobytes(),
        booked,
    )


class Tried:
    """A fleet in which things are tried."""

    def __init__(self, world: World, data: some.DataObject) -> None:
        self.fleet = Snapshot(world.observed())
        self.draw = data.draw
        self.asking = [pod(f"a{number}", self.draw(pod_words)) for number in range(3)]
        self._number = 0
        answers(self.fleet, self.asking)

    def add(self, row: int) -> None:
        self._number += 1
        made = pod(f"new{self._number}", self.draw(some.one_of(pod_words, alike_words)))
        self.fleet.add(self.fleet.classes.of(made), row, self.draw(some.integers(1, 3)))

    def remove(self, row: int) -> None:
        booked = self.fleet.booked_on(row)
        if booked:
            pod_class = self.draw(some.sampled_from(sorted(booked, key=lambda each: each.text)))
            self.fleet.remove(pod_class, row, self.draw(some.integers(1, booked[pod_class])))

    def take_away(self, row: int) -> None:
        self.fleet.take_away(row)

    def vacate(self, row: int) -> None:
        self.fleet.vacate(row)

    def bring(self, row: int) -> None:
        self._number += 1
        self.fleet.bring(node(f"new{self._number}", self.draw(node_words)))

    def ask(self, row: int) -> None:
        answers(self.fleet, self.asking)

    def step(self, depth: int) -> None:
        rows = [int(row) for row in self.fleet.rows.order if self.fleet.rows.alive[row]]
        if not rows:
            self.bring(0)
        elif depth < 3 and self.draw(some.integers(0, 2)) == 0:
            self.fork(depth + 1)
        else:
            steps = [self.add, self.add, self.remove, self.take_away, self.vacate, self.bring, self.ask]
            self.draw(some.sampled_from(steps))(self.draw(some.sampled_from(rows)))

    def fork(self, depth: int) -> None:
        before, told = shape(self.fleet), answers(self.fleet, self.asking)
        kept = depth > 0 and self.draw(some.booleans())
        with self.fleet.fork() as fork:
            for _ in range(self.draw(some.integers(1, 6))):
                self.step(depth)
            if kept:
                fork.commit()
        if not kept:
            assert shape(self.fleet) == before
            assert answers(self.fleet, self.asking) == told


@settings(max_examples=60, deadline=None)
@given(worlds(), some.data())
def test_what_is_tried_is_taken_back_byte_for_byte(world: World, data: some.DataObject) -> None:
    Tried(world, data).fork(0)


@settings(max_examples=80, deadline=None)
@given(worlds(), some.data())
def test_a_fleet_that_was_advanced_equals_one_built_afresh(world: World, data: some.DataObject) -> None:
    asking = [pod(f"a{number}", data.draw(pod_words)) for number in range(3)]
    fleet = Snapshot(world.observed())
    answers(fleet, asking)
    for _ in range(data.draw(some.integers(1, 4))):
        changed(data, world)
        fleet.advance(world.observed())
        if data.draw(some.booleans()):
            answers(fleet, asking)
    fresh = Snapshot(world.observed())
    everybody = [*asking, *world.pods.values()]
    assert answers(fleet, everybody) == answers(fresh, everybody)
    assert fleet.fingerprint() == fresh.fingerprint()


@settings(max_examples=50, deadline=None)
@given(worlds(), some.data())
def test_the_order_of_objects_does_not_matter(world: World, data: some.DataObject) -> None:
    observed = world.observed()
    nodes, pods = data.draw(some.permutations(observed.nodes)), data.draw(some.permutations(observed.pods))
    one, other = Snapshot(observed), Snapshot(Observed(nodes=tuple(nodes), pods=tuple(pods)))
    everybody = [pod("a", data.draw(pod_words)), *observed.pods]
    assert answers(one, everybody) == answers(other, everybody)
    assert one.fingerprint() == other.fingerprint()


def test_a_fork_that_ends_in_a_fault_is_taken_back() -> None:
    fleet = Snapshot(Observed(nodes=(node("n1", {}),)))
    before = fleet.fingerprint()
    pod_class = fleet.classes.of(pod("p", {"cpu": 1}))
    with pytest.raises(LookupError), fleet.fork() as fork:  # noqa: PT012
        fork.commit()
        fleet.add(pod_class, 0)
        fleet.remove(pod_class, 0, count=2)
    assert fleet.fingerprint() == before


def test_a_commit_is_taken_back_with_the_fork_around_it() -> None:
    fleet = Snapshot(Observed(nodes=(node("n1", {}),)))
    before = fleet.fingerprint()
    with fleet.fork():
        with fleet.fork() as inner:
            fleet.add(fleet.classes.of(pod("p", {"cpu": 1})), 0)
            inner.commit()
        assert fleet.fingerprint() != before
    assert fleet.fingerprint() == before


def test_rows_grow_with_the_nodes() -> None:
    fleet = Snapshot(Observed(nodes=(node("n1", {}),)))
    asking = fleet.classes.of(pod("p", {"nodeSelector": {"zone": "a"}}))
    judging, before, version = fleet.part(FilterChain), fleet.fingerprint(), fleet.rows.version
    with fleet.fork():
        rows = [fleet.bring(node(f"b{number}", {"labels": {"zone": "a"}})) for number in range(100)]
        assert judging.mask(asking).nonzero()[0].tolist() == sorted(rows)
    assert not judging.mask(asking).any()
    assert fleet.fingerprint() == before
    assert fleet.rows.version != version, "what was kept for that version is too short now"


def test_classes_that_nobody_is_of_are_forgotten() -> None:
    nodes = (node("n1", {"has": {"pods": 10}}),)
    fleet = Snapshot(Observed(nodes=nodes))
    for each in range(15):
        pods = [pod(f"p{number}", {"labels": {"job": f"{each}-{number}"}, "nodeName": "n1"}) for number in range(1_000)]
        fleet.advance(Observed(nodes=nodes, pods=tuple(pods)))
    assert len(fleet.classes.all) <= 12_000
    assert sum(fleet.booked_on(0).values()) == 1_000


def test_nothing_is_booked_twice_when_only_times_change() -> None:
    there = pod("p", {"cpu": 1, "nodeName": "n1"})
    fleet = Snapshot(Observed(nodes=(node("n1", {}),), pods=(there,)))
    before, version = fleet.fingerprint(), fleet.rows.version
    later = msgspec.structs.replace(there, status=msgspec.structs.replace(there.status, start_time="later"))
    fleet.advance(Observed(nodes=(msgspec.structs.replace(node("n1", {})),), pods=(later,)))
    assert fleet.fingerprint() == before
    assert fleet.rows.version == version
    assert fleet.pods_of_row(0) == (later,)


def test_a_node_may_have_more_than_before() -> None:
    there = pod("p", {"cpu": 1, "nodeName": "n1"})
    fleet = Snapshot(Observed(nodes=(node("n1", {"has": {"cpu": 2, "pods": 9}}),), pods=(there,)))
    fleet.advance(Observed(nodes=(node("n1", {"has": {"cpu": 8, "gpu.com/gpu": 4, "pods": 9}}),), pods=(there,)))
    assert {name: fleet.stock.free_at(0, column) for name, column in fleet.classes.columns.items()} == {
        "cpu": 7_000,
        "memory": 0,
        "ephemeral-storage": 0,
        "pods": 8,
        "gpu.com/gpu": 4,
    }


def test_resources_that_only_pods_name_need_no_amount_for_each_node() -> None:
    nodes = [node(f"n{number}", {"has": {"cpu": 2, "pods": 9, "gpu.com/gpu": 4}}) for number in range(3)]
    odd = [pod(f"p{number}", {"cpu": 1, f"odd.com/{number}": 1, "nodeName": "n1"}) for number in range(50)]
    fleet = Snapshot(Observed(nodes=tuple(nodes), pods=tuple(odd)))
    assert fleet.stock.free.shape[1] == len(["cpu", "memory", "ephemeral-storage", "pods", "gpu.com/gpu"])
    row = fleet.rows.row_of["n1"]
    assert [fleet.stock.free_at(row, fleet.classes.columns[f"odd.com/{number}"]) for number in range(50)] == [-1] * 50
