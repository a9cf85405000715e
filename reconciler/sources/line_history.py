"""Who last changed some lines of policies: a bounded walk of our own over the commits of a repository.

Theory of operation. A line of a file at a commit is looked for in the parents of the commit. Where a parent has the
same file, or has the line unchanged at the place that it moved from, the walk goes on there (the first such parent of
a merge); where none has it, the commit is the one that wrote the line. Files are compared by the longest common
subsequence of what lies between their common beginning and end. A file that was renamed was written by the commit
that renamed it.

Every step is bounded: commits, time, and the size of what is compared. A walk that meets a bound, or the end of a
shallow clone, says before which commit it knows nothing.
"""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from reconciler.model.last_change import LastChange
from reconciler.model.origin import Origin
from reconciler.sources.fault import Refused
from reconciler.sources.file_names import shown
from reconciler.sources.repository.commits import Commits
from reconciler.sources.repository.layout import Unfit

MOST_LINES = 5  # that one question is about
MOST_COMMITS = 20_000
MOST_COMPARED = 1_000_000  # pairs of lines
LONGEST_TEXT = 200  # characters of a name or a subject


class _BlobLine(msgspec.Struct, frozen=True):
    """A line of a file as one commit has it: `file` is the id of the blob, `line` counts from 0."""

    commit: str
    file: str
    line: int


class LineHistory:
    """Walks the history of one repository until a time of the monotonic clock; owner of the lines that it read last."""

    def __init__(self, commits: Commits, largest_bytes: int, until: float) -> None:
        self._commits = commits
        self._largest_bytes = largest_bytes
        self._until = until
        self._lines: dict[str, list[bytes]] = {}

    def last_change(self, origin: Origin) -> LastChange | None:
        """Of a line at its revision; None where the revision has no such line."""
        try:
            file = self._commits.file_at(origin.revision, origin.file)
            if not file or not 0 < origin.line <= len(self._lines_of(file)):
                return None
        except (Refused, Unfit):
            return LastChange(origin, unknown_before=origin.revision)
        place = _BlobLine(origin.revision, file, origin.line - 1)
        for _ in range(MOST_COMMITS):
            try:
                before = self._before(place, origin.file)
                if before is None:
                    return self._last_change(origin, place.commit)
            except Exception:  # noqa: BLE001 - what a broken commit does to the library is of any class
                break
            place = before
        return LastChange(origin, unknown_before=place.commit)

    def _before(self, place: _BlobLine, path: str) -> _BlobLine | None:
        """Where the line comes from, one commit earlier; None where the commit wrote it."""
        if time.monotonic() > self._until:
            raise Unfit("it takes long")
        parents = self._commits.parents(place.commit)
        files = [(parent, self._commits.file_at(parent, path)) for parent in parents]
        for parent, file in files:
            if file == place.file:
                return _BlobLine(parent, file, place.line)
        for parent, file in files:
            if file:
                line = place_before(self._lines_of(place.file), self._lines_of(file), place.line)
                if line is not None:
                    return _BlobLine(parent, file, line)
        return None

    def _lines_of(self, file: str) -> list[bytes]:
        if file not in self._lines:
            if len(self._lines) >= 2 * MOST_LINES:
                self._lines.clear()
            self._lines[file] = self._commits.contents([file], self._largest_bytes)[file].splitlines()
        return self._lines[file]

    def _last_change(self, origin: Origin, commit: str) -> LastChange:
        written = self._commits.written(commit)
        return LastChange(origin, commit, _short(written.author), _day(written.seconds), _short(written.subject))


def place_before(after: Sequence[bytes], before: Sequence[bytes], line: int) -> int | None:
    """Where a line stood in the file before; None where it was not there. Raises Unfit where that takes too long."""
    head = _common(lambda number: after[number] == before[number], min(len(after), len(before)))
    if line < head:
        return line
    rest = min(len(after), len(before)) - head
    tail = _common(lambda number: after[-1 - number] == before[-1 - number], rest)
    if line >= len(after) - tail:
        return line - len(after) + len(before)
    new, old = after[head : len(after) - tail], before[head : len(before) - tail]
    if after[line] not in old:
        return None
    if len(new) * len(old) > MOST_COMPARED:
        raise Unfit("too many lines changed at once")
    found = _in_common(new, old, line - head)
    return None if found is None else head + found


def _common(is_same: Callable[[int], bool], most: int) -> int:
    return next((number for number in range(most) if not is_same(number)), most)


def _in_common(new: Sequence[bytes], old: Sequence[bytes], line: int) -> int | None:
    """The partner of a line in a longest common subsequence."""
    # lengths[i][j]: of the longest common subsequence of new[i:] and old[j:]
    lengths = [[0] * (len(old) + 1) for _ in range(len(new) + 1)]
    for i in range(len(new) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(len(old) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if new[i] == old[j] else max(below[j], row[j + 1])
    i = j = 0
    while i <= line and j < len(old):
        if new[i] == old[j]:
            if i == line:
                return j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return None


def _short(text: str) -> str:
    """One line, and not endless: names and subjects may be anything."""
    text = shown(" ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _day(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""
