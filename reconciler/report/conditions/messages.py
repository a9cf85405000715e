"""Why a condition is as it is, in words: a table by kind of message."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.plan.reason import Reason
from reconciler.model.plan.size_evaluation import LimitKind
from reconciler.model.problem import Problem
from reconciler.plan.capacity.shortages import short_words
from reconciler.plan.status import messages
from reconciler.plan.status.messages import Message, WaitingForBundle, Why
from reconciler.report.sentences import sentence

_IN_FORCE = "the last good policies stay in force"
_NOT_LIMITED: Mapping[LimitKind, str] = {
    "ScaleUpLimited": "nothing keeps it from what pods need",
    "ScaleDownHeld": "nothing keeps its empty nodes",
}


def message_of(why: Why) -> str:
    return sentence(why) if isinstance(why, Reason) else WORDS[type(why)](why)


def problem_line(problem: Problem) -> str:
    """A problem with its remedy; where it is, the object says."""
    return f"{problem.code}: {problem.sentence}" + (f"; {problem.remedy}" if problem.remedy else "")


def placed_line(problem: Problem) -> str:
    """With its place, for where problems of all policies stand together."""
    place = ":".join([problem.file, *(str(number) for number in (problem.line, problem.column) if number > 0)])
    return f"{place}: {problem_line(problem)}"


def _invalid(why: messages.Invalid) -> str:
    more = len(why.problems) - 1
    return problem_line(why.problems[0]) + (f" (and {more} more)" if more else "")


def _waiting(why: WaitingForBundle) -> str:
    more = f" and {why.others} more" if why.others else ""
    waiting = why.bundle.title if why.bundle else "this revision of the policies"
    culprit = f"{why.culprit.kind}/{why.culprit.name}"
    return f"{waiting} waits until {culprit}{more} is corrected: {problem_line(why.problem)}; {_IN_FORCE}"


WORDS: Mapping[type[Message], Callable[[Any], str]] = {
    messages.Invalid: _invalid,
    messages.BundleIncomplete: lambda it: f"{it.bundle.progress}: apply all of them in one sync wave; {_IN_FORCE}",
    messages.WaitingForBundle: _waiting,
    messages.PoliciesRefused: lambda it: f"{it.problem.file}: {problem_line(it.problem)}; {_IN_FORCE}",
    messages.NotInBundle: lambda _: (
        "it is no part of the bundle that is followed: delete it, or apply the bundle that it is part of"
    ),
    messages.BundleReceived: lambda it: (
        f"{it.bundle.title if it.bundle else 'a bundle'} was received and is judged next"
    ),
    messages.Suspended: lambda _: "it is set aside, as it asks",
    messages.Observed: lambda it: (
        f"mode Observe: nothing is written, and {it.suppressed or 'nothing'} would be done for what its template yields"
    ),
    messages.Followed: lambda _: "it is followed",
    messages.NotLimited: lambda it: _NOT_LIMITED[it.kind],
    messages.NothingRefused: lambda _: "every way to buy may be tried",
    messages.MachinesRefused: lambda it: (
        f"no machine came by these ways: {short_words(it.shortages)}; those who wait are asked for in others"
    ),
}
