"""A Bundle: the policy and template texts at one revision."""

import msgspec

from reconciler.model.problem import Problem


class Text(msgspec.Struct, frozen=True, gc=False):
    """One file as it was read; its path is relative to where the bundle was found, with '/' between its parts."""

    path: str
    content: bytes
    place: str = ""  # where a person finds it, if that is another than its path


class Seal(msgspec.Struct, frozen=True):
    """By which one can tell whether texts were edited since they were rendered. A seal has no key: it does not prove
    that the revision is where the texts come from."""

    digest: str
    otherwise: str  # the revision that they have where they don't: nobody has seen that commit say so


class Bundle(msgspec.Struct, frozen=True):
    """All texts of one revision, sorted by path, and what went wrong in reading them."""

    revision: str
    policies: tuple[Text, ...]
    templates: tuple[Text, ...] = ()
    problems: tuple[Problem, ...] = ()
    by_field: bool = False  # its texts are objects of a cluster: people find things there by field, and not by line
    environment: str = ""  # the only one that they are of; else their folders tell
    seal: Seal | None = None  # None: their revision is theirs without question
