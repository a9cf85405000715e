"""What stands in a file of the history: records one after another, the first whole, the others as differences.

A record is its length and its checksum, four bytes each, and then JSON, compressed. A file whose writer was killed ends
in the middle of a record: what stands before that is good.
"""

import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.inputs_delta import Successor
from reconciler.plan.files.format_1 import Inputs1, decoded_1, skimmed, with_typed_hints
from reconciler.plan.reason_catalog import decoded
from reconciler.sources.input_file import UnfitFile

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
