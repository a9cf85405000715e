"""History: inputs of plans with actions, stored on a volume for some days, to explain past decisions."""

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

# --- Format of a history file: a sequence of records, the first complete, the others as differences.
#
# A record is its length and its checksum, four bytes each, and compressed JSON. If a writer was killed, the file ends
# within a record; earlier records are valid.

SUFFIX = ".history"
_HEAD_BYTES = 8
_MOST_WRITTEN_BYTES = 1 << 30  # of one record
_MOST_BYTES = 8 << 30  # of the same as JSON


FORMAT = 2


class HistoryRecord(msgspec.Struct, frozen=True):
    """Inputs of one plan, and its digest."""

    digest: str  # of the plan
    version: str  # of the reconciler that made the plan
    told: Successor
    format: int = 1  # 1 if the file does not say: facts of reasons had no types

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
    """The record in its file format."""
    content = zlib.compress(msgspec.json.encode(record))
    return len(content).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big") + content


def records(file: Path) -> Iterator[HistoryRecord]:
    """All complete records. Raises msgspec.MsgspecError if this version cannot read them."""
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
    """Opens a regular file. Raises UnfitFile: reading a FIFO of this name would never end."""
    descriptor = os.open(file, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFile(file, "it is not a regular file", "remove it from the history folder")
    return descriptor


def _decompressed(text: bytes) -> bytes:
    """Raises msgspec.DecodeError if the text is not compressed, or would exceed the memory."""
    unpacking = zlib.decompressobj()
    try:
        result = unpacking.decompress(text, _MOST_BYTES)
    except zlib.error as fault:
        raise msgspec.DecodeError(f"the compressed data is damaged: {fault}") from fault
    if not unpacking.eof:
        raise msgspec.DecodeError(f"the record is larger than {_MOST_BYTES >> 30} GiB, or truncated")
    return result


def began_at(file: Path) -> Instant:
    """Time of its first plan, from its name."""
    return Instant(int(file.name.partition("-")[0]))


def files(folder: Path) -> list[Path]:
    """History files, oldest first."""
    found = [each for each in folder.glob(f"*{SUFFIX}") if each.name.partition("-")[0].isdecimal()]
    return sorted(found, key=lambda each: (began_at(each), each.name))


# --- Reads recorded inputs, in the order in which plans were made.

_BEGINNING = Instant(0)


class RecordedInputs(msgspec.Struct, frozen=True):
    """Inputs of a plan, its digest, and the version of reconciler that made the plan."""

    inputs: Inputs
    digest: str
    version: str


class NotKept(ValueError):
    """The history has no answer; the message says what it has."""


def kept(folder: Path, since: Instant = _BEGINNING, until: Instant | None = None) -> Iterator[RecordedInputs]:
    """All records of a time range, oldest first. Raises NotKept."""
    found = files(folder)
    if not found:
        raise NotKept(f"{folder} contains no history")
    for file, following in zip_longest(found, found[1:]):
        if (until is not None and began_at(file) > until) or (following and began_at(following) <= since):
            continue
        succession = Succession()
        for record in _records(file):
            if why := why_invalid(record.told.inputs):
                raise NotKept(f"{file.name} is not a history file of reconciler: {why}")
            inputs = succession.take(record.told)
            if inputs.now >= since and (until is None or inputs.now <= until):
                yield RecordedInputs(inputs, record.digest, record.version)


def kept_at(folder: Path, at: Instant) -> RecordedInputs:
    """The last plan with actions up to this time. Raises NotKept."""
    found = files(folder)
    before = [file for file in found if began_at(file) <= at]
    if not before:
        first = f"the history begins at {timestamp(began_at(found[0]))}" if found else f"{folder} contains no history"
        raise NotKept(f"no record for {timestamp(at)}: {first}")
    found_last = deque(kept(folder, since=began_at(before[-1]), until=at), maxlen=1)
    if not found_last:
        raise NotKept(f"the history file {before[-1].name} contains no complete record")
    return found_last[0]


def _records(file: Path) -> Iterator[HistoryRecord]:
    try:
        yield from records(file)
    except msgspec.MsgspecError as fault:
        raise NotKept(
            f"{file.name} cannot be read by this version of reconciler: {fault}; use the version that wrote it"
        ) from fault


# --- Writes the history. A History owns its current file, and the retention.

_DAY_MS = 24 * 3600 * 1000


class HistoryRetention(msgspec.Struct, frozen=True):
    """Retention: the oldest files are deleted first."""

    total_bytes: int = 1 << 30
    kept_ms: int = 7 * _DAY_MS
    file_records: int = 500  # a file is read from its start
    file_ms: int = _DAY_MS


class History:
    """Written by one process at a time; earlier files stay until their retention ends."""

    def __init__(self, folder: Path, bounds: HistoryRetention | None = None) -> None:
        self._folder = folder
        self._bounds = bounds or HistoryRetention()
        self._file: Path | None = None
        self._before: Inputs | None = None  # inputs of the last record of the file
        self._written = 0  # number of its records

    def keep(self, inputs: Inputs, digest: str) -> None:
        """Appends a record durably. Raises OSError; later calls may succeed."""
        file, before = self._file, self._before
        if file is None or before is None or self._is_full(file, inputs.now):
            file, before, self._written = self._folder / f"{inputs.now}-{os.getpid()}{SUFFIX}", None, 0
        self._file = self._before = None  # a failure may leave half a record: the next call begins a new file
        delta = successor(before, inputs)
        safe = canonical(delta.inputs)  # no secrets on the volume
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
        """The current file is never deleted, whatever its size: the limit applies once it is full."""
        kept = files(self._folder)
        total_bytes = coming_bytes + sum(each.stat().st_size for each in kept)
        for file, following in zip_longest(kept, kept[1:]):
            ended_at = began_at(following) if following else now  # a file ends, at the latest, where the next begins
            is_old = now - ended_at > self._bounds.kept_ms
            if file != current and (is_old or total_bytes > self._bounds.total_bytes):
                total_bytes -= file.stat().st_size
                file.unlink(missing_ok=True)


def _for_its_owner(file: str, flags: int) -> int:
    """Opens a file only its owner can read, whatever the umask: it contains a cluster."""
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor
