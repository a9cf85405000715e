"""Metadata of the fields of a kind, and the status that every kind has."""

import re
from typing import Annotated, Literal

import msgspec

# --- What a field of a kind says about itself: a sentence, bounds, what it refers to.
#
# A kind is a struct whose fields are annotated with these. The reader, the JSON Schema, the CRD and the reference page
# are all walks over the annotations, so none of them can say something that another does not know.


class Says(msgspec.Struct, frozen=True):
    """One sentence: what the field is for."""

    sentence: str


class Within(msgspec.Struct, frozen=True):
    """Least and greatest value of a number, or length of a list, a map or a text."""

    least: int | None = None
    most: int | None = None


class Shaped(msgspec.Struct, frozen=True):
    """A pattern for a text, and the words for it."""

    pattern: str
    words: str


class Refers(msgspec.Struct, frozen=True):
    """The text is the name of an object of that kind; `*` may stand for all of them where `all_as_star`."""

    kind: str
    all_as_star: bool = False


class KeyPattern(msgspec.Struct, frozen=True):
    """What the keys of a map look like."""

    pattern: str
    words: str


class Unit(msgspec.Struct, frozen=True):
    """What a number counts, for the reference."""

    name: str


class MergeKey(msgspec.Struct, frozen=True):
    """Items of a list are told apart by these of their fields: two that agree in all are a mistake.

    Where the order of items says something, the list is one whole: two writers must not interleave theirs.
    """

    names: tuple[str, ...]
    ordered: bool = False


# A name of an object is a DNS subdomain (RFC 1123): only its whole length is limited, to 253. Namespaces and values of
# labels have at most 63 characters: a name that becomes one of these says so with `Within`.
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LONGEST_NAME = 253
LONGEST_LABEL_VALUE = 63
NAME = Shaped(rf"^{_PART}(\.{_PART})*$", "lower case letters, digits, '-' and '.'")
NAME_OR_STAR = Shaped(rf"^(\*|{_PART}(\.{_PART})*)$", "the name of an object, or *")
NAMESPACE = Shaped(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "at most 63 lower case letters, digits and '-'")
LABEL_KEY = KeyPattern(
    r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    "a label key, such as example.com/team",
)
LABEL_VALUE = Shaped(
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    "a label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends",
)


def why_no_name(text: str, most: int = LONGEST_NAME) -> str:
    """What a name must be that the text is not, in words; nothing when it is a name."""
    if not re.fullmatch(NAME.pattern, text):
        return NAME.words
    return f"at most {most} characters" if len(text) > most else ""


# --- What every kind's status says: how far it was followed, and what stands in the way.


class Condition(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One thing that holds of the object, or does not, in the form that Kubernetes gives conditions."""

    type: Annotated[
        str,
        Says("What may hold: Ready, say."),
        Within(1, 316),
        Shaped(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            "a condition's type, such as Ready",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Says("Whether it holds.")]
    observed_generation: Annotated[
        int | None, Says("The generation of the object that was judged."), Within(0, 2**53)
    ] = None
    last_transition_time: Annotated[
        str,
        Says("When it began to hold, or ceased to."),
        Within(20, 35),
        Shaped(
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$",
            "a time, such as 2026-11-02T08:00:00Z",
        ),
    ]
    reason: Annotated[
        str,
        Says("Why, in one word for programs."),
        Within(1, 1024),
        Shaped(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "one word in CamelCase"),
    ]
    message: Annotated[str, Says("Why, in a sentence for people."), Within(0, 32_768)]


class ObjectStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How far the object was followed, and what stands in the way."""

    observed_generation: Annotated[
        int | None, Says("The generation of the object that was last read; -1 before any was."), Within(most=2**53)
    ] = None
    conditions: Annotated[list[Condition], Says("What holds of the object."), Within(most=16), MergeKey(("type",))] = (
        msgspec.field(default_factory=list)
    )
    problems: Annotated[
        list[Annotated[str, Within(0, 1024)]], Says("What is wrong with it, a sentence each."), Within(most=100)
    ] = msgspec.field(default_factory=list)


class PolicyStatus(ObjectStatus, frozen=True, rename="camel", kw_only=True):
    """How far the policy was followed, and what stands in the way."""

    bundle: Annotated[
        str | None,
        Says("Digest of the bundle that this status speaks of; absent where the object is part of no bundle."),
        Within(0, 128),
    ] = None
