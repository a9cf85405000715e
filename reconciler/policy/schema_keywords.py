"""The JSON Schema keywords that draft-07 and API servers understand alike: of shapes without parts, and of bounds."""

import re
from typing import Any, assert_never

from reconciler.model.fields import NAME, Shaped, Within
from reconciler.policy.bounds import bounded
from reconciler.policy.defaults import default_of
from reconciler.policy.shape import PATTERNS, Choice, Field, Flag, Measured, WholeNumber, Words

Leaf = WholeNumber | Flag | Words | Choice | Measured
Keywords = dict[str, Any]

# A quantity may be written as a number; the digits are those of its pattern.
LEAST_QUANTITY = 0
QUANTITIES_BELOW = 10**18


def leaf(shape: Leaf) -> Keywords:
    """A shape without parts; a quantity as the text that it may be."""
    match shape:
        case WholeNumber(within=within):
            return {"type": "integer", **limits(within, "minimum", "maximum")}
        case Flag():
            return {"type": "boolean"}
        case Choice(values=values):
            return {"type": "string", "enum": list(values)}
        case Measured(measure=measure, words=words):
            pattern = either(words, PATTERNS[measure])
            return {"type": "string", **limits(bounded(shape), "minLength", "maxLength"), "pattern": pattern}
        case Words():
            shaped = form(shape)
            pattern_if_any = {"pattern": shaped.pattern} if shaped else {}
            return {"type": "string", **limits(bounded(shape), "minLength", "maxLength"), **pattern_if_any}
    assert_never(shape)


def form(shape: Words) -> Shaped | None:
    """What a text must look like."""
    if shape.shaped or not shape.refers:
        return shape.shaped
    name = f"the name of a {shape.refers.kind}"
    return (
        Shaped(either(("*",), NAME.pattern), f"{name}, or *")
        if shape.refers.all_as_star
        else Shaped(NAME.pattern, name)
    )


def either(words: tuple[str, ...], pattern: str) -> str:
    """A pattern for some words, or what the other pattern takes."""
    # Not re.escape: what it escapes beyond need, such as a hyphen, other readers of patterns refuse.
    literal = [re.sub(r"([.*+?^${}()|\[\]\\])", r"\\\1", word) for word in words]
    return f"^({'|'.join([*literal, pattern.removeprefix('^').removesuffix('$')])})$" if words else pattern


def limits(within: Within, least: str, most: str) -> Keywords:
    """Bounds under the names that they have for numbers, texts, lists or maps."""
    named = {least: within.least, most: within.most}
    return {name: bound for name, bound in named.items() if bound is not None}


def description(field: Field) -> str:
    """The sentence, and in words the unit and what holds by default."""
    unit = f" Unit: {field.unit}." if field.unit else ""
    default = default_of(field)
    return f"{field.sentence}{unit}{'' if default in (None, {}, []) else f' Default: {in_words(default)}.'}"


def in_words(default: Any) -> str:
    """A default as it would stand in YAML on one line."""
    match default:
        case bool():
            return str(default).lower()
        case list():
            return f"[{', '.join(map(in_words, default))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {in_words(value)}' for name, value in default.items())}}}"
        case "":
            return '""'
        case _:
            return str(default)
