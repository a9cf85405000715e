"""Keeps the inputs of plans; a History is the owner of the file that it writes, and of how much is kept in all."""

import os
from itertools import zip_longest
from pathlib import Path

import msgspec

from reconciler import __version__
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.inputs_delta import successor
from reconciler.plan.files.dump import canonical
from reconciler.sources.history.records import FORMAT, SUFFIX, HistoryRecord, began_at, files, framed

_DAY_MS = 24 * 3600 * 1000


class HistoryRetention(msgspec.Struct, frozen=True):
    """How much is kept: the oldest files go first."""

    total_bytes: int = 1 << 30
    kept_ms: int = 7 * _DAY_MS
    file_records: int = 500  # a file is read from its start
    file_ms: int = _DAY_MS


class History:
    """One process writes here at a time; files of those before it stay until they are too old."""

    def __init__(self, folder: Path, bounds: HistoryRetention | None = None) -> None:
        self._folder = folder
        self._bounds = bounds or HistoryRetention()
        self._file: Path | None = None
        self._before: Inputs | None = None  # what the last record of the file was of
        self._written = 0  # records in it

    def keep(self, inputs: Inputs, digest: str) -> None:
        """After this it can be read again, though the process be killed. Raises OSError; the next may be kept again."""
        file, before = self._file, self._before
        if file is None or before is None or self._is_full(file, inputs.now):
            file, before, self._written = self._folder / f"{inputs.now}-{os.getpid()}{SUFFIX}", None, 0
        self._file = self._before = None  # what fails here may have left half a record: the next begins a file
        delta = successor(before, inputs)
        safe = canonical(delta.inputs)  # nothing that may be secret goes onto a volume
        content = framed(HistoryRecord(digest, __version__, msgspec.structs.replace(delta, inputs=safe), FORMAT))
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sweep(file, inputs.now, len(content))
        with open(file, "ab", opener=_for_its_owner) as records:
            records.write(content)
        self._file, self._before = file, inputs
        self._written += 1

    def _is_full(self, file: Path, now: Instant) -> bool:
        return self._written >= self._bounds.file_records or now - began_at(file) > self._bounds.file_ms

    def _sweep(self, current: Path, now: Instant, coming_bytes: int) -> None:
        """The file that is being written stays, whatever its size: the bound then holds when it is full."""
        kept = files(self._folder)
        total_bytes = coming_bytes + sum(each.stat().st_size for each in kept)
        for file, following in zip_longest(kept, kept[1:]):
            ended_at = began_at(following) if following else now  # a file ends, at the latest, where the next begins
            is_old = now - ended_at > self._bounds.kept_ms
            if file != current and (is_old or total_bytes > self._bounds.total_bytes):
                total_bytes -= file.stat().st_size
                file.unlink(missing_ok=True)


def _for_its_owner(file: str, flags: int) -> int:
    """It holds a cluster: nobody else reads it, whatever the umask says."""
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
