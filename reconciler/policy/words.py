"""Words for people: what was expected, and what they may have meant."""

import difflib
from collections.abc import Iterable

from reconciler.model.fields import Within
from reconciler.model.quantity import Duration, Money, Percent, Quantity
from reconciler.policy.limits import LONGEST_WORD
from reconciler.policy.shape import Choice, Flag, ListOf, MapOf, Measure, Measured, Object, Shape, WholeNumber, Words

_NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_MEASURES: dict[Measure, str] = {
    Quantity: "a quantity such as 8, 500m or 40Gi",
    Duration: "a duration such as 90s, 30m or 1h30m",
    Percent: "a percentage from 0% to 100%, such as 85%",
    Money: 'dollars in quotes, such as "14.75"',
}


def expected(shape: Shape) -> str:
    """What a field takes, for 'expected …'."""
    match shape:
        case WholeNumber(within=within):
            return "an integer" + bounds(within)
        case Flag():
            return "true or false"
        case Words():
            return "a text"
        case Choice(values=values):
            return choice(values)
        case Measured(measure=measure, words=words):
            return _MEASURES[measure] + (f", or {choice(words)}" if words else "")
        case ListOf():
            return "a list"
        case MapOf() | Object():
            return "a map"


def bounds(within: Within) -> str:
    """Least and greatest, with a blank in front."""
    match within:
        case Within(least=None, most=None):
            return ""
        case Within(least=least, most=None):
            return f" of at least {least}"
        case Within(least=None, most=most):
            return f" of at most {most}"
        case Within(least=least, most=most):
            return f" from {least} to {most}"


def how_many(within: Within, unit: str) -> str:
    """1 to 3 items; at least 1 item."""
    plural = unit[:-1] + "ies" if unit.endswith("y") else unit + "s"
    match within:
        case Within(least=least, most=None):
            return f"at least {least} {unit if least == 1 else plural}"
        case Within(least=None, most=most):
            return f"at most {most} {unit if most == 1 else plural}"
        case Within(least=least, most=most):
            return f"{least} to {most} {plural}"


def choice(values: tuple[str, ...]) -> str:
    """a, b or c."""
    *first, last = values
    return f"{', '.join(first)} or {last}" if first else last


def meant(error: str, known: Iterable[str]) -> str:
    """The known word that looks most like it, if one does; case does not count, and a beginning is enough."""
    if len(error) > LONGEST_WORD:
        return ""
    by_fold = {word.casefold(): word for word in sorted(known)}
    fold = error.casefold()
    if close := difflib.get_close_matches(fold, by_fold, n=1, cutoff=0.72):
        return by_fold[close[0]]
    beginnings = [word for word in by_fold if len(fold) >= 4 and (word.startswith(fold) or fold.startswith(word))]
    return by_fold[beginnings[0]] if len(beginnings) == 1 else ""


def did_you_mean(error: str, known: Iterable[str]) -> str:
    """The same as a half sentence, or nothing."""
    found = meant(error, known)
    return f'; did you mean "{found}"?' if found else ""


def number_word(text: str) -> int | None:
    """two is 2."""
    return _NUMBERS.index(text.lower()) if text.lower() in _NUMBERS else None
