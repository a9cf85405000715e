"""The ledgers as the planner gets them: all entries, in a stable order."""

from random import Random

import msgspec

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.fleet.pressure.ledger_values import node_ledger, pressure_state
from reconciler.model.plan.pressure import Bounds, ElasticPod, LedgerPod, PlainPod, PressureState

NO_LOADS: dict[str, int] = {}
LOADS = {"u0-1": 500, "u9": 1}


def drawn(seed: int) -> dict[str, NodeLedger]:
    random, ledgers = Random(seed), dict[str, NodeLedger]()
    for number in range(random.randint(0, 4)):
        ledger = NodeLedger({"cpu": Bounds(100, 10, 8_000, slot=7), "memory": Bounds(50)})
        for pod in random.sample(pods(random, number), 5):
            ledger.put(pod)
        ledgers[f"n{number}"] = ledger
    return ledgers


def pods(random: Random, number: int) -> list[LedgerPod]:
    found: list[LedgerPod] = [PlainPod(f"p{number}", "team/p", {"cpu": 3})]
    for each in range(4):
        has, lacks = {"cpu": random.randint(1, 30), "memory": 5}, {"cpu": random.randint(0, 3), "memory": 0}
        flags = {"is_silent": random.random() < 0.3, "is_migrating": random.random() < 0.3}
        uid = f"u{number}-{each}"
        found.append(ElasticPod(uid, "team/e", has, {"cpu": 60, "memory": 9}, has, has, lacks, **flags))
    return found


def test_a_state_can_be_written_read_and_calculated_with() -> None:
    for seed in range(40):
        ledgers = drawn(seed)
        state = pressure_state(ledgers.items(), LOADS.get)
        text = msgspec.json.encode(state)
        read = msgspec.json.decode(text, type=PressureState)
        assert read == state
        assert [each.node for each in read.nodes] == sorted(ledgers)
        assert read.loads == ({"u0-1": 500} if "n0" in ledgers else {})
        for each in read.nodes:
            again = node_ledger(each)
            before = ledgers[each.node]
            assert [again.pressure(name) for name in before.bounds] == [before.pressure(name) for name in before.bounds]


def test_the_order_of_changes_is_not_seen() -> None:
    for seed in range(20):
        ledgers = drawn(seed)
        again = {
            name: node_ledger(pressure_state([(name, each)], NO_LOADS.get).nodes[0]) for name, each in ledgers.items()
        }
        backwards = list(reversed(again.items()))
        first = msgspec.json.encode(pressure_state(ledgers.items(), NO_LOADS.get))
        assert msgspec.json.encode(pressure_state(backwards, NO_LOADS.get)) == first
