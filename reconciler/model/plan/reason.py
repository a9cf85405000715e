"""Why something is done, or is not: the typed facts of one code, and the line of policy that asked for it.

Each planner declares its codes as classes of facts, with the template of their sentence (plan/*/reasons.py). A sentence
is made where a person reads it (report/sentences.py), and is never read back.
"""

from typing import Any, ClassVar, Literal

import msgspec

from reconciler.model.origin import Origin

HoldClass = Literal["blocked", "waiting"]


class Facts:
    """What any reason tells. A decoder is told by plan/reason_catalog.py which class a code has."""

    __slots__ = ()

    # Of the sentence: {field}, {field:time}, {field:minutes} for seconds, {field:noun} for a number and what it counts;
    # and what is said where there is none: {field:time|for ever}.
    template: ClassVar[str] = ""
    while_held: ClassVar[str] = ""  # of what a guard holds: without times that only come once a person lets it go
    hold: ClassVar[HoldClass] = "waiting"  # the class of a hold with these facts
    by_person: ClassVar[bool] = False  # a hold that is waiting lasts until a person acts

    @property
    def code(self) -> str:
        """The name of the class: part of every published format."""
        return type(self).__name__

    def fields(self) -> dict[str, Any]:
        """By name, as they are."""
        return {name: getattr(self, name) for name in self.__struct_fields__}  # type: ignore[attr-defined]


class CodeFacts(msgspec.Struct, Facts, frozen=True, gc=False, tag_field="code", tag=True, omit_defaults=True):
    """The base of each code: its fields are the facts, its name is the code."""


class Reason(msgspec.Struct, frozen=True, gc=False):
    """The facts of one code, and where they come from."""

    facts: Facts
    origin: Origin | None = None

    @property
    def code(self) -> str:
        return self.facts.code
