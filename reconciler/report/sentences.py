"""Sentences for reasons."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Facts, Reason, Ref
from reconciler.plan.capacity import words as capacity
from reconciler.plan.features import FEATURES
from reconciler.plan.guards import reasons as guards
from reconciler.plan.holds import standstill as holds
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import counted
from reconciler.plan.status import reasons as statuses

# Format of a fact, by its type.
WORDS: Mapping[type, Callable[[Any], str]] = {
    **guards.WORDS,
    **capacity.WORDS,
    **statuses.WORDS,
    **{kind: words for feature in FEATURES for kind, words in feature.words.items()},
}

# By code, template fields that are not facts, or are not formatted by type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    **guards.PARTS,
    **holds.PARTS,
    **{facts: parts for feature in FEATURES for facts, parts in feature.parts.items()},
}


def sentence(reason: Reason) -> str:
    return _filled(REASONS[reason.code].template, reason.facts)


def guarded_sentence(reason: Reason) -> str:
    declared = REASONS[reason.code]
    return _filled(declared.while_held or declared.template, reason.facts)


def words_of(reason: Reason) -> str:
    """The sentence as a clause of another sentence."""
    return sentence(reason).removesuffix(".")


class _FactFormatter(Formatter):
    """Formats a fact by its type, and by the format specification in the template."""

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
    """Minutes, with one decimal if they are not whole."""
    tenths = seconds // 6
    return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)


_WORDS = _FactFormatter()
_SPECS: Mapping[str, Callable[[Any], str]] = {
    "time": _time,
    "minutes": _minutes,
    "while_held": guarded_sentence,
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
