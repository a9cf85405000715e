"""The reference of reasons: each code with the class of a hold, its facts and their types, and its sentence."""

from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.obstacle import Obstacle
from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import Facts, Reason
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import Declared

_OPENING = """\
# Reasons

Why something is done, or is not: each decision of a plan bears one of these codes. `plan -o json` has it with its
facts, `explain` tells the sentence. This page is written by `make generate`.

The second column is the class of a hold with this reason. `blocked`: a person must act before it goes on, and the
command ends with [exit code 4](exit-codes.md). `waiting`: it waits for a timer, a window, demand or a read, and goes on
by itself. `waiting, held`: it waits until a person takes back what they asked for, such as a freeze, or does something.
Reports list what is blocked or held under "Held", and what goes on by itself under "Waiting".

What stands in braces in a sentence is a fact, or is made of several. The facts of a code and their types are in the
third column, as `plan -o json` has them:

- text, number, true or false: as in JSON. Where several texts are listed, the fact is one of them.
- time: RFC 3339, `2026-11-18T14:52:00Z`.
- object: `kind`, `namespace`, `name` and `uid`, each a text.
- reason: `reason`, its code; `facts`, its facts; and `sentence`. The cause, or the reason of what is held.
- list: of what is named.
- What stands in parentheses after a fact is the fields of an object of JSON.

A fact with a question mark is left out where there is nothing to tell.
"""
_SIMPLE: dict[Any, str] = {
    str: "text",
    Obstacle: "text",
    int: "number",
    bool: "true or false",
    Instant: "time",
    Ref: "object",
    Reason: "reason",
    Facts: "facts of a code",
}


def reasons_page() -> str:
    """Every reason by its code; what stands in braces differs from case to case."""
    rows = [
        f"| `{code}` | {_class(each)} | {_cell(facts_of(each))} | {_cell(_sentence(each))} |"
        for code, each in sorted(REASONS.items())
    ]
    return "\n".join((_OPENING, "| code | hold | facts | sentence |", "|---|---|---|---|", *rows)) + "\n"


def facts_of(declared: Declared) -> str:
    """Names and types, in the order in which they are declared."""
    return ", ".join(_fields(declared))


def _fields(of: Any) -> list[str]:
    hints = get_type_hints(of)
    return [_field(each.name, hints[each.name]) for each in msgspec.structs.fields(of)]


def _field(name: str, hint: Any) -> str:
    kinds = [each for each in get_args(hint) if each is not type(None)] if _is_union(hint) else [hint]
    optional = "?" if _is_union(hint) and type(None) in get_args(hint) else ""
    return f"{name}{optional}: {' or '.join(map(form_of, kinds))}"


def form_of(hint: Any) -> str:
    """The type of a fact, in words."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if get_origin(hint) is tuple:
        kinds = [each for each in get_args(hint) if each is not Ellipsis]
        return f"list of {', '.join(map(form_of, kinds))}"
    if get_origin(hint) is Literal:
        return " or ".join(f"`{each}`" for each in get_args(hint))
    if _is_union(hint):
        return " or ".join(form_of(each) for each in get_args(hint) if each is not type(None))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " or ".join(f"`{each.value}`" for each in hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"({', '.join(_fields(hint))})"
    return str(hint)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in {Union, UnionType}


def _sentence(declared: Declared) -> str:
    """How a fact is written is no concern of a reader: {until:time} is {until}."""
    pieces = declared.template.split("{")
    rest = (piece.partition("}") for piece in pieces[1:])
    return pieces[0] + "".join(f"{{{name.partition(':')[0]}}}{after}" for name, _, after in rest)


def _class(declared: Declared) -> str:
    return f"{declared.hold}, held" if declared.by_person else declared.hold


def _cell(text: str) -> str:
    """A vertical bar would end it, and Markdown must not read anything into the rest."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
