"""A Bundle: policy and template texts at one revision, what is rendered from them, and what a pull request
changes.
"""

import re
from typing import Any, Literal

import msgspec

from reconciler.model.problem import Origin, Problem


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


# --- Revisions as people read them. A revision names its content whole: a commit, or a digest behind `dir:` (files of a
# folder) or `resources:` (custom resources). Short forms are for display only; nothing is compared or approved by one.

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTENT = re.compile(r"(dir|resources):[0-9a-f]{64}")
_SHOWN = 12  # of a digest of content


def short_revision(revision: str) -> str:
    """b7d0a15 of a commit, dir:cfb7d8919f5d of a folder; any other text as it is."""
    return revision[:7] if _COMMIT.fullmatch(revision) else short_content(revision)


def short_content(revision: str) -> str:
    """dir:cfb7d8919f5d of a folder; a commit whole."""
    if not _CONTENT.fullmatch(revision):
        return revision
    kind, _, digest = revision.partition(":")
    return f"{kind}:{digest[:_SHOWN]}"


# --- What is asked of a template, and what it yields.


class RenderRequest(msgspec.Struct, frozen=True):
    """One template with the values it is rendered with; `values` is plain JSON data."""

    template: str  # its path in the bundle's templates
    values: dict[str, Any]


class Rendering(msgspec.Struct, frozen=True):
    """The text that came of a request, or why none did.

    `lines` has, for each line of the text, the template file and line it came from.
    """

    text: str = ""
    lines: tuple[tuple[str, int], ...] = ()
    problem: Problem | None = None


# --- What a pull request changes in the policies: objects, and below them the fields that say something else.


class FieldChange(msgspec.Struct, frozen=True, gc=False):
    """A field in the words that people write; None is where it says nothing: an item that is added, or taken out."""

    path: str  # below spec: taints, minGPUUtilizationPercent, instanceTypes[p4d.24xlarge].pricePerHour.on-demand
    before: str | None
    after: str | None
    origin: Origin  # where it is written now; where it was, if it is taken out


class PolicyChange(msgspec.Struct, frozen=True, gc=False):
    """An object that is added, changed or taken out."""

    kind: str
    name: str
    verb: Literal["add", "change", "remove"]
    origin: Origin
    fields: tuple[FieldChange, ...]
