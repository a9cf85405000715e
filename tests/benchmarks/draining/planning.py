"""Plans drains of a fleet, in a process of its own, and prints what that took beside the fleet's own question.

Both are asked of one Fleet, which follows what is seen as that of a running controller does: where nothing changed
since the last plan, and (`after_a_change`) where three pods did, which in a fleet that is packed to the brim moves most
hints. `first` is before anybody is a candidate, without hints; `cold` of a Fleet that has to be made from what was
observed, as in the first cycle of a process. All are seconds of the processor, medians of several rounds.

python -m tests.benchmarks.draining.planning (equal|distinct|diverse) NODES
"""

import gc
import json
import resource
import sys
import tracemalloc
from collections.abc import Callable
from statistics import median

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints
from reconciler.plan.check import check
from reconciler.plan.draft import Draft
from reconciler.plan.drain.planner import drain
from reconciler.plan.planner import plan
from reconciler.plan.reason_catalog import decoded
from tests.benchmarks.draining.measuring import Clock, emptied, with_changes
from tests.benchmarks.draining.planned_fleets import first_inputs, next_inputs

ROUNDS, COLD_ROUNDS = 7, 3

Question = Callable[[Inputs, Fleet], object]

QUESTIONS: dict[str, Question] = {
    "fleet": lambda _, fleet: emptied(fleet),
    "plan": plan,
    "drain_alone": lambda inputs, fleet: drain(inputs, Draft(fleet, inputs.desired)),
}


def main(kind: str, nodes: int) -> dict[str, float]:
    first = first_inputs(kind, nodes)
    settled = next_inputs(first, plan(first, Fleet(first.observed)))
    fleet = Fleet(settled.observed)
    settled = msgspec.structs.replace(settled, hints=plan(settled, fleet).hints)
    made = plan(settled, fleet)
    check(settled, fleet, made)
    homes, hinted = made.hints.destinations, settled.hints.destinations
    figures: dict[str, float] = {
        "nodes": nodes,
        "pods": len(settled.observed.pods),
        "budgets": len(settled.observed.budgets),
        "timers": sum(each.taint(names.DRAIN_CANDIDATE) is not None for each in settled.observed.nodes),
        "hints": sum(many for of in hinted.values() for places in of.values() for many in places.values()),
        "nodes_with_hints_kept": sum(homes.get(node) == to for node, to in hinted.items()),
        "candidates": sum(each.is_candidate for each in made.report(DrainReport).weighed),
        "decisions": len(made.decisions),
    }
    gc.collect()
    gc.freeze()
    for which, found in (
        ("", going_on(settled, changes=False)),
        ("after_a_change_", going_on(settled, changes=True)),
        ("first_", going_on(first, changes=False)),
        ("cold_", cold(settled)),
    ):
        figures |= {f"{which}{name}_cpu_seconds": value for name, value in found.items()}
        times = figures[f"{which}plan_cpu_seconds"] / figures[f"{which}fleet_cpu_seconds"]
        figures[f"{which}times_the_fleet"] = round(times, 2)
    resident = {"resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
    return figures | resident | {"peak_of_a_plan_mib": peak_mib(settled)}


def going_on(inputs: Inputs, *, changes: bool) -> dict[str, float]:
    """By question: on a Fleet that has been there for a while; with changes, three pods are others than before."""
    took: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    fleet = Fleet(inputs.observed)
    for asks in QUESTIONS.values():
        asks(inputs, fleet)
    for number in range(ROUNDS):
        for name, asks in QUESTIONS.items():
            told = as_told(inputs, with_changes(inputs.observed, number) if changes else inputs.observed)
            fleet.advance(inputs.observed)
            clock = Clock()
            fleet.advance(told.observed)
            asks(told, fleet)
            took[name].append(clock.read().worked)
    return {name: round(median(several), 4) for name, several in took.items()}


def cold(inputs: Inputs) -> dict[str, float]:
    """By question: on a Fleet that is not there yet."""
    took: dict[str, list[float]] = {"fleet": [], "plan": []}
    for _ in range(COLD_ROUNDS):
        for name, several in took.items():
            gc.collect()  # of the fleet before, which is no part of what this one costs
            clock = Clock()
            QUESTIONS[name](inputs, Fleet(inputs.observed))
            several.append(clock.read().worked)
    return {name: round(median(several), 4) for name, several in took.items()}


def as_told(inputs: Inputs, observed: Observed) -> Inputs:
    """Hints come to a planner as text, so that none of them is the object that it handed out."""
    hints = decoded(msgspec.json.encode(inputs.hints), Hints)
    return msgspec.structs.replace(inputs, observed=observed, hints=hints)


def peak_mib(inputs: Inputs) -> float:
    """What a plan needs beside what it goes by and what is kept from one to the next."""
    fleet = Fleet(inputs.observed)
    plan(inputs, fleet)
    tracemalloc.start()
    plan(inputs, fleet)
    return round(tracemalloc.get_traced_memory()[1] / 2**20, 1)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
