"""Reasons to sentences: every code that any planner may give, in one table."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import Facts, Reason
from reconciler.plan import containment
from reconciler.plan.capacity import words as requests
from reconciler.plan.drain import reasons as drain
from reconciler.plan.drain.codes import words as drain_words
from reconciler.plan.guards import cluster_min, frozen, one_action, set_aside
from reconciler.plan.guards import reasons as guards
from reconciler.plan.guards import words as guard_words
from reconciler.plan.holds import standstill
from reconciler.plan.holds import words as hold_words
from reconciler.plan.manifests import reasons as manifests
from reconciler.plan.manifests import words as manifest_words
from reconciler.plan.nodes import ownership
from reconciler.plan.reasons import by_code, counted
from reconciler.plan.release import reasons as release
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.scaling import words as sizes
from reconciler.plan.smart_pods import reasons as smart_pods
from reconciler.plan.smart_pods import words as machines
from reconciler.plan.status import reasons as statuses
from reconciler.plan.status import words as standings

REASONS = by_code(
    (
        *guards.REASONS,
        *frozen.REASONS,
        *one_action.REASONS,
        *standstill.REASONS,
        *ownership.REASONS,
        *containment.REASONS,
        *set_aside.REASONS,
        *cluster_min.REASONS,
        *manifests.REASONS,
        *scaling.REASONS,
        *drain.REASONS,
        *smart_pods.REASONS,
        *release.REASONS,
        *statuses.REASONS,
    )
)

# How a fact is written, by its type.
WORDS: Mapping[type, Callable[[Any], str]] = {
    **drain_words.WORDS,
    **guard_words.WORDS,
    **manifest_words.WORDS,
    **requests.WORDS,
    **sizes.WORDS,
    **machines.WORDS,
    **standings.WORDS,
}

# By code, what stands in its template and is no fact, or is written otherwise than by its type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    **guard_words.PARTS,
    **manifest_words.PARTS,
    **hold_words.PARTS,
}


def sentence(reason: Reason) -> str:
    """What a person is told."""
    return _filled(REASONS[reason.code].template, reason.facts)


def asked(reason: Reason) -> str:
    """What a person is told of a decision that a guard holds."""
    declared = REASONS[reason.code]
    return _filled(declared.while_held or declared.template, reason.facts)


def words_of(reason: Reason) -> str:
    """The sentence as a part of another."""
    return sentence(reason).removesuffix(".")


class _Words(Formatter):
    """Owner of how a fact is written: by its type, and by what the template says beside its name."""

    def format_field(self, value: Any, format_spec: str) -> str:
        spec, _, where_there_is_none = format_spec.partition("|")
        is_absent = value is None or value == ()
        if is_absent and (where_there_is_none or spec != "time"):
            return where_there_is_none
        if spec in _SPECS:
            return _SPECS[spec](value)
        if spec:
            return counted(value, spec)
        if isinstance(value, Ref):
            return value.title
        if isinstance(value, Reason):
            return words_of(value)
        if (words := WORDS.get(type(value))) is not None:
            return words(value)
        if isinstance(value, tuple):
            return ", ".join(self.format_field(each, "") for each in value)
        return str(value)


def _time(moment: Instant | None) -> str:
    return "no time" if moment is None else timestamp(moment)


def _minutes(seconds: int) -> str:
    """Whole ones, or with a tenth."""
    tenths = seconds // 6
    return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)


_WORDS = _Words()
_SPECS: Mapping[str, Callable[[Any], str]] = {
    "time": _time,
    "minutes": _minutes,
    "while_held": asked,
    "in_brackets": lambda text: f" ({text})" if text else "",
    "and": " and ".join,
}


def fact_words(value: Any) -> str:
    """A fact as a part of a sentence."""
    return _WORDS.format_field(value, "")


def _filled(template: str, facts: Facts) -> str:
    made = PARTS.get(type(facts))
    parts = {name: words(facts) for name, words in made.items() if f"{{{name}}}" in template} if made else {}
    return _WORDS.vformat(template, (), facts.fields() | parts)
