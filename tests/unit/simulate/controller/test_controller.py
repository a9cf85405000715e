"""The real loop on an imagined cluster: when it looks, what it sees, and that a crash at any write changes no end."""

import gc
import weakref
from typing import Any

import pytest

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.loop.cycle import InProcess
from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.plan import Plan
from reconciler.ports import Wished
from reconciler.simulate import stage
from reconciler.simulate.controller import ControllerSettings, SimulatedController
from reconciler.simulate.objects import ObjectWrite
from tests.unit.plan.manifests.stage import WISHED, manifest, patched, pool
from tests.unit.simulate.stage import START, Small, node

_POOLS = ("a100", "h100", "l4")


class Play:
    """Owner of a controller, of when it had its cycles, and of what it wrote."""

    def __init__(self, **setting: Any) -> None:
        self.wished = Wished(wish())
        self.at: list[float] = []
        self.writes: list[str] = []
        self.there = Small(node("n1")).start()
        self.there.world.subscribe(self._written)
        self.controller = SimulatedController(self, (self,), ControllerSettings(**setting))
        self.controller.start(self.there.stage)

    def wish(self, cluster_uid: str) -> Wished:
        return self.wished

    def publish(self, cycled: CycleResult) -> None:
        assert not cycled.trouble, cycled.trouble
        self.at.append((cycled.at - START) / 1_000)

    def _written(self, written: ObjectWrite) -> None:
        if written.by == names.FIELD_MANAGER:
            self.writes.append("/".join(each for each in written.key if each))

    def touch(self, second: float) -> None:
        """Somebody changes a node then."""
        engine, world = self.there.engine, self.there.world
        patch = {"metadata": {"labels": {"touched": str(second)}}}
        engine.after(int(second * 1_000), "a touch", lambda: world.edit(Ref("Node", "", "n1"), patch))

    def pools(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.there.world.of("NodePool"))


def wish(*names_: str) -> Desired:
    bodies = [patched(WISHED, {"metadata": {"name": each}}) for each in names_ or _POOLS]
    pools = tuple(pool(body["metadata"]["name"], {}) for body in bodies)
    return Desired("1", "prod", pools, manifests=tuple(manifest(each, each["metadata"]["name"]) for each in bodies))


def test_it_carries_out_the_wish_and_comes_to_rest() -> None:
    play = Play()
    play.there.until(60)
    assert play.pools() == list(_POOLS)
    assert sorted(play.writes) == [f"NodePool/{name}" for name in _POOLS]
    cycles = len(play.at)
    play.there.until(600)
    assert len(play.at) == cycles, "nothing changes, and nothing is to be looked at again"


def test_a_change_is_seen_when_the_watch_has_delivered_it_and_many_are_one_cycle() -> None:
    play = Play(cycle_every_ms=30_000, watch_delay_ms=2_000, answer_delay_ms=0)
    play.there.until(100)
    play.at.clear()
    for second in (10.0, 10.5, 11.0, 70.0):
        play.touch(second)
    play.there.until(250)
    assert play.at == [112.1, 142.1, 172.1]


def test_what_the_watch_has_not_delivered_yet_is_not_known() -> None:
    play = Play(watch_delay_ms=5_000, answer_delay_ms=0)
    play.there.until(60)
    play.touch(0)
    play.there.until(64)
    (seen,) = play.controller.observe().nodes
    assert "touched" not in seen.metadata.labels
    play.there.until(65)
    (seen,) = play.controller.observe().nodes
    assert "touched" in seen.metadata.labels


def test_a_controller_that_is_stopped_does_nothing_until_it_resumes() -> None:
    play = Play()
    play.controller.stop()
    play.there.until(60)
    assert play.writes == []
    play.controller.resume()
    play.there.until(70)
    assert play.pools() == list(_POOLS)


def test_new_policies_are_followed_when_it_is_woken() -> None:
    play = Play()
    play.there.until(60)
    play.wished = Wished(wish(*_POOLS, "t4"))
    play.there.until(70)
    assert play.pools() == list(_POOLS)
    play.controller.wake()
    play.there.until(72)
    assert "t4" in play.pools()


@pytest.mark.parametrize("after_writes", [1, 2, 3])
def test_killed_after_any_write_it_starts_again_and_repeats_none(after_writes: int) -> None:
    play = Play()
    play.controller.crash(after_writes)
    play.there.until(1)
    assert len(play.writes) == after_writes
    play.there.until(60)
    assert sorted(play.writes) == [f"NodePool/{name}" for name in _POOLS]


def test_killed_it_lets_go_of_what_it_held_where_that_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "LARGE", 1)
    held: list[weakref.ref[Snapshot]] = []

    class Held(InProcess):
        def plan(self, inputs: Inputs) -> Plan:
            planned = super().plan(inputs)
            assert self.scene is not None
            what_if = self.scene.fleet.snapshot
            assert what_if.part(FilterChain).fleet is what_if, "a circle, or this would show nothing"
            held.append(weakref.ref(what_if))
            return planned

    gc.disable()
    try:
        play = Play(brain=Held)
        play.controller.crash(after_writes=2)
        play.there.until(1)
        assert [each() for each in held] == [None]
        play.there.until(60)
        assert held[-1]() is not None
        play.controller.crash()
        assert held[-1]() is None
    finally:
        gc.enable()
