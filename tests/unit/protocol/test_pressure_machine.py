"""The pressure desk in any sequence of asks, observations, restarts and changed policies (Hypothesis state machine).

Pods use what their agents permit them: an agent that is permitted less has its pod smaller at some time, one that is
permitted more has it larger at some time. The parts of all figures are added up anew after each step.
"""

import random
from fractions import Fraction
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model import names
from reconciler.model.plan.pressure import ElasticPod, PlainPod
from reconciler.protocol.asks import Refusal
from tests import builders
from tests.unit.protocol.pressure_stage import Agent, elastic, leading, node, policy

NODES, PODS = ("n0", "n1"), tuple(f"p{number}" for number in range(6))
UNITS = ("250m", "500m", "300m")
STEPS, RUNS = 100, 200  # 20,000 steps


class PressureMachine(RuleBasedStateMachine):
    """Owner of a desk, of the agents, and of what the pods have."""

    @initialize(seed=some.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.desk = leading(*(node(name) for name in NODES))
        self.words: dict[str, Any] = {"system": "1", "watermark": "80%", "unit": "250m"}
        self.is_healed = True  # `system` was not raised since
        self.agents: dict[str, Agent] = {}
        self.has: dict[str, int] = {}  # what each pod has, thousandths of cpu
        self.on: dict[str, str] = {}
        self.plain: dict[str, str] = {}
        self.term = 1

    # --- What happens

    @rule(name=some.sampled_from(PODS), on=some.sampled_from(NODES), cpu=some.integers(1, 24))
    def pod_comes(self, name: str, on: str, cpu: int) -> None:
        """The scheduler places pods only where they fit."""
        ledger = self.ledger(on)
        if name in self.on or not ledger.fits({"cpu": 250 * cpu, "memory": 4 * 2**30}, is_elastic=True):
            return
        self.on[name], self.has[name] = on, 250 * cpu
        self.agents[name] = Agent(self.desk, name, self.draw.choice([1, 2, 2]))
        self.observe(name)

    @rule(name=some.sampled_from(PODS))
    def pod_goes(self, name: str) -> None:
        if name in self.on:
            self.desk.drop_pod(self.pod(name))
            for known in (self.on, self.has, self.agents):
                del known[name]

    @rule(number=some.integers(0, 2), on=some.sampled_from(NODES), cpu=some.integers(1, 4_000))
    def plain_pod_comes_or_goes(self, number: int, on: str, cpu: int) -> None:
        name = f"plain-{number}"
        if self.plain.pop(name, ""):
            self.desk.drop_pod(builders.pod(name))
        elif self.ledger(on).fits({"cpu": cpu, "memory": 2**30}):
            self.plain[name] = on
            asks = {"cpu": f"{cpu}m", "memory": "1Gi"}
            self.desk.put_pod(builders.pod(name, asks=asks, node_name=on, scheduler_name=names.GPU_SCHEDULER))

    @rule(name=some.sampled_from(PODS), units=some.integers(1, 40), is_lost=some.booleans())
    def agent_asks(self, name: str, units: int, is_lost: bool) -> None:
        if name not in self.on:
            return
        agent, ledger = self.agents[name], self.ledger(self.on[name])
        unit = (agent.unit or {}).get("vCPUs", 250)
        asked = units * unit
        before = self.entry(name)
        known = before.has["cpu"] if before.is_silent else before.permitted["cpu"]
        answer = agent.ask(is_lost=is_lost, vCPUs=asked)
        if isinstance(answer, Refusal):
            assert answer.compute_unit or not 250 <= asked <= 8_000
            assert self.entry(name) == before
            return
        permit = answer.permit["vCPUs"]
        proved = before.is_silent and agent.version == 2
        assert permit <= asked
        assert proved or asked > known or permit == asked
        if asked > known and not proved:
            assert known <= permit
            if permit > known:
                assert ledger.reserved("cpu") <= ledger.bounds["cpu"].reservable
        if not is_lost:
            assert agent.permit["vCPUs"] == permit

    @rule(name=some.sampled_from(PODS), part=some.integers(0, 4))
    def pod_becomes_larger(self, name: str, part: int) -> None:
        """The pod is resized towards the permit; the controller observes that later."""
        if name in self.on and (permit := self.agents[name].permit.get("vCPUs", 0)) > self.has[name]:
            self.has[name] += (permit - self.has[name]) * part // 4

    @rule(name=some.sampled_from(PODS), part=some.integers(0, 4))
    def pod_becomes_smaller(self, name: str, part: int) -> None:
        """The kubelet takes away what the permit no longer allows, at once or in steps."""
        if name not in self.on or self.entry(name).is_silent:
            return
        if (permit := self.entry(name).permitted["cpu"]) < self.has[name]:
            self.has[name] -= (self.has[name] - permit) * part // 4

    @rule(name=some.sampled_from(PODS))
    def pod_is_observed(self, name: str) -> None:
        if name in self.on:
            self.observe(name)

    @rule()
    def leader_changes(self) -> None:
        """All pods are listed before a replica leads."""
        self.desk.end_term()
        for name in self.on:
            self.observe(name)
        self.term += 1
        self.desk.begin_term(self.term)

    @rule(system=some.sampled_from(["0", "1", "8", "20"]))
    def system_changes(self, system: str) -> None:
        self.is_healed = self.is_healed and int(system) <= int(self.words["system"])
        self.change(system=system)

    @rule(watermark=some.sampled_from(["0%", "50%", "80%", "100%"]))
    def watermark_changes(self, watermark: str) -> None:
        self.change(watermark=watermark)

    @rule(unit=some.sampled_from(UNITS))
    def unit_changes(self, unit: str) -> None:
        self.change(unit=unit)

    @rule(name=some.sampled_from(PODS), is_migrating=some.booleans())
    def migration_begins_or_ends(self, name: str, is_migrating: bool) -> None:
        if name in self.on:
            self.ledger(self.on[name]).migrate(f"uid-{name}", is_migrating=is_migrating)

    # --- What holds

    @invariant()
    def sums_equal_parts(self) -> None:
        for _, ledger in self.desk.ledgers if hasattr(self, "desk") else ():
            entries = list(ledger.pods)
            for name, bounds in ledger.bounds.items():
                elastic_pods = [each for each in entries if isinstance(each, ElasticPod)]
                raw = sum(each.requests.get(name, 0) for each in entries if isinstance(each, PlainPod))
                rounded = -(-raw // bounds.slot) * bounds.slot
                reserved = sum(each.reserved(name) for each in elastic_pods) + rounded
                buffer = sum(each.buffer(name) for each in elastic_pods)
                lacks = sum(each.lacks.get(name, 0) for each in elastic_pods)
                leaving = [each for each in elastic_pods if each.is_migrating]
                accounted = sum(each.reserved(name) - each.buffer(name) + each.lacks.get(name, 0) for each in leaving)
                watermark = int(Fraction(bounds.watermark_basis_points, 10_000) * max(0, bounds.total - bounds.system))
                logical = max(0, reserved - buffer - watermark)
                assert ledger.pressure(name) == (reserved, buffer, logical, lacks, accounted)
                assert min(ledger.pressure(name)) >= 0
                assert ledger.pressure(name).left >= 0

    @invariant()
    def nothing_is_overcommitted(self) -> None:
        """What pods have never exceeds the node, and what is surely used is never more than there is."""
        for on, ledger in self.desk.ledgers if hasattr(self, "desk") else ():
            pressure = ledger.pressure("cpu")
            assert pressure.reserved - pressure.buffer <= ledger.bounds["cpu"].total
            if self.is_healed:
                assert pressure.reserved - pressure.buffer <= ledger.bounds["cpu"].reservable
            plain = sum(each.requests["cpu"] for each in ledger.pods if isinstance(each, PlainPod))
            assert sum(self.has[name] for name, node_name in self.on.items() if node_name == on) + plain <= 16_000

    # --- Words for the above

    def ledger(self, name: str) -> NodeLedger:
        found = self.desk.ledger(name)
        assert found is not None
        return found

    def entry(self, name: str) -> ElasticPod:
        found = self.ledger(self.on[name]).get(f"uid-{name}")
        assert isinstance(found, ElasticPod)
        return found

    def pod(self, name: str) -> Any:
        return elastic(name, self.on[name], cpu=f"{self.has[name]}m", memory="1Gi")

    def observe(self, name: str) -> None:
        self.desk.put_pod(self.pod(name))

    def change(self, **words: str) -> None:
        self.words |= words
        self.desk.set_policies((policy(**self.words),))


PressureMachine.TestCase.settings = settings(max_examples=RUNS, stateful_step_count=STEPS, deadline=None)
TestPressureMachine = PressureMachine.TestCase


def test_entries_can_be_written_and_read() -> None:
    pods = [ElasticPod("a", "team/a", {"cpu": 1}, {"cpu": 9}, {"cpu": 3}, {"cpu": 4}), PlainPod("p", "team/p", {})]
    text = msgspec.json.encode(pods)
    assert msgspec.json.decode(text, type=list[ElasticPod | PlainPod]) == pods
