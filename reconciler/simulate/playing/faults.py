"""What goes wrong in a play, as an actor: owner of which delays and stock-outs are in force."""

from collections import Counter
from collections.abc import Callable

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.simulate.actors.deaths import Deaths
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.controller import Controller
from reconciler.simulate.playing.fault_words import begin_words, death_words, end_words
from reconciler.simulate.playing.telling import Tell
from reconciler.simulate.scenario.fault import Fault
from reconciler.simulate.stage import Stage


class Victims(msgspec.Struct, frozen=True):
    """Whom faults befall."""

    controller: Controller
    karpenter: Karpenter
    deaths: Deaths


class Faults:
    """Each comes when its time has come, and again where it says so."""

    def __init__(self, faults: list[Fault], victims: Victims, tell: Tell) -> None:
        self._faults = faults
        self._tell = tell
        self._victims = victims
        self._usual = (victims.controller.watch_delay_ms, victims.controller.answer_delay_ms)
        # Of what is in force, how often: a fault that comes again before it is over is over when the last of it is.
        self._delays: Counter[tuple[str, int]] = Counter()  # by the fault, in milliseconds
        self._absences = 0

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for number, fault in enumerate(self._faults):
            self._at(Instant(stage.now + fault.at.milliseconds), fault, self._coming(number, fault))

    def _at(self, when: Instant, fault: Fault, do: Callable[[], None]) -> None:
        self._stage.engine.at(when, f"fault {fault.fault}", do)

    def _coming(self, number: int, fault: Fault) -> Callable[[], None]:
        def come() -> None:
            now = self._stage.now
            self._begin(number, fault)
            if fault.lasts is not None:
                self._at(Instant(now + fault.lasts.milliseconds), fault, lambda: self._end(fault))
            if fault.every is not None:
                self._at(Instant(now + fault.every.milliseconds), fault, come)

        return come

    def _begin(self, number: int, fault: Fault) -> None:
        victims = self._victims
        match fault.fault:
            case "NodeDeath":
                doomed = self._doomed(number, fault)
                for name in doomed:
                    victims.deaths.kill(name)
                self._tell(self._stage.now, death_words(doomed, fault.pool))
                return
            case "StockOut":
                victims.karpenter.hold_back(_stockout(fault))
            case "NotOffered":
                victims.karpenter.withhold(_stockout(fault))
            case "SlowApi" | "LateWatch":
                self._delays[fault.fault, fault.delay.milliseconds] += 1
                self._delay()
            case "ControllerCrash" if not victims.controller.holds():
                self._tell(self._stage.now, "no controller is there to crash")
                return
            case "ControllerCrash":
                victims.controller.crash(fault.after_writes)
            case "ControllerAbsent":
                self._absences += 1
                victims.controller.stop()
        self._tell(self._stage.now, begin_words(fault))

    def _end(self, fault: Fault) -> None:
        """One is over; it is told when no other of its sort goes on."""
        victims = self._victims
        match fault.fault:
            case "StockOut":
                victims.karpenter.restock(_stockout(fault))
                goes_on = victims.karpenter.lacks(_stockout(fault))
            case "NotOffered":
                victims.karpenter.offer(_stockout(fault))
                goes_on = victims.karpenter.withholds(_stockout(fault))
            case "SlowApi" | "LateWatch":
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

    def _delay(self) -> None:
        """What is usual, or the longest that is in force."""
        watch, answer = self._usual
        late = [each for fault, each in self._delays if fault == "LateWatch"]
        slow = [each for fault, each in self._delays if fault == "SlowApi"]
        self._victims.controller.delay(max([watch, *late]), max([answer, *slow]))

    def _doomed(self, number: int, fault: Fault) -> list[str]:
        """Whom chance hits, of those that are alive."""
        found = []
        for body in self._stage.world.of("Node"):
            metadata = body["metadata"]
            labels = metadata.get("labels") or {}
            pool = labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, "")
            if metadata["name"] not in self._stage.dead_nodes and fault.pool in {"", pool}:
                found.append(metadata["name"])
        chance = self._stage.engine.stream(f"fault/{number}")
        return chance.sample(sorted(found), min(fault.count, len(found)))


def _stockout(fault: Fault) -> Stockout:
    return Stockout(fault.instance_type, fault.zone, fault.capacity_type or "")
