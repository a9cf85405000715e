"""The choice of pods that leave a node, compared with all subsets of its pods."""

from itertools import combinations
from random import Random

import pytest

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.pressure import Bounds, ElasticPod, PlainPod
from reconciler.plan.pressure.choice import choose, in_order
from reconciler.plan.pressure.reasons import PressedNodeLeaves

NAMES = ("cpu", "memory")
WHY = Reason(PressedNodeLeaves("n"))
Sums = dict[str, int]


class Drawn:
    """A ledger, loads and limits that a seed gives."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.bounds = {
            name: Bounds(100, random.choice([0, 10]), random.choice([5_000, 8_000, 10_000])) for name in NAMES
        }
        self.pods = [self._pod(random, number) for number in range(random.randint(0, 6))]
        self.loads = {each.uid: random.choice([0, 500, 1_000, 2_000]) for each in self.pods if random.random() < 0.8}
        self.refused = {each.uid for each in self.pods if random.random() < 0.2}
        self.places = random.choice([0, 1, 2, 9, 9, 9])  # pods that other nodes take
        self.ledger = NodeLedger(self.bounds)
        self.ledger.put(PlainPod("plain", "team/plain", {"cpu": random.choice([0, 10, 50])}))
        for each in self.pods:
            self.ledger.put(each)
        self.taken: list[str] = []

    def _pod(self, random: Random, number: int) -> ElasticPod:
        has = {name: random.choice([0, 1, 5, 20, 40]) for name in NAMES}
        lacks = {name: random.choice([0, 0, 0, 3, 30]) for name in NAMES}
        most = {name: amount + 10 for name, amount in has.items()}
        flags = {"is_silent": random.random() < 0.2, "is_migrating": random.random() < 0.1}
        return ElasticPod(f"u{number}", f"team/{number}", has, most, has, has, lacks, **flags)

    @property
    def candidates(self) -> list[ElasticPod]:
        return in_order([each for each in self.pods if not each.is_migrating], self.loads)

    def reserve(self, pod: ElasticPod) -> str | Reason:
        if pod.uid in self.refused or len(self.taken) >= self.places:
            return WHY
        self.taken.append(pod.uid)
        return "elsewhere"

    def give_back(self, pod: ElasticPod) -> None:
        self.taken.remove(pod.uid)

    def left(self, leaving: set[str]) -> Sums:
        """Pressure that is left if these pods migrate, from the pods alone."""
        found = {}
        for name, bounds in self.bounds.items():
            uses = sum(each.has[name] for each in self.pods)
            uses += sum(each.requests.get(name, 0) for each in self.ledger.pods if isinstance(each, PlainPod))
            wanted = sum(each.lacks[name] for each in self.pods)
            given = sum(
                each.has[name] + each.lacks[name] for each in self.pods if each.uid in leaving or each.is_migrating
            )
            watermark = (bounds.total - bounds.system) * bounds.watermark_basis_points // 10_000
            found[name] = max(0, max(0, uses - watermark) + wanted - given)
        return found


@pytest.mark.parametrize("part", range(8))
def test_a_choice_is_minimal_and_relieves_what_can_be_relieved(part: int) -> None:
    for seed in range(part * 250, part * 250 + 250):
        drawn = Drawn(seed)
        choice = choose(drawn.ledger, drawn.candidates, drawn.reserve, drawn.give_back)
        chosen = set(choice.chosen)
        left = drawn.left(chosen)
        assert left == {name: drawn.ledger.pressure(name).left for name in NAMES}, seed
        assert sorted(drawn.taken) == sorted(chosen), seed
        assert not chosen & drawn.refused
        for uid in chosen:
            assert drawn.left(chosen - {uid}) != left, (seed, uid)
        free = [each.uid for each in drawn.candidates if each.uid not in drawn.refused]
        subsets = (set(each) for size in range(len(free) + 1) for each in combinations(free, min(size, len(free))))
        can = any(not any(drawn.left(each).values()) for each in subsets)
        if drawn.places == 9:
            assert (not any(left.values())) == can, seed
            assert all(choice.refused[uid] is WHY for uid in choice.refused)


@pytest.mark.parametrize("part", range(4))
def test_pods_with_the_lowest_load_leave(part: int) -> None:
    """An oracle of its own: the shortest beginning of the order that relieves the node, then without the needless."""
    for seed in range(part * 250, part * 250 + 250):
        drawn = Drawn(seed)
        drawn.refused, drawn.places = set(), 9
        order = sorted(
            (each for each in drawn.pods if not each.is_migrating),
            key=lambda each: (drawn.loads.get(each.uid, 10**9), each.uid),
        )
        expected = list[str]()
        for each in order:
            left = drawn.left(set(expected))
            if any(left[name] and each.has[name] + each.lacks[name] for name in NAMES):
                expected.append(each.uid)
        for uid in reversed(list(expected)):
            if drawn.left(set(expected) - {uid}) == drawn.left(set(expected)):
                expected.remove(uid)
        choice = choose(drawn.ledger, drawn.candidates, drawn.reserve, drawn.give_back)
        assert sorted(choice.chosen) == sorted(expected), seed


def test_a_pod_is_tried_again_when_another_gives_its_place_back() -> None:
    """The first pod takes the only place, and becomes useless; then the third fits."""
    ledger = NodeLedger({"cpu": Bounds(100, 0, 5_000), "memory": Bounds(100, 0, 5_000)})
    entries = {"a": (5, 0), "b": (60, 0), "c": (0, 60)}
    pods = []
    for uid, (cpu, memory) in entries.items():
        has = {"cpu": cpu, "memory": memory}
        pods.append(ElasticPod(uid, f"team/{uid}", has, has, has, has))
        ledger.put(pods[-1])
    room = ["only"]

    def reserve(pod: ElasticPod) -> str | Reason:
        if pod.uid == "b":
            return "large"
        return room.pop() if room else WHY

    choice = choose(ledger, pods, reserve, lambda _: room.append("only"))
    assert choice.chosen == {"b": "large", "c": "only"}
    assert choice.refused == {}
