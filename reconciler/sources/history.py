"""The inputs of plans that acted, kept on a volume for some days, so that what was decided can be asked about
later.
"""

import os
import stat
import zlib
from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from reconciler import __version__
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs, Succession, Successor, successor
from reconciler.plan.files.dump import canonical
from reconciler.plan.files.format_1 import Inputs1, decoded_1, skimmed, with_typed_hints
from reconciler.plan.files.valid_names import why_invalid
from reconciler.plan.reason_catalog import decoded
from reconciler.sources.input_file import UnfitFile

# --- What stands in a file of the history: records one after another, the first whole, the others as differences.
#
# A record is its length and its checksum, four bytes each, and then JSON, compressed. A file whose writer was killed
# ends in the middle of a record: what stands before that is good.

SUFFIX = ".history"
_HEAD_BYTES = 8
_MOST_WRITTEN_BYTES = 1 << 30  # of one record
_MOST_BYTES = 8 << 30  # of the same as JSON


FORMAT = 2


class HistoryRecord(msgspec.Struct, frozen=True):
    """The inputs of one plan, and what came of them."""

    digest: str  # of the plan
    version: str  # of the reconciler that made it
    told: Successor
    format: int = 1  # where a file does not say it: facts of reasons had no types

    @property
    def at(self) -> Instant:
        return self.told.inputs.now


class _RecordFormat(msgspec.Struct, frozen=True):
    format: int = 1


class _Told1(msgspec.Struct, frozen=True):
    inputs: Inputs1


class _Record1(msgspec.Struct, frozen=True):
    told: _Told1


def framed(record: HistoryRecord) -> bytes:
    """As it is written."""
    content = zlib.compress(msgspec.json.encode(record))
    return len(content).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big") + content


def records(file: Path) -> Iterator[HistoryRecord]:
    """All that are whole. Raises msgspec.MsgspecError where another version wrote what this one can't read."""
    with open(file, "rb", opener=_regular) as content:
        while len(head := content.read(_HEAD_BYTES)) == _HEAD_BYTES:
            length, checksum = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            text = content.read(length) if length <= _MOST_WRITTEN_BYTES else b""
            if len(text) < length or zlib.crc32(text) != checksum:
                return
            yield _record(_decompressed(text))


def _record(text: bytes) -> HistoryRecord:
    """Raises msgspec.MsgspecError."""
    written = msgspec.json.decode(text, type=_RecordFormat).format
    if written > FORMAT:
        raise msgspec.ValidationError(f"a record has format {written}, and this version reads up to {FORMAT}")
    if written == FORMAT:
        return decoded(text, HistoryRecord)
    record, before = decoded_1(text, HistoryRecord), skimmed(text, _Record1)
    inputs = with_typed_hints(record.told.inputs, before.told.inputs if before is not None else None)
    return msgspec.structs.replace(record, told=msgspec.structs.replace(record.told, inputs=inputs))


def _regular(file: str, flags: int) -> int:
    """Raises UnfitFile: a FIFO of such a name would never end."""
    descriptor = os.open(file, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFile(file, "it is no regular file", "take it out of the folder of the history")
    return descriptor


def _decompressed(text: bytes) -> bytes:
    """Raises msgspec.DecodeError where it is no compressed text, or would fill the memory."""
    unpacking = zlib.decompressobj()
    try:
        result = unpacking.decompress(text, _MOST_BYTES)
    except zlib.error as fault:
        raise msgspec.DecodeError(f"it is not compressed as it was written: {fault}") from fault
    if not unpacking.eof:
        raise msgspec.DecodeError(f"it is larger than {_MOST_BYTES >> 30} GiB, or cut off")
    return result


def began_at(file: Path) -> Instant:
    """When its first plan was made; its name says so."""
    return Instant(int(file.name.partition("-")[0]))


def files(folder: Path) -> list[Path]:
    """Oldest first."""
    found = [each for each in folder.glob(f"*{SUFFIX}") if each.name.partition("-")[0].isdecimal()]
    return sorted(found, key=lambda each: (began_at(each), each.name))


# --- What was kept, read again: the inputs of plans, in the order in which they were made.

_BEGINNING = Instant(0)


class RecordedInputs(msgspec.Struct, frozen=True):
    """The inputs of a plan, its digest, and the version of reconciler that made it."""

    inputs: Inputs
    digest: str
    version: str


class NotKept(ValueError):
    """There is nothing to answer from; the sentence says what there is."""


def kept(folder: Path, since: Instant = _BEGINNING, until: Instant | None = None) -> Iterator[RecordedInputs]:
    """All of a time, the oldest first. Raises NotKept."""
    found = files(folder)
    if not found:
        raise NotKept(f"no history is kept in {folder}")
    for file, following in zip_longest(found, found[1:]):
        if (until is not None and began_at(file) > until) or (following and began_at(following) <= since):
            continue
        succession = Succession()
        for record in _records(file):
            if why := why_invalid(record.told.inputs):
                raise NotKept(f"{file.name} is no history that reconciler writes: {why}")
            inputs = succession.take(record.told)
            if inputs.now >= since and (until is None or inputs.now <= until):
                yield RecordedInputs(inputs, record.digest, record.version)


def kept_at(folder: Path, at: Instant) -> RecordedInputs:
    """Of the last plan that acted by then. Raises NotKept."""
    found = files(folder)
    before = [file for file in found if began_at(file) <= at]
    if not before:
        first = f"it begins at {timestamp(began_at(found[0]))}" if found else f"no history is kept in {folder}"
        raise NotKept(f"nothing is kept of {timestamp(at)}: {first}")
    found_last = deque(kept(folder, since=began_at(before[-1]), until=at), maxlen=1)
    if not found_last:
        raise NotKept(f"the file {before[-1].name} of the history holds no whole record")
    return found_last[0]


def _records(file: Path) -> Iterator[HistoryRecord]:
    try:
        yield from records(file)
    except msgspec.MsgspecError as fault:
        raise NotKept(
            f"{file.name} can't be read by this version of reconciler: {fault}; read it with the version that wrote it"
        ) from fault


# --- Keeps the inputs of plans; a History is the owner of the file that it writes, and of how much is kept in all.

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
