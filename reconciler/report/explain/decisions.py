"""Decisions in words, those that are alike together."""

from collections import Counter
from collections.abc import Iterable, Iterator

from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.observing import observation_behind
from reconciler.plan.holds.classes import is_held
from reconciler.plan.holds.resting import is_at_rest
from reconciler.report.explain.about import Row, decision_sentence
from reconciler.report.wording import counted


def decided_rows(scene: PlanningResult, decisions: Iterable[Decision]) -> Iterator[Row]:
    """A row for each decision; one for all that share their reason, with the first of them as an example."""
    groups: dict[tuple[str, str, str, bool, bool], list[Decision]] = {}
    for each in decisions:
        is_held = isinstance(each.act, Hold)
        key = each.planner, each.subject.kind, each.reason.code, is_held, each.would
        groups.setdefault(key, []).append(each)
    for (_, kind, _, _, _), alike in groups.items():
        first = alike[0]
        if len(alike) == 1:
            yield "decided", decision_sentence(scene, first)
        else:
            yield (
                "decided",
                f"{counted(len(alike), kind)}, such as {first.subject.name}: {decision_sentence(scene, first)}",
            )


def tally(scene: PlanningResult, decisions: Iterable[Decision]) -> str:
    """3 to carry out, 2 held, 4 waiting: for their time, or for what goes on by itself."""
    every = tuple(decisions)
    holds = [each for each in every if isinstance(each.act, Hold)]
    held = sum(is_held(each) and not is_at_rest(each) for each in holds)
    supposed = Counter(observation_behind(scene.inputs, each) for each in every if each.would)
    parts = [(len(every) - len(holds) - supposed.total(), "to carry out")]
    parts += [(number, f"to carry out if {each.unless}") for each, number in supposed.items() if each is not None]
    parts += [(held, "held"), (len(holds) - held, "waiting")]
    return f"{', '.join(f'{number} {what}' for number, what in parts if number)}."
