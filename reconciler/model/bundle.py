"""A Bundle: policy and template texts at one revision, their renderings, and the changes of a pull request."""

import re
from typing import Any, Literal

import msgspec

from reconciler.model.problem import Origin, Problem


class Text(msgspec.Struct, frozen=True, gc=False):
    """One file; its path is relative to the root of the bundle, with '/' as separator."""

    path: str
    content: bytes
    place: str = ""  # the location shown to users, if it differs from the path


class Seal(msgspec.Struct, frozen=True):
    """Detects whether texts were edited after they were rendered.

    A seal has no key, so it does not prove that the texts come from the named revision.
    """

    digest: str
    otherwise: str  # the revision to use if the seal does not match; no commit has this revision


class Bundle(msgspec.Struct, frozen=True):
    """All texts of one revision, sorted by path, and the problems of reading them."""

    revision: str
    policies: tuple[Text, ...]
    templates: tuple[Text, ...] = ()
    problems: tuple[Problem, ...] = ()
    by_field: bool = False  # the texts are cluster objects: users locate values by field, not by line
    environment: str = ""  # the only environment of the texts; if empty, folders define environments
    seal: Seal | None = None  # None: the revision is trusted


# --- Revisions in short form. A revision identifies content: a commit, or a digest after `dir:` (files of a folder) or
# `resources:` (custom resources). Short forms are for display only; they are never compared or approved.

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CONTENT = re.compile(r"(dir|resources):[0-9a-f]{64}")
_SHOWN = 12  # characters of a content digest


def short_revision(revision: str) -> str:
    """b7d0a15 for a commit, dir:cfb7d8919f5d for a folder; any other text unchanged."""
    return revision[:7] if _COMMIT.fullmatch(revision) else short_content(revision)


def short_content(revision: str) -> str:
    """dir:cfb7d8919f5d for a folder; a commit in full."""
    if not _CONTENT.fullmatch(revision):
        return revision
    kind, _, digest = revision.partition(":")
    return f"{kind}:{digest[:_SHOWN]}"


# --- Template rendering: requests and results.


class RenderRequest(msgspec.Struct, frozen=True):
    """A template and the values to render it with; `values` is plain JSON data."""

    template: str  # path below the bundle's templates
    values: dict[str, Any]


class Rendering(msgspec.Struct, frozen=True):
    """The rendered text of a request, or the reason for its failure.

    `lines` has, for each line of the text, the template file and line that produced the line.
    """

    text: str = ""
    lines: tuple[tuple[str, int], ...] = ()
    problem: Problem | None = None


# --- Policy changes of a pull request: objects and their changed fields.


class FieldChange(msgspec.Struct, frozen=True, gc=False):
    """A field's values before and after, as written in YAML; None for an item that is added or removed."""

    path: str  # below spec: taints, minGPUUtilizationPercent, instanceTypes[p4d.24xlarge].pricePerHour.on-demand
    before: str | None
    after: str | None
    origin: Origin  # its position in head; if it is removed, its position in base


class PolicyChange(msgspec.Struct, frozen=True, gc=False):
    """An object that is added, changed or removed."""

    kind: str
    name: str
    verb: Literal["add", "change", "remove"]
    origin: Origin
    fields: tuple[FieldChange, ...]
