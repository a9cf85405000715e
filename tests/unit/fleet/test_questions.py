"""Where pods go, and which nodes can go together."""

from collections import Counter

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.first_fit import Search
from reconciler.fleet.obstacles import AffinityUnmatched, NodeAbsent
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import Placement, ScaleDownSimulation, empty, fits, place
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.unit.fleet.stage import node, pod
from tests.unit.fleet.worlds import World, alike_words, pod_words, worlds

EMPTY = {"cpu": 4, "pods": 10}


def fleet_of(count: int, pods: tuple[Pod, ...] = ()) -> Snapshot:
    """n0, n1, ... of 4 cpu."""
    return Snapshot(Observed(nodes=tuple(node(f"n{number}", {"has": EMPTY}) for number in range(count)), pods=pods))


def asking(count: int, cpu: object = 1, **words: object) -> list[Pod]:
    return [pod(f"a{number}", {"cpu": cpu, **words}) for number in range(count)]


def owned_by_daemons(made: Pod) -> Pod:
    owner = (OwnerReference("DaemonSet", "d", "uid-d", controller=True),)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=owner))


def totals(found: Placement) -> dict[str, dict[str, int]]:
    return {uid: ruled_out.totals for uid, ruled_out in found.unplaced.items()}


def names(destinations: dict[str, str]) -> list[str]:
    return list(destinations.values())


def test_pods_fill_a_node_before_they_go_on() -> None:
    found = place(fleet_of(3), asking(6), Search())
    assert names(found.destinations) == ["n0"] * 4 + ["n1"] * 2
    assert found.pointer == "n1"


def test_the_next_search_begins_where_the_last_one_ended() -> None:
    fleet = fleet_of(3)
    first = place(fleet, asking(1), Search(pointer="n1"))
    assert names(place(fleet, asking(4), Search(pointer=first.pointer)).destinations) == ["n1"] * 3 + ["n2"]


def test_the_search_goes_round() -> None:
    assert names(place(fleet_of(3), asking(9), Search(pointer="n2")).destinations) == ["n2"] * 4 + ["n0"] * 4 + ["n1"]


def test_backwards_the_last_node_comes_first() -> None:
    assert names(place(fleet_of(3), asking(5), Search(backwards=True)).destinations) == ["n2"] * 4 + ["n1"]


def test_a_pointer_at_a_node_that_is_gone_is_at_the_next_one() -> None:
    assert names(place(fleet_of(3), asking(1), Search(pointer="n0x")).destinations) == ["n1"]
    assert names(place(fleet_of(3), asking(1), Search(pointer="n0x", backwards=True)).destinations) == ["n0"]
    assert names(place(fleet_of(3), asking(1), Search(pointer="n9")).destinations) == ["n0"]


def test_only_nodes_that_are_allowed_take_pods() -> None:
    fleet = fleet_of(3)
    allowed = np.zeros(fleet.rows.capacity, bool)
    allowed[fleet.rows.row_of["n1"]] = True
    found = place(fleet, asking(5), Search(allowed=allowed))
    assert names(found.destinations) == ["n1"] * 4
    assert totals(found) == {"uid-a4": {"resources": 1}}


def test_a_hint_comes_first_if_it_still_holds() -> None:
    hints = {"uid-a0": "n2", "uid-a1": "n1", "uid-a2": "gone"}
    found = place(fleet_of(3, (pod("p", {"cpu": 4, "nodeName": "n1"}),)), asking(3), Search(hints=hints))
    assert found.destinations == {"uid-a0": "n2", "uid-a1": "n0", "uid-a2": "n0"}


def test_who_finds_no_place_is_told_how_many_nodes_each_predicate_rules_out() -> None:
    fleet = Snapshot(Observed(nodes=(node("n0", {"cordoned": True}), node("n1", {}), node("n2", {}))))
    found = place(fleet, asking(1, cpu=11, nodeSelector={"zone": "a"}), Search())
    assert totals(found) == {"uid-a0": {"unschedulable": 1, "selection": 3, "resources": 3}}


def test_a_pod_that_nobody_can_judge_is_placed_nowhere() -> None:
    found = place(fleet_of(2), asking(1, hostNetwork=True, hostUsers=False), Search())
    assert totals(found) == {"uid-a0": {"not modelled": 2}}


def test_pods_with_a_port_go_one_to_a_node() -> None:
    found = place(fleet_of(2), asking(3, ports=[{"hostPort": 80}]), Search())
    assert names(found.destinations) == ["n0", "n1"]
    assert totals(found) == {"uid-a2": {"ports": 2}}


def test_what_was_not_looked_at_is_not_said_to_have_no_place() -> None:
    found = place(fleet_of(3), asking(20), Search(budget=5))
    assert found.not_evaluated
    assert not found.unplaced
    assert found.steps <= 5


def test_the_pod_of_a_daemon_set_fits_only_where_it_is_sent() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
    made = [pod(f"d{number}", {"cpu": 1, "nodeName": "n0", "affinity": [term]}) for number in range(2)]
    owned = [owned_by_daemons(each) for each in made]
    fleet = fleet_of(2, tuple(owned))
    assert fits(fleet, owned[0], "n0") == ()
    assert fits(fleet, owned[0], "n1") == (AffinityUnmatched(),)
    assert list(fleet.booked_on(0).values()) == [2]


def test_there_is_no_answer_for_a_node_that_is_not_there() -> None:
    fleet = fleet_of(1)
    assert fits(fleet, asking(1)[0], "n7") == (NodeAbsent("n7"),)
    with fleet.fork():
        fleet.take_away(0)
        assert fits(fleet, asking(1)[0], "n0") == (NodeAbsent("n0"),)


@settings(max_examples=60, deadline=None)
@given(worlds(), some.lists(some.one_of(alike_words, pod_words), max_size=8), some.booleans(), some.data())
def test_pods_placed_at_once_go_where_they_would_one_by_one(
    world: World, words: list[dict[str, object]], backwards: bool, data: some.DataObject
) -> None:
    pods = [pod(f"a{number}", each) for number, each in enumerate(words)]
    fleet = Snapshot(world.observed())
    start = data.draw(some.sampled_from(["", *world.nodes]))
    with fleet.fork():
        at_once = place(fleet, pods, Search(pointer=start, backwards=backwards))
        after = fleet.fingerprint()
    one_by_one: dict[str, str] = {}
    pointer = start
    with fleet.fork():
        for each in pods:
            found = place(fleet, [each], Search(pointer=pointer, backwards=backwards))
            one_by_one |= found.destinations
            pointer = found.pointer
        assert fleet.fingerprint() == after
    assert at_once.destinations == one_by_one
    assert at_once.destinations.keys() | at_once.unplaced.keys() == {each.metadata.uid for each in pods}


@settings(max_examples=60, deadline=None)
@given(worlds(), some.lists(some.one_of(alike_words, pod_words), max_size=8), some.integers(0, 60))
def test_a_budget_only_leaves_pods_out(world: World, words: list[dict[str, object]], budget: int) -> None:
    pods = [pod(f"a{number}", each) for number, each in enumerate(words)]
    fleet = Snapshot(world.observed())
    with fleet.fork():
        everything = place(fleet, pods, Search())
    with fleet.fork():
        some_of_it = place(fleet, pods, Search(budget=budget))
    assert some_of_it.steps <= budget
    known = len(some_of_it.destinations) + len(some_of_it.unplaced)
    assert known + len(some_of_it.not_evaluated) == len(pods)
    if not some_of_it.not_evaluated:
        assert some_of_it.destinations == everything.destinations


def test_nodes_go_together_as_long_as_all_their_pods_find_a_place() -> None:
    pods = tuple(pod(f"p{number}", {"cpu": 1, "nodeName": f"n{number}"}) for number in range(5))
    fleet = fleet_of(5, pods)
    with fleet.fork():
        done = empty(fleet, fleet.rows.order.tolist(), Search(backwards=True))
        assert list(done.together) == [0, 1, 2]
        assert [(each.to, each.count) for moves in done.together.values() for each in moves] == [(4, 1)] * 3
        assert list(done.stuck) == [3]
        assert done.taking == (4,)
        assert not fleet.rows.alive[:3].any()
    assert fleet.rows.alive[:5].all()


def test_the_pods_of_daemon_sets_go_with_their_node() -> None:
    made = pod("d", {"cpu": 1, "nodeName": "n0"})
    fleet = fleet_of(1, (owned_by_daemons(made),))
    with fleet.fork():
        assert empty(fleet, [0], Search()).together == {0: ()}


def test_what_could_not_be_looked_at_is_said() -> None:
    fleet = fleet_of(5, tuple(pod(f"p{number}", {"cpu": 1, "nodeName": f"n{number}"}) for number in range(5)))
    before = fleet.fingerprint()
    with fleet.fork():
        done = empty(fleet, fleet.rows.order.tolist(), Search(backwards=True, budget=0))
        assert fleet.fingerprint() == before
    assert (done.together, done.stuck, done.not_evaluated) == ({}, {}, (0, 1, 2, 3, 4))


def test_pods_are_moved_where_they_were_to_go_last_time() -> None:
    fleet = fleet_of(4, (pod("p0", {"cpu": 1, "nodeName": "n0"}), pod("p1", {"cpu": 1, "nodeName": "n0"})))
    (key,) = {each.key for each in fleet.booked_on(0)}
    with fleet.fork():
        moves = ScaleDownSimulation(fleet, Search(backwards=True)).one(0, {key: {"n2": 1}})
        assert not isinstance(moves, PodClass)
        assert {each.to: each.count for each in moves} == {2: 1, 3: 1}


def test_a_hint_to_a_node_that_is_gone_or_full_is_passed_over() -> None:
    there = (pod("p0", {"cpu": 1, "nodeName": "n0"}), pod("p1", {"cpu": 4, "nodeName": "n1"}))
    fleet = fleet_of(3, there)
    (key,) = {each.key for each in fleet.booked_on(0)}
    with fleet.fork():
        moves = ScaleDownSimulation(fleet, Search(backwards=True)).one(0, {key: {"n0": 1, "n1": 1, "n9": 1}})
        assert not isinstance(moves, PodClass)
        assert [(each.to, each.count) for each in moves] == [(2, 1)]


@settings(max_examples=80, deadline=None)
@given(worlds(), some.booleans())
def test_what_is_moved_is_where_it_fits_and_nowhere_else(world: World, backwards: bool) -> None:
    fleet = Snapshot(world.observed())
    with fleet.fork():
        place(fleet, [pod("a", {"ports": [{"hostPort": 80}]})], Search())
    before = fleet.fingerprint()
    tight = {name for name, row in fleet.rows.row_of.items() if (fleet.stock.free[row] < 0).any()}
    counted = {row: Counter(fleet.booked_on(row)) for row in fleet.rows.row_of.values()}
    with fleet.fork():
        done = empty(fleet, fleet.rows.order.tolist(), Search(backwards=backwards))
        judging = fleet.part(FilterChain)
        for row, moves in done.together.items():
            moved: Counter[PodClass] = Counter()
            for each in moves:
                moved[each.pod_class] += each.count
                assert fleet.rows.alive[each.to]
                assert judging.may_be_on(each.pod_class, each.to)
                counted[each.to][each.pod_class] += each.count
            # One that is being deleted needs no other place.
            moving = {each: count for each, count in counted[row].items() if not each.leaving}
            movable = {each: count for each, count in moving.items() if not each.goes_with_its_node}
            assert moved == sum((Counter({each.anew: count}) for each, count in movable.items()), Counter())
        for row in done.together:
            assert not fleet.booked_on(row)
        left = {name for name, row in fleet.rows.row_of.items() if fleet.rows.alive[row]}
        assert {name for name in left if (fleet.stock.free[fleet.rows.row_of[name]] < 0).any()} <= tight
        for row in set(counted) - set(done.together):
            assert Counter(fleet.booked_on(row)) == counted[row]
    assert fleet.fingerprint() == before
    assert set(done.together) | set(done.stuck) | set(done.taking) == set(counted)
