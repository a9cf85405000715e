"""The canonical lines of a plan: what is decided and remembered, without a word of why in prose.

The adapter between the shapes of plans as they are now and the lines as they were recorded: where a field of a plan,
an action or the memory moves or gets another name, this module follows, and no recorded line changes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reconciler.model.plan.capacity import CapacityLimit, CapacityReport
from reconciler.model.plan.consequence import Hindrance
from reconciler.model.plan.decision import Decision, Evict, Hold, Obstacle
from reconciler.model.plan.evaluation import DrainReport, ScalingReport
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.words import limit_words, obstacles_words

_MANIFEST_DIGITS = 12


def lines_of(plan: Plan) -> list[str]:
    """Decisions in their order, then what else follows and is remembered."""
    found = [*map(_decision, plan.decisions)]
    found += [f"consequence {_joined(_leaves(each))}" for each in plan.consequences]
    found += [f"purchase {_joined(_leaves(each))}" for each in plan.report(CapacityReport).purchases]
    found += [f"size {_joined(_leaves(each, without_reason=True))}" for each in plan.report(ScalingReport).sizes]
    found += [f"weighed {_joined(_leaves(each, without_reason=True))}" for each in plan.report(DrainReport).weighed]
    found += [f"trouble {_joined(_leaves(each))}" for each in plan.troubles]
    found += [f"memory {path} {value}" for path, value in _leaves(plan.memory)]
    return [*found, f"wake_at {plan.wake_at}"]


def _decision(decision: Decision) -> str:
    act = decision.act
    verb = "hold" if isinstance(act, Hold) else type(act).__name__.lower()
    marks = [*(["would"] if decision.would else []), *([f"pool={decision.pool}"] if decision.pool else [])]
    marks += [f"after={each.title}" for each in decision.after]
    title = f"{decision.subject.title}@{decision.subject.uid}"
    # Where evicted pods would go, and their gang, is told by what is remembered of them.
    act = act.api_request if isinstance(act, Evict) else act
    return " ".join((decision.planner, title, verb, decision.reason.code, *marks, _joined(_leaves(act)))).rstrip()


def _joined(leaves: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{path}={value}" for path, value in leaves)


def _words(value: Any) -> str | None:
    """Of what was recorded as text."""
    match value:
        case CapacityLimit():
            return limit_words(value)
        case Hindrance():
            return value.title
        case tuple() if value and all(isinstance(each, Obstacle) for each in value):
            return obstacles_words(value)
    return None


def _leaves(value: Any, path: str = "", *, without_reason: bool = False) -> Iterator[tuple[str, str]]:
    """Every value in it that is not a default, by its path. Of a reason, its code."""
    if (words := _words(value)) is not None:
        yield path, repr(words)
    elif isinstance(value, msgspec.Struct):
        if type(value).__name__ == "Reason":
            yield path, value.code  # type: ignore[attr-defined]
            return
        for field in msgspec.structs.fields(value):
            found = getattr(value, field.name)
            if found != field.default:
                yield from _leaves(found, f"{path}.{field.name}" if path else field.name)
    elif isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}")
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value):
            yield from _leaves(each, f"{path}.{number}")
    else:
        yield path, repr(value) if isinstance(value, str) else str(value)
