"""Faults in a play, as an actor: owner of the active delays and stock-outs."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from reconciler.model.instant import Instant, span
from reconciler.report.wording import counted
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.actors.kubelets import Kubelets, NodeFailures
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.controller import SimulatedController
from reconciler.simulate.objects import declared_pool_of
from reconciler.simulate.scenario.spec import FaultKind, ScenarioEdit, ScenarioFault
from reconciler.simulate.stage import Stage

# --- Messages at the start and end of faults.

_NAMED = 3  # nodes named in a message
# For faults of nodes: what fails, what could happen to it, and what happens to one and to several.
_OF_NODES: dict[FaultKind, tuple[str, str, str, str]] = {
    "NodeDeath": ("machine", "die", "dies", "die"),
    "NodeNotReady": ("node", "become not ready", "is not ready", "are not ready"),
    "KubeletDown": ("kubelet", "stop", "stops", "stop"),
}
# The start and the end of other faults.
_WORDS: dict[FaultKind, tuple[str, str]] = {
    "NodeNotReady": ("", "nodes are ready again"),
    "KubeletDown": ("", "kubelets run again"),
    "SlowApi": ("the API server responds after {late}", "the API server responds as usual"),
    "LateWatch": ("watches are delayed by {late}", "watches are on time again"),
    "EvictionsFail": ("the API server fails evictions", "the API server handles evictions as usual"),
    "SlowKubelets": ("pod starts and ends are delayed by {late}", "pods start and end as usual"),
    "SlowWorkloads": ("replacement pods are delayed by {late}", "replacement pods are created as usual"),
    "ControllerCrash": ("the controller crashes{later}", ""),
    "ControllerAbsent": ("the controller is stopped", "the controller runs again"),
}


def _node_words(fault: ScenarioFault, stricken: Sequence[str]) -> str:
    what, could, one, many = _OF_NODES[fault.fault]
    if not stricken:
        return f"no {what}{f' of {fault.pool}' if fault.pool else ''} exists that could {could}"
    more = f" and {len(stricken) - _NAMED} more" if len(stricken) > _NAMED else ""
    happens = one if len(stricken) == 1 else many
    return f"{counted(len(stricken), what)} {happens}: {', '.join(stricken[:_NAMED])}{more}"


def _begin_words(fault: ScenarioFault) -> str:
    if fault.fault in {"StockOut", "NotOffered"}:
        one, any_of = ("sold out", "can be launched") if fault.fault == "StockOut" else ("not offered", "is offered")
        return f"{_stock(fault)} is {one}" if fault.instance_type else f"no {_stock(fault)} {any_of}"
    later = f" after {counted(fault.after_writes, 'more write')}" if fault.after_writes else ""
    return _WORDS[fault.fault][0].format(late=span(fault.delay.milliseconds // 1_000), later=later)


def _end_words(fault: ScenarioFault) -> str:
    if fault.fault == "StockOut":
        return f"{_stock(fault, 'machines')} can be launched again"
    if fault.fault == "NotOffered":
        return f"{_stock(fault, 'machines')} {'is' if fault.instance_type else 'are'} offered again"
    return _WORDS[fault.fault][1]


def _stock(fault: ScenarioFault, any_machine: str = "machine") -> str:
    """Machines in words: spot machines in zone-a, p4d.24xlarge on-demand."""
    kind, where = fault.capacity_type or "", f"in {fault.zone}" if fault.zone else ""
    words = [fault.instance_type, kind, where] if fault.instance_type else [kind, any_machine, where]
    return " ".join(filter(None, words))


Tell = Callable[[Instant, str], None]
Begin = Callable[[], Callable[[], None] | None]  # returns how to end it, if it needs an end


def repeat(stage: Stage, each: ScenarioFault | ScenarioEdit, what: str, begin: Begin) -> None:
    """Calls `begin` at its time and at each repetition, and what it returns at the end of each."""

    def come() -> None:
        now, end = stage.now, begin()
        if each.lasts is not None and end is not None:
            stage.engine.at(Instant(now + each.lasts.milliseconds), what, end)
        if each.every is not None:
            stage.engine.at(Instant(now + each.every.milliseconds), what, come)

    stage.engine.at(Instant(stage.now + each.at.milliseconds), what, come)


class FaultTargets(msgspec.Struct, frozen=True):
    """The actors that faults affect."""

    controller: SimulatedController
    karpenter: Karpenter
    failures: NodeFailures
    workloads: Workloads
    kubelets: Kubelets


class Faults:
    """Starts each fault at its time, and repeats it as configured."""

    def __init__(self, faults: list[ScenarioFault], victims: FaultTargets, tell: Tell) -> None:
        self._faults = faults
        self._tell = tell
        self._victims = victims
        self._usual = (victims.controller.watch_delay_ms, victims.controller.answer_delay_ms)
        # Number of active faults of a kind, by delay: overlapping faults end with the last one.
        self._active: Counter[tuple[FaultKind, int]] = Counter()

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for number, fault in enumerate(self._faults):
            repeat(stage, fault, f"fault {fault.fault}", partial(self._come, number, fault))

    def _come(self, number: int, fault: ScenarioFault) -> Callable[[], None]:
        """Returns how the fault ends."""
        if fault.fault in _OF_NODES:
            return partial(self._recover, fault, self._strike(number, fault))
        self._begin(number, fault)
        return partial(self._end, fault)

    def _begin(self, number: int, fault: ScenarioFault) -> None:
        victims = self._victims
        match fault.fault:
            case "StockOut":
                victims.karpenter.cloud.sold_out.append(_stockout(fault))
            case "NotOffered":
                victims.karpenter.cloud.withheld.append(_stockout(fault))
            case "ControllerCrash" if not victims.controller.holds():
                self._tell(self._stage.now, "no controller is running")
                return
            case "ControllerCrash":
                victims.controller.crash(fault.after_writes)
            case _:
                self._active[fault.fault, fault.delay.milliseconds] += 1
                self._delay()
                if fault.fault == "EvictionsFail":
                    self._stage.world.failing = self._stage.engine.stream(f"fault/{number}")
                elif fault.fault == "ControllerAbsent":
                    victims.controller.stop()
        self._tell(self._stage.now, _begin_words(fault))

    def _end(self, fault: ScenarioFault) -> None:
        """Ends a fault; reported when no other of its kind is active."""
        cloud = self._victims.karpenter.cloud
        match fault.fault:
            case "StockOut":
                goes_on = cloud.restock(cloud.sold_out, _stockout(fault))
            case "NotOffered":
                goes_on = cloud.restock(cloud.withheld, _stockout(fault))
            case "ControllerCrash":
                return
            case _:
                self._active[fault.fault, fault.delay.milliseconds] -= 1
                self._active = +self._active
                self._delay()
                goes_on = any(kind == fault.fault for kind, _ in self._active)
                if fault.fault == "EvictionsFail" and not goes_on:
                    self._stage.world.failing = None
                elif fault.fault == "ControllerAbsent" and not goes_on:
                    self._victims.controller.resume()
        if not goes_on:
            self._tell(self._stage.now, _end_words(fault))

    def _strike(self, number: int, fault: ScenarioFault) -> Sequence[tuple[str, str]]:
        """Returns the affected nodes that can recover, with their uids."""
        failures, doomed = self._victims.failures, self._doomed(number, fault)
        self._tell(self._stage.now, _node_words(fault, doomed))
        if fault.fault == "NodeDeath":
            for name in doomed:
                failures.kill(name)
            return ()
        strike = failures.begin_lapse if fault.fault == "NodeNotReady" else failures.silence
        return [(name, strike(name)) for name in doomed]

    def _recover(self, fault: ScenarioFault, stricken: Sequence[tuple[str, str]]) -> None:
        """Reported if any node recovered."""
        back = [name for name, _ in stricken]
        if fault.fault == "NodeNotReady":
            for name, uid in stricken:
                self._victims.failures.end_lapse(name, uid)
        else:
            back = [name for name, uid in stricken if self._victims.failures.revive(name, uid)]
            for name in back:
                self._victims.kubelets.resume(name)
        if back:
            self._tell(self._stage.now, _end_words(fault))

    def _delay(self) -> None:
        """Sets the delays to their defaults, or the maximum of the active faults."""
        victims, (watch, answer) = self._victims, self._usual
        longest = {fault: max(each for of, each in self._active if of == fault) for fault, _ in self._active}
        victims.controller.delay(max(watch, longest.get("LateWatch", 0)), max(answer, longest.get("SlowApi", 0)))
        victims.kubelets.late_ms = longest.get("SlowKubelets", 0)
        victims.workloads.late_ms = longest.get("SlowWorkloads", 0)

    def _doomed(self, number: int, fault: ScenarioFault) -> list[str]:
        """Randomly chosen live nodes."""
        nodes = [each for each in self._stage.world.of("Node") if fault.pool in {"", declared_pool_of(each)}]
        found = sorted({each["metadata"]["name"] for each in nodes} - self._stage.silent_nodes)
        return self._stage.engine.stream(f"fault/{number}").sample(found, min(fault.count, len(found)))


def _stockout(fault: ScenarioFault) -> Stockout:
    return Stockout(fault.instance_type, fault.zone, fault.capacity_type or "")
