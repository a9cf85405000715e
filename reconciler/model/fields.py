"""What a field of a kind says about itself: a sentence, bounds, what it refers to.

A kind is a struct whose fields are annotated with these. The reader, the JSON Schema, the CRD and the reference page
are all walks over the annotations, so none of them can say something that another does not know.
"""

import re

import msgspec


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
