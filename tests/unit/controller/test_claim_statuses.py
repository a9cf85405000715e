"""Statuses of claims are written at a pace that leaves the rate limit to the actions of plans."""

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from reconciler.controller.claim_statuses import MOST_A_CYCLE, MS_A_POD, REWORDED_AFTER_MS, ClaimStatusPublisher
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Outcome, Result
from reconciler.model.plan.inputs import CycleResult
from reconciler.ports import Fence
from tests.unit.plan.gpu.claim_stage import ClaimWorld
from tests.unit.plan.scaling.stage import NOW


class Held:
    """A Fence that holds."""

    def holds(self) -> bool:
        return True


class Written:
    """A Cluster that records the subjects of writes."""

    def __init__(self, result: Result = "done") -> None:
        self.names: list[str] = []
        self._result: Result = result

    def observe(self) -> Observed:
        return Observed()

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        self.names += [each.subject.name for each in decisions]
        return iter([Outcome(each.subject, "status", self._result) for each in decisions])

    def taken(self) -> list[str]:
        names, self.names = self.names, []
        return names


class Hand:
    """A clock set by hand."""

    at = NOW

    def now(self) -> Instant:
        return self.at

    def wait(self, until: Instant | None) -> None:
        raise AssertionError(until)


class Site:
    def __init__(self, result: Result = "done", leads: bool = True) -> None:
        self.clock, self.cluster = Hand(), Written(result)
        fence = Held() if leads else None
        self.wakes_at: Instant | None = None
        self.publisher = ClaimStatusPublisher(self.cluster, self.clock, lambda: fence)

    def publish(self, world: ClaimWorld, after_ms: int = 0) -> list[str]:
        self.clock.at = Instant(NOW + after_ms)
        self.wakes_at = self.publisher.publish(CycleResult(self.clock.at, world.inputs, world.planned()))
        return self.cluster.taken()


def with_free(free: int) -> ClaimWorld:
    """One claim that waits, and a node with some GPUs free."""
    taken = {f"pod-{number}": {"claim": "two", "at": "a", "has": [number]} for number in range(8 - free)}
    return ClaimWorld(
        {
            "nodes": {"a": {"board": "8xA600"}},
            "claims": {"one": 8, "two": 1},
            "pods": {"train": {}, **taken},
        }
    )


def after(before: ClaimWorld, now: ClaimWorld) -> ClaimWorld:
    """The later world, where the statuses of the earlier one are published."""
    published = {each.name: each.rest["status"] for each in before.published().inputs.observed.policies if each.status}
    policies = tuple(
        msgspec.structs.replace(each, rest={**each.rest, "status": published[each.name]})
        if each.kind == "GpuClaim"
        else each
        for each in now.inputs.observed.policies
    )
    now.inputs = msgspec.structs.replace(
        now.inputs, observed=msgspec.structs.replace(now.inputs.observed, policies=policies)
    )
    return now


def test_a_limited_number_is_written_in_each_cycle_and_in_the_end_all() -> None:
    site, claims = Site(), {f"claim-{number:02}": 1 for number in range(2 * MOST_A_CYCLE + 5)}
    world = ClaimWorld({"nodes": {"a": {"board": "8xA600"}}, "claims": claims})
    written = [site.publish(world, 1_000 * second) for second in range(4)]
    assert [len(each) for each in written] == [MOST_A_CYCLE, MOST_A_CYCLE, 5, 0]
    assert sorted(name for each in written for name in each) == sorted(claims)


def test_a_status_that_is_only_worded_differently_waits_for_a_minute() -> None:
    site, before = Site(), with_free(4)
    assert sorted(site.publish(before)) == ["one", "two"]
    reworded = after(before, with_free(4))
    assert site.publish(reworded, 1_000) == []
    fewer = after(before, with_free(3))
    assert site.publish(fewer, 2_000) == ["two"]  # a further pod is a new fact; the number of free GPUs is not
    assert "one" not in site.publish(fewer, REWORDED_AFTER_MS - 1)
    assert "one" in site.publish(fewer, REWORDED_AFTER_MS)


def test_a_new_fact_is_written_at_once() -> None:
    site, before = Site(), with_free(4)
    site.publish(before)
    bound = ClaimWorld(
        {
            "nodes": {"a": {"board": "8xA600"}},
            "claims": {"one": 8, "two": 1},
            "pods": {"train": {"at": "a", "has": list(range(8))}},
        }
    )
    assert site.publish(after(before, bound), 1_000) == ["one", "two"]


@pytest.mark.parametrize("result", ["refused", "retry", "unknown", "stale"])
def test_a_write_that_failed_is_tried_again_and_not_at_once(result: Result) -> None:
    site, world = Site(result), with_free(4)
    assert site.publish(world) == ["one", "two"]
    assert site.publish(world, 100) == []
    assert site.publish(world, 120_000) == ["one", "two"]


def test_a_replica_that_does_not_lead_writes_nothing() -> None:
    assert Site(leads=False).publish(with_free(4)) == []


def test_the_status_of_a_claim_with_many_pods_is_written_less_often() -> None:
    def world(bound: int) -> ClaimWorld:
        nodes = {f"node-{number}": {"board": "8xA600"} for number in range(10)}
        pods = {
            f"pod-{number:02}": {
                "claim": "one",
                **({"at": f"node-{number // 8}", "has": [number % 8]} if number < bound else {}),
            }
            for number in range(60)
        }
        return ClaimWorld({"nodes": nodes, "claims": {"one": 1}, "pods": pods})

    site = Site()
    assert site.publish(world(10)) == ["one"]
    between = after(world(10), world(11))
    assert site.publish(between, 60 * MS_A_POD - 1) == []
    assert site.wakes_at == NOW + 60 * MS_A_POD
    assert site.publish(between, 60 * MS_A_POD) == ["one"]
    assert site.wakes_at is None
