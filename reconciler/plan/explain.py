"""Reasons to sentences: every code that any planner may give, in one table."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from reconciler.model.instant import timestamp
from reconciler.model.planned.action import Ref
from reconciler.model.planned.reason import Facts, Reason
from reconciler.plan import containment, removal
from reconciler.plan.drain import reasons as drain
from reconciler.plan.drain.codes import words as drain_words
from reconciler.plan.guards import cluster_min, frozen, one_action, set_aside
from reconciler.plan.guards import reasons as guards
from reconciler.plan.holds import standstill
from reconciler.plan.manifests import reasons as manifests
from reconciler.plan.reasons import by_code, counted
from reconciler.plan.release import reasons as release
from reconciler.plan.scaling import reasons as scaling
from reconciler.plan.smart_pods import reasons as smart_pods
from reconciler.plan.statuses import reasons as statuses

REASONS = by_code(
    (
        *guards.REASONS,
        *frozen.REASONS,
        *one_action.REASONS,
        *standstill.REASONS,
        *removal.REASONS,
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

# How facts are written that are more than a name, a number or a time, by their type.
WORDS: Mapping[type, Callable[[Any], str]] = {**drain_words.WORDS}


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
        if value is None or (where_there_is_none and value == ()):
            return where_there_is_none
        if spec == "time":
            return timestamp(value)
        if spec == "minutes":
            return _minutes(value)
        if spec:
            return counted(value, spec)
        if (words := WORDS.get(type(value))) is not None:
            return words(value)
        if isinstance(value, Ref):
            return value.title
        if isinstance(value, Reason):
            return words_of(value)
        if isinstance(value, tuple):
            return ", ".join(self.format_field(each, "") for each in value)
        return str(value)


_WORDS = _Words()


def _minutes(seconds: int) -> str:
    """Whole ones, or with a tenth."""
    tenths = seconds // 6
    return f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)


def _filled(template: str, facts: Facts) -> str:
    return _WORDS.vformat(template, (), facts.fields())
