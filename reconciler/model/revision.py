"""Revisions as people read them. A revision names its content whole: a commit, or a digest behind `dir:` (files of a
folder) or `resources:` (custom resources). Short forms are for display only; nothing is compared or approved by one."""

import re

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
