"""Faults in a play, as an actor: owner of the active delays and stock-outs."""

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, span
from reconciler.report.wording import counted
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.actors.kubelets import Deaths, Kubelets, Lapses
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.controller import SimulatedController
from reconciler.simulate.scenario.spec import ScenarioFault
from reconciler.simulate.stage import Stage

# --- Messages at the start and end of faults.

_NAMED = 3  # nodes named in a message


def death_words(doomed: Sequence[str], pool: str) -> str:
    """The machines of these nodes die."""
    if not doomed:
        return f"no machine{f' of {pool}' if pool else ''} exists that could die"
    return f"{counted(len(doomed), 'machine')} {'dies' if len(doomed) == 1 else 'die'}: {_listed(doomed)}"


def lapse_words(stricken: Sequence[str], pool: str) -> str:
    """These nodes are temporarily not ready."""
    if not stricken:
        return f"no node{f' of {pool}' if pool else ''} exists that could become not ready"
    return f"{counted(len(stricken), 'node')} {'is' if len(stricken) == 1 else 'are'} not ready: {_listed(stricken)}"


def silence_words(stricken: Sequence[str], pool: str) -> str:
    """The kubelets of these nodes stop."""
    if not stricken:
        return f"no kubelet{f' of {pool}' if pool else ''} exists that could stop"
    return f"{counted(len(stricken), 'kubelet')} {'stops' if len(stricken) == 1 else 'stop'}: {_listed(stricken)}"


def _listed(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f"{', '.join(nodes[:_NAMED])}{more}"


def begin_words(fault: ScenarioFault) -> str:
    """The start of a fault."""
    late = span(fault.delay.milliseconds // 1_000)
    match fault.fault:
        case "StockOut":
            return f"{_stock(fault)} is sold out" if fault.instance_type else f"no {_stock(fault)} can be launched"
        case "NotOffered":
            return f"{_stock(fault)} is not offered" if fault.instance_type else f"no {_stock(fault)} is offered"
        case "SlowApi":
            return f"the API server responds after {late}"
        case "LateWatch":
            return f"watches are delayed by {late}"
        case "EvictionsFail":
            return "the API server fails evictions"
        case "SlowKubelets":
            return f"pod starts and ends are delayed by {late}"
        case "SlowWorkloads":
            return f"replacement pods are delayed by {late}"
        case "ControllerCrash":
            later = f" after {counted(fault.after_writes, 'more write')}" if fault.after_writes else ""
            return f"the controller crashes{later}"
        case _:
            return "the controller is stopped"


def end_words(fault: ScenarioFault) -> str:
    """The end of a fault."""
    match fault.fault:
        case "StockOut":
            return f"{_stock(fault, 'machines')} can be launched again"
        case "NotOffered":
            return f"{_stock(fault, 'machines')} {'is' if fault.instance_type else 'are'} offered again"
        case "SlowApi":
            return "the API server responds as usual"
        case "LateWatch":
            return "watches are on time again"
        case "NodeNotReady":
            return "nodes are ready again"
        case "KubeletDown":
            return "kubelets run again"
        case "EvictionsFail":
            return "the API server handles evictions as usual"
        case "SlowKubelets":
            return "pods start and end as usual"
        case "SlowWorkloads":
            return "replacement pods are created as usual"
        case _:
            return "the controller runs again"


def _stock(fault: ScenarioFault, any_machine: str = "machine") -> str:
    """Machines in words: spot machines in zone-a, p4d.24xlarge on-demand."""
    kind, where = fault.capacity_type or "", f"in {fault.zone}" if fault.zone else ""
    words = [fault.instance_type, kind, where] if fault.instance_type else [kind, any_machine, where]
    return " ".join(filter(None, words))


# --- Targets and listeners of faults.

Tell = Callable[[Instant, str], None]


class FaultTargets(msgspec.Struct, frozen=True):
    """The targets of faults."""

    controller: SimulatedController
    karpenter: Karpenter
    deaths: Deaths
    lapses: Lapses
    workloads: Workloads
    kubelets: Kubelets


class Faults:
    """Starts each fault at its time, and repeats it as configured."""

    def __init__(self, faults: list[ScenarioFault], victims: FaultTargets, tell: Tell) -> None:
        self._faults = faults
        self._tell = tell
        self._victims = victims
        self._usual = (victims.controller.watch_delay_ms, victims.controller.answer_delay_ms)
        # Number of active faults of a kind: overlapping faults end with the last one.
        self._delays: Counter[tuple[str, int]] = Counter()  # by fault, in milliseconds
        self._absences = 0

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for number, fault in enumerate(self._faults):
            self._at(Instant(stage.now + fault.at.milliseconds), fault, self._coming(number, fault))

    def _at(self, when: Instant, fault: ScenarioFault, do: Callable[[], None]) -> None:
        self._stage.engine.at(when, f"fault {fault.fault}", do)

    def _coming(self, number: int, fault: ScenarioFault) -> Callable[[], None]:
        def come() -> None:
            now = self._stage.now
            stricken = self._begin(number, fault)
            if fault.lasts is not None:
                self._at(Instant(now + fault.lasts.milliseconds), fault, lambda: self._end(fault, stricken))
            if fault.every is not None:
                self._at(Instant(now + fault.every.milliseconds), fault, come)

        return come

    def _begin(self, number: int, fault: ScenarioFault) -> tuple[tuple[str, str], ...]:
        """Returns the affected nodes that can recover, with their uids."""
        if fault.fault in {"NodeDeath", "NodeNotReady", "KubeletDown"}:
            return self._strike(number, fault)
        victims = self._victims
        match fault.fault:
            case "StockOut":
                victims.karpenter.hold_back(_stockout(fault))
            case "NotOffered":
                victims.karpenter.withhold(_stockout(fault))
            case "SlowApi" | "LateWatch" | "SlowKubelets" | "SlowWorkloads":
                self._delays[fault.fault, fault.delay.milliseconds] += 1
                self._delay()
            case "EvictionsFail":
                self._stage.world.failing.begin(self._stage.engine.stream(f"fault/{number}"))
            case "ControllerCrash" if not victims.controller.holds():
                self._tell(self._stage.now, "no controller is running")
                return ()
            case "ControllerCrash":
                victims.controller.crash(fault.after_writes)
            case "ControllerAbsent":
                self._absences += 1
                victims.controller.stop()
        self._tell(self._stage.now, begin_words(fault))
        return ()

    def _strike(self, number: int, fault: ScenarioFault) -> tuple[tuple[str, str], ...]:
        victims, lines = self._victims, self._doomed(number, fault)
        if fault.fault == "NodeNotReady":
            self._tell(self._stage.now, lapse_words(lines, fault.pool))
            return tuple((name, victims.lapses.begin(name)) for name in lines)
        if fault.fault == "KubeletDown":
            self._tell(self._stage.now, silence_words(lines, fault.pool))
            return tuple((name, victims.deaths.silence(name)) for name in lines)
        for name in lines:
            victims.deaths.kill(name)
        self._tell(self._stage.now, death_words(lines, fault.pool))
        return ()

    def _end(self, fault: ScenarioFault, stricken: Sequence[tuple[str, str]]) -> None:
        """Ends a fault; reported when no other of its kind is active."""
        victims = self._victims
        match fault.fault:
            case "StockOut":
                victims.karpenter.restock(_stockout(fault))
                goes_on = victims.karpenter.lacks(_stockout(fault))
            case "NotOffered":
                victims.karpenter.offer(_stockout(fault))
                goes_on = victims.karpenter.withholds(_stockout(fault))
            case "NodeNotReady" | "KubeletDown":
                goes_on = not self._recover(fault, stricken)
            case "EvictionsFail":
                self._stage.world.failing.end()
                goes_on = self._stage.world.failing.goes_on
            case "SlowApi" | "LateWatch" | "SlowKubelets" | "SlowWorkloads":
                self._delays[fault.fault, fault.delay.milliseconds] -= 1
                self._delays = +self._delays
                self._delay()
                goes_on = any(sort == fault.fault for sort, _ in self._delays)
            case "ControllerAbsent":
                self._absences -= 1
                goes_on = bool(self._absences)
                if not goes_on:
                    victims.controller.resume()
            case _:
                return
        if not goes_on:
            self._tell(self._stage.now, end_words(fault))

    def _recover(self, fault: ScenarioFault, stricken: Sequence[tuple[str, str]]) -> bool:
        """Returns whether any node recovered."""
        victims = self._victims
        if fault.fault == "NodeNotReady":
            for name, uid in stricken:
                victims.lapses.end(name, uid)
            return bool(stricken)
        back = [name for name, uid in stricken if victims.deaths.revive(name, uid)]
        for name in back:
            victims.kubelets.resume(name)
        return bool(back)

    def _delay(self) -> None:
        """Sets the delays to their defaults, or the maximum of the active faults."""
        victims, (watch, answer) = self._victims, self._usual
        longest = {fault: max(each for of, each in self._delays if of == fault) for fault, _ in self._delays}
        victims.controller.delay(max(watch, longest.get("LateWatch", 0)), max(answer, longest.get("SlowApi", 0)))
        victims.kubelets.late_ms = longest.get("SlowKubelets", 0)
        victims.workloads.late_ms = longest.get("SlowWorkloads", 0)

    def _doomed(self, number: int, fault: ScenarioFault) -> list[str]:
        """Randomly chosen live nodes."""
        found = []
        for body in self._stage.world.of("Node"):
            metadata = body["metadata"]
            labels = metadata.get("labels") or {}
            pool = labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, "")
            if metadata["name"] not in self._stage.silent_nodes and fault.pool in {"", pool}:
                found.append(metadata["name"])
        chance = self._stage.engine.stream(f"fault/{number}")
        return chance.sample(sorted(found), min(fault.count, len(found)))


def _stockout(fault: ScenarioFault) -> Stockout:
    return Stockout(fault.instance_type, fault.zone, fault.capacity_type or "")
