"""The desk is told of every observed change, in order: of lists, of events, and of what a new list no longer has."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controller.desk_feed import DeskFeed, DeskLoop
from reconciler.kube.decode import WatchEvent
from reconciler.kube.watch.changes import Absent, Change, Listed, ObjectEvent, WatchOpened
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.protocol.desk import Desk
from tests.unit.protocol.desk_stage import TEAM, Cluster, board_of, claim, lease, node, pod, pool, report

NOW = Instant(0)
# Kinds that the desk needs, by a name; the Leases of the leader are of the same kind as those of GPUs.
KINDS: dict[str, ResourceKind] = {
    "OwnLease" if each.own_namespace else each.kind: each
    for each in RESOURCE_KINDS
    if (each.field, each.kind)
    in {
        ("nodes", "Node"),
        ("pods", "Pod"),
        ("leases", "Lease"),
        ("policies", "GpuClaim"),
        ("policies", "GpuNodeStatus"),
    }
}
OTHERS = [each for each in RESOURCE_KINDS if each not in KINDS.values()]


def listed(kind: str, *items: Any) -> Listed:
    return Listed(KINDS[kind], items, "1", NOW)


def event(kind: str, found: Any, what: str = "MODIFIED") -> ObjectEvent:
    return ObjectEvent(KINDS[kind], WatchEvent(what, found), NOW)


def everything() -> list[Listed]:
    return [
        listed("Node", node("n0")),
        listed("GpuNodeStatus", report("n0", board_of("n0"))),
        listed("GpuClaim", claim("c0", count=2)),
        listed("Pod", pod("p0", "c0")),
        listed("Lease", lease("n0", 0, "uid-other")),
        listed("OwnLease"),
    ]


def fed(changes: Sequence[Change]) -> Desk:
    desk = Desk()
    desk.set_pools([pool("a100")])
    DeskFeed(desk).take(changes)
    return desk


def free(desk: Desk) -> int:
    return desk.free_gpus().get("a100", 0)


@pytest.mark.parametrize("missing", list(KINDS))
def test_the_desk_is_ready_when_every_kind_was_listed_in_any_order(missing: str) -> None:
    changes = everything()
    random.Random(missing).shuffle(changes)
    rest = [each for each in changes if each.resource_kind != KINDS[missing]]
    assert fed(rest).why_unready
    assert fed([*rest, WatchOpened(KINDS[missing])]).why_unready
    assert not fed(changes).why_unready
    assert not fed([*rest, Absent(KINDS[missing], NOW)]).why_unready
    assert free(fed(changes)) == 3


@pytest.mark.parametrize("how", ["deleted", "a list without it", "the kind is gone"])
def test_what_is_gone_is_dropped(how: str) -> None:
    desk = Desk()
    desk.set_pools([pool("a100")])
    feed = DeskFeed(desk)
    feed.take(everything())
    gone = lease("n0", 0, "uid-other")
    ways: dict[str, Change] = {
        "deleted": event("Lease", gone, "DELETED"),
        "a list without it": listed("Lease"),
        "the kind is gone": Absent(KINDS["Lease"], NOW),
    }
    feed.take([ways[how]])
    assert free(desk) == 4
    feed.take([event("Lease", gone, "ADDED")])
    assert free(desk) == 3


def test_a_deletion_of_an_object_that_was_never_seen_changes_nothing() -> None:
    desk = fed([*everything(), event("Lease", lease("n0", 3, "uid-x"), "DELETED")])
    assert free(desk) == 3


def test_another_pod_of_the_same_name_ends_what_the_first_one_reserved() -> None:
    desk = Desk()
    desk.set_pools([pool("a100")])
    feed = DeskFeed(desk)
    feed.take(everything())
    desk.reserve(pod("p0", "c0"), "n0")
    assert len(desk.reservations) == 1
    feed.take([event("Pod", pod("p0", "c0"))])
    assert len(desk.reservations) == 1
    first = pod("p0", "c0")
    second = msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, uid="uid-second"))
    feed.take([event("Pod", second)])
    assert desk.reservations == ()


def test_kinds_that_the_desk_does_not_need_and_objects_that_are_set_aside_are_ignored() -> None:
    strange: list[Change] = [Listed(each, ("not an object",), "1", NOW) for each in OTHERS if each.field != "policies"]
    strange += [WatchOpened(each) for each in OTHERS]
    desk = fed([*everything(), *strange, event("Node", None)])
    assert (desk.why_unready, free(desk)) == ("", 3)
    assert free(fed([*everything(), listed("Node", "set aside")])) == 0


# --- Any history.


class History:
    """Objects of an API server, seen by lists and events."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.stored: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}

    def change(self) -> Change:
        chance = self.chance
        kind = chance.choice([each for each in KINDS if each != "OwnLease"])
        objects = self.stored[kind]
        if chance.random() < 0.2:  # a new list; some changes were missed
            for name in [each for each in objects if chance.random() < 0.3]:
                del objects[name]
            for _ in range(chance.randrange(3)):
                self._put(kind)
            return listed(kind, *objects.values())
        if objects and chance.random() < 0.3:
            return event(kind, objects.pop(chance.choice(list(objects))), "DELETED")
        return event(kind, self._put(kind))

    def _put(self, kind: str) -> Any:
        chance = self.chance
        place, pod_name = f"n{chance.randrange(2)}", f"p{chance.randrange(3)}"
        makers: dict[str, Any] = {
            "Node": lambda: node(place, chance.choice(["a100", "l4"])),
            "GpuNodeStatus": lambda: report(place, board_of(place, chance.choice([2, 4]))),
            "GpuClaim": lambda: claim(f"c{chance.randrange(2)}", count=chance.choice([1, 2])),
            "Pod": lambda: pod(pod_name, f"c{chance.randrange(2)}", chance.choice(["", place])),
            "Lease": lambda: lease(place, chance.randrange(4), f"uid-{pod_name}"),
        }
        found = makers[kind]()
        self.stored[kind][found.metadata.name] = found
        return found


@settings(max_examples=100)
@given(st.integers(0, 2**32))
def test_after_any_history_the_desk_is_as_one_that_was_told_of_what_is_left(seed: int) -> None:
    history = History(random.Random(seed))
    pools = (pool("a100"), pool("l4", allocation="plugin"))
    desk = Desk()
    desk.set_pools(pools)
    feed = DeskFeed(desk)
    for _ in range(40):
        feed.take([history.change() for _ in range(history.chance.randrange(4))])
    left = Cluster(*pools)
    left.put(*(each for kind in history.stored.values() for each in kind.values()))
    for each in (desk, left.desk):
        each.look_at_mix()
    assert desk.free_gpus() == left.desk.free_gpus()
    for name in ("c0", "c1"):
        found, anew = (each.answers((TEAM, name), ["n0", "n1"]) for each in (desk, left.desk))
        assert {node: (each.rank, each.obstacle) for node, each in found.items()} == {
            node: (each.rank, each.obstacle) for node, each in anew.items()
        }


# --- The event loop.


def test_changes_of_other_threads_reach_the_desk_on_the_loop_in_their_order() -> None:
    desk = Desk()
    place = DeskLoop(desk)
    place.pass_on(everything())  # before the loop there is nothing to be told
    taken: list[str] = []

    async def story() -> None:
        place.start(lambda: taken.append("taken"))
        await asyncio.to_thread(place.wake)
        await asyncio.to_thread(place.set_policies, Desired("r", "base", pools=(pool("a100"),)))
        for each in everything():
            await asyncio.to_thread(place.pass_on, [each])
        await asyncio.to_thread(place.pass_on, [event("Lease", lease("n0", 0, "uid-other"), "DELETED")])
        await asyncio.sleep(0)

    asyncio.run(story())
    assert taken == ["taken"]
    assert (desk.why_unready, free(desk)) == ("", 4)
