"""Which nodes can go together, on fleets of up to 5 nodes and 8 pods, judged by trying every way and not by the fleet.

Nothing goes that could not: there is a way to put all pods of all nodes that go on nodes that stay. Nothing is missed:
each node in its turn goes, if its pods, the hardest first, find places in whatever order the other nodes are asked.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet as ClusterFleet
from reconciler.model.plan.evaluation import DrainReport
from reconciler.plan.likeness import Likenesses
from tests.unit.plan.drain.stage import World, homes

GPUS, CPUS = 8, 96
NODES = "abcde"
MOST_PODS = 8
# What pods of each application ask for beside GPUs: cpus, and in which zone they may be.
APPS: dict[str, dict[str, Any]] = {
    "web": {"cpu": 1},
    "fat": {"cpu": 40},
    "zoned": {"cpu": 1, "selects": {"zone": "x"}},
    "kept": {"cpu": 1, "safe": "false"},
    "flow": {"cpu": 1, "owner": "argoproj.io/v1alpha1/Workflow"},
    "disk": {"cpu": 1, "volumes": ["memory", "emptyDir"]},
    "shm": {"cpu": 1, "volumes": ["memory"]},
    "loses": {"cpu": 1, "volumes": ["emptyDir"], "may_lose": "scratch"},
    "few": {"cpu": 1, "budget": 2},
}
STAY = ("kept", "flow", "disk")


class Piece(msgspec.Struct, frozen=True):
    """A pod."""

    uid: str
    app: str
    gpus: int

    @property
    def cpus(self) -> int:
        return int(APPS[self.app]["cpu"])

    @property
    def hardness(self) -> tuple[int, int]:
        return self.gpus, self.cpus


class Box(msgspec.Struct, frozen=True):
    """A node."""

    name: str
    pods: tuple[Piece, ...]
    traits: dict[str, Any]

    @property
    def used(self) -> int:
        return sum(each.gpus for each in self.pods)

    @property
    def is_ready(self) -> bool:
        return not self.traits.get("unready")

    @property
    def turn(self) -> tuple[bool, int, bool, int, str]:
        """Candidates first, the oldest of them first; then what is not ready, and what is used least."""
        age = self.traits.get("candidate")
        return age is None, -(age or 0), self.is_ready and age is None, self.used if age is None else 0, self.name

    def turn_among(self, alike: dict[str, Any]) -> tuple[Any, ...]:
        """The same, and of several that are used as much, what is alike together."""
        *turn, name = self.turn
        return *turn, alike[name] if turn[0] else (), name


Fleet = dict[str, Box]
TRAITS = some.fixed_dictionaries(
    {"labels": some.sampled_from([{"zone": "x"}, {"zone": "y"}])},
    optional={
        "candidate": some.integers(0, 3).map(lambda minutes: 60 * minutes),
        "opted_out": some.just(True),
        "cpu": some.just(50),
    },
)
PODS = some.lists(some.tuples(some.sampled_from([*APPS, *["web"] * 6]), some.integers(1, 5)), max_size=3)


@some.composite
def fleets(draw: some.DrawFn) -> Fleet:
    found: Fleet = {}
    counts = dict.fromkeys(APPS, 0)
    unready = draw(some.sampled_from(["", "", "a", "b"]))
    for name in NODES[: draw(some.integers(2, 5))]:
        pods: list[Piece] = []
        for app, gpus in draw(PODS):
            total = sum(counts.values())
            cpus = sum(each.cpus for each in pods) + int(APPS[app]["cpu"])
            if sum(each.gpus for each in pods) + gpus <= GPUS and cpus <= CPUS and total < MOST_PODS:
                pods.append(Piece(f"uid-{app}-{counts[app]}", app, gpus))
                counts[app] += 1
        traits: dict[str, Any] = draw(TRAITS) | ({"unready": True} if name == unready else {})
        if sum(each.cpus for each in pods) > traits.get("cpu", CPUS):
            traits.pop("cpu")
        found[name] = Box(name, tuple(pods), traits)
    return found


def world(fleet: Fleet) -> World:
    nodes = {
        name: {**each.traits, "pods": [f"{pod.app} {pod.gpus}" for pod in each.pods]} for name, each in fleet.items()
    }
    return World({"nodes": nodes, "apps": APPS, "policy": {"utilizationThresholdPercent": 100}})


class Room:
    """Owner of what is left on nodes."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._left = {
            each.name: [GPUS - each.used, each.traits.get("cpu", CPUS) - sum(pod.cpus for pod in each.pods)]
            for each in boxes
        }
        self._zone = {each.name: each.traits["labels"]["zone"] for each in boxes}

    def put(self, pod: Piece, name: str) -> bool:
        """Whether there was room."""
        wanted = APPS[pod.app].get("selects", {}).get("zone", self._zone[name])
        left = self._left[name]
        if wanted != self._zone[name] or left[0] < pod.gpus or left[1] < pod.cpus:
            return False
        self._left[name] = [left[0] - pod.gpus, left[1] - pod.cpus]
        return True


def is_a_way(pods: Sequence[Piece], boxes: Sequence[Box]) -> bool:
    """By trying every one."""
    for way in product([each.name for each in boxes], repeat=len(pods)):
        room = Room(boxes)
        if all(room.put(pod, name) for pod, name in zip(pods, way, strict=True)):
            return True
    return not pods


def goes_in(pods: Sequence[Piece], taken: dict[Piece, str], boxes: Sequence[Box], among: Sequence[str]) -> bool:
    """Whether each of them, the hardest first, finds a place on the first node in that order that has room."""
    room = Room(boxes)
    assert all(room.put(pod, name) for pod, name in taken.items())
    hardest_first = sorted(pods, key=lambda each: each.hardness, reverse=True)
    return all(any(room.put(pod, name) for name in among) for pod in hardest_first)


def keeps(pods: Sequence[Piece], spent: int) -> bool:
    """Whether one of them is not to be moved, or its budget is used up by those that go before."""
    is_spent = spent >= APPS["few"]["budget"]
    return any(each.app in STAY or (each.app == "few" and is_spent) for each in pods)


def may_take(fleet: Fleet, gone: Sequence[str], waiting: Sequence[str], own: str) -> Iterator[str]:
    """Nodes that stay; those that are candidates already are tried first themselves."""
    for name, each in fleet.items():
        if name not in {own, *gone, *waiting} and each.pods and each.is_ready:
            yield name


@settings(max_examples=300, deadline=None)
@given(fleets())
def test_all_that_go_together_could_be_put_on_nodes_that_stay(fleet: Fleet) -> None:
    made = world(fleet).planned()
    gone = [each.node for each in made.report(DrainReport).weighed if each.is_candidate]
    moved = [pod for name in gone for pod in fleet[name].pods]
    assert is_a_way(moved, [fleet[name] for name in may_take(fleet, gone, (), "")])
    assert not any(each.app in STAY for each in moved)
    for name in gone:
        assert not fleet[name].traits.get("opted_out")


@settings(max_examples=300, deadline=None)
@given(fleets())
def test_no_node_is_missed_that_could_go_in_its_turn(fleet: Fleet) -> None:
    seen = world(fleet)
    made = seen.planned()
    homes_of = homes(seen, made)
    empty = {each.name for each in fleet.values() if not each.pods}
    found = {each.node for each in made.report(DrainReport).weighed if each.is_candidate}
    assert found & empty == {name for name in empty if not fleet[name].traits.get("opted_out")}
    candidates = found - empty
    order = [each for each in fleet.values() if each.pods and not each.traits.get("opted_out")]
    what_if = ClusterFleet(seen.inputs.observed).snapshot
    alike = {name: what_if.part(Likenesses).of(row) for name, row in what_if.rows.row_of.items()}
    order = sorted(order, key=lambda each: each.turn_among(alike))
    gone: list[str] = []
    taken: dict[Piece, str] = {}
    for at, box in enumerate(order):
        spent = sum(pod.app == "few" for name in gone for pod in fleet[name].pods)
        is_free = box.name not in taken.values() and not keeps(box.pods, spent)
        if box.name in candidates:
            assert is_free, box
            gone.append(box.name)
            taken |= {pod: homes_of[pod.uid] for pod in box.pods}
        elif is_free:
            waiting = [each.name for each in order[at + 1 :] if "candidate" in each.traits]
            among = [*may_take(fleet, gone, waiting, box.name)]
            boxes = [fleet[name] for name in fleet if name not in gone]
            tried = [goes_in(box.pods, taken, boxes, way) for way in permutations(among)]
            assert not among or not all(tried), box
    assert candidates == set(gone)
