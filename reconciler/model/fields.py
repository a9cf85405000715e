"""Annotations of the fields of a kind, and the common status."""

import re
from typing import Annotated, Literal

import msgspec

# --- Annotations of a field: description, bounds, references.
#
# A kind is a struct whose fields have these annotations. The reader, the JSON Schema, the CRD and the reference page
# are all generated from the annotations, so they cannot disagree.


class Says(msgspec.Struct, frozen=True):
    """The description of a field: one sentence."""

    sentence: str


class Within(msgspec.Struct, frozen=True):
    """Minimum and maximum of a number, or of the length of a list, map or string."""

    least: int | None = None
    most: int | None = None


class Shaped(msgspec.Struct, frozen=True):
    """The pattern of a string, and its description."""

    pattern: str
    words: str


class Refers(msgspec.Struct, frozen=True):
    """The string is the name of an object of the kind; `*` stands for all objects if `all_as_star`."""

    kind: str
    all_as_star: bool = False


class KeyPattern(msgspec.Struct, frozen=True):
    """The pattern of the keys of a map."""

    pattern: str
    words: str


class Unit(msgspec.Struct, frozen=True):
    """The unit of a number, for the reference."""

    name: str


class MergeKey(msgspec.Struct, frozen=True):
    """The fields that identify an item of a list: two items with equal keys are an error.

    If the order of items matters, the list is atomic: two writers must not interleave their items.
    """

    names: tuple[str, ...]
    ordered: bool = False


# An object's name is a DNS subdomain (RFC 1123) of at most 253 characters. Namespaces and label values have at most 63
# characters: a name that becomes one of these is limited with `Within`.
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
RFC_3339 = Shaped(
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$",
    'a time in quotes, such as "2026-11-02T08:00:00Z"',
)
LABEL_VALUE = Shaped(
    r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    "a label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit at both ends",
)


def why_no_name(text: str, most: int = LONGEST_NAME) -> str:
    """The violated requirement of a name; empty if the text is a valid name."""
    if not re.fullmatch(NAME.pattern, text):
        return NAME.words
    return f"at most {most} characters" if len(text) > most else ""


# --- The status of every kind: the processed generation, and conditions.


class Condition(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A status condition in the form of Kubernetes."""

    type: Annotated[
        str,
        Says("Type of the condition, such as Ready."),
        Within(1, 316),
        Shaped(
            r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
            "a condition's type, such as Ready",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Says("Status of the condition.")]
    observed_generation: Annotated[
        int | None, Says("Generation of the object that the condition refers to."), Within(0, 2**53)
    ] = None
    last_transition_time: Annotated[
        str, Says("Last time the status of the condition changed."), Within(20, 35), RFC_3339
    ]
    reason: Annotated[
        str,
        Says("Machine-readable reason."),
        Within(1, 1024),
        Shaped(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", "a word in CamelCase"),
    ]
    message: Annotated[str, Says("Human-readable reason."), Within(0, 32_768)]


class ObjectStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The processed generation, and conditions."""

    observed_generation: Annotated[
        int | None, Says("Generation of the object that was last read; -1 at first."), Within(most=2**53)
    ] = None
    conditions: Annotated[list[Condition], Says("Conditions of the object."), Within(most=16), MergeKey(("type",))] = (
        msgspec.field(default_factory=list)
    )
    problems: Annotated[list[Annotated[str, Within(0, 1024)]], Says("Problems of the object."), Within(most=100)] = (
        msgspec.field(default_factory=list)
    )


class PolicyStatus(ObjectStatus, frozen=True, rename="camel", kw_only=True):
    """The processed generation of the policy, and conditions."""

    bundle: Annotated[
        str | None,
        Says("Digest of the bundle that this status refers to; absent for an object without a bundle."),
        Within(0, 128),
    ] = None
