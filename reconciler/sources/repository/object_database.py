"""GitDB with limits: GitPython's object database without processes, for repositories that may be hostile.

GitDB trusts a pack: it follows a delta based on itself forever, and allocates announced sizes. Therefore the headers
of an object and of all its bases are read first, a few bytes each, and an object that is too large, or too far from
its base, is not read (Unfit). The content must match the requested id. Alternates are not read.
"""

import hashlib
import io
import os
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import gitdb  # type: ignore[import-untyped]
import gitdb.util  # type: ignore[import-untyped]
import msgspec
from gitdb.base import OStream  # type: ignore[import-untyped]
from gitdb.db.loose import LooseObjectDB  # type: ignore[import-untyped]
from gitdb.db.pack import PackedDB  # type: ignore[import-untyped]
from gitdb.db.ref import ReferenceDB  # type: ignore[import-untyped]

from reconciler.sources.directory import OPENING
from reconciler.sources.repository.address import Unfit

LARGEST_OBJECT_BYTES = 4 << 20  # of an object whose content is read, and of all its deltas
LARGEST_LOOSE_BYTES = 64 << 20  # of a file whose header is read: zlib copies the unused rest
MOST_LINKS = 300  # from an object to its base; git makes chains of 50, and of 250 when packing aggressively

OFS_DELTA, REF_DELTA = 6, 7
_WHOLE = frozenset({1, 2, 3, 4})
_LONGEST_NUMBER = 10  # bytes of a size or an offset
_HEADER_BYTES = 2 * _LONGEST_NUMBER + 20
_DELTA_HEADER_BYTES = 2 * _LONGEST_NUMBER


class _Header(msgspec.Struct, frozen=True):
    kind: int
    size: int
    data_at: int
    base_at: int = 0
    base_id: bytes = b""


class BoundedPacks(PackedDB):  # type: ignore[misc]
    """Packs of a repository."""

    def __init__(self, root_path: str) -> None:
        super().__init__(root_path)
        self._files: dict[str, int] = {}

    def info(self, sha: bytes) -> Any:
        self._check(sha, is_read=False)
        return super().info(sha)

    def stream(self, sha: bytes) -> Any:
        self._check(sha, is_read=True)
        return super().stream(sha)

    def close(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        for entity in self.entities():
            entity.close()

    def _check(self, sha: bytes, is_read: bool) -> None:
        """Follows an object to its base. Raises Unfit if the chain is too long or the content too large."""
        entity, number = self._pack_info(sha)
        pack = self._opened(entity.pack().path())
        place = entity.index().offset(number)
        deltas_bytes = 0
        for _ in range(MOST_LINKS):
            header = _header(pack, place)
            deltas_bytes += header.size
            if is_read and deltas_bytes > LARGEST_OBJECT_BYTES:
                raise Unfit("an object is large")
            if header.kind in _WHOLE:
                return
            if is_read:
                _check_delta(pack, header)
            place = header.base_at
            if header.kind == REF_DELTA:
                base = entity.index().sha_to_index(header.base_id)
                if base is None:
                    raise Unfit("a delta has no base")
                place = entity.index().offset(base)
        raise Unfit("an object is far from its base")

    def _opened(self, path: str) -> int:
        if path not in self._files:
            descriptor = os.open(path, OPENING)
            self._files[path] = descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unfit("a pack is no file")
        return self._files[path]


class BoundedLoose(LooseObjectDB):  # type: ignore[misc]
    """Loose objects of a repository."""

    def info(self, sha: bytes) -> Any:
        self._check(sha, LARGEST_LOOSE_BYTES)
        return super().info(sha)

    def stream(self, sha: bytes) -> Any:
        self._check(sha, LARGEST_OBJECT_BYTES)
        if super().info(sha).size > LARGEST_OBJECT_BYTES:
            raise Unfit("an object is large")
        return super().stream(sha)

    def _check(self, sha: bytes, most_bytes: int) -> None:
        path = Path(self.db_path(self.object_path(sha.hex())))
        with suppress(FileNotFoundError):  # the library reports it
            status = path.lstat()
            is_plain = stat.S_ISREG(status.st_mode) and stat.S_ISDIR(path.parent.lstat().st_mode)
            if not is_plain or status.st_size > most_bytes:
                raise Unfit("an object is no small file")


class NoAlternates(ReferenceDB):  # type: ignore[misc]
    """Refuses alternates: objects of another repository are not read."""

    def __init__(self, ref_file: str) -> None:
        raise Unfit("it has alternates")


class BoundedGitDB(gitdb.GitDB):  # type: ignore[misc]
    """All objects of a repository. Content is kept in memory and matches its id."""

    PackDBCls = BoundedPacks
    LooseDBCls = BoundedLoose
    ReferenceDBCls = NoAlternates

    def __init__(self, root_path: str) -> None:
        super().__init__(root_path)
        self._last = (b"", b"", b"")  # id, kind and content of the last object, which the library reads again

    def stream(self, sha: bytes) -> Any:
        if self._last[0] != sha:
            self._last = (sha, *self._read(sha))
        _, kind, content = self._last
        return OStream(sha, kind, len(content), io.BytesIO(content))

    def _read(self, sha: bytes) -> tuple[bytes, bytes]:
        found = super().stream(sha)
        content = found.read()
        kind = bytes(found.type)
        identity = hashlib.sha1(b"%b %d\0" % (kind, len(content)), usedforsecurity=False)
        identity.update(content)
        if identity.digest() != sha:
            raise Unfit("an object is not what its id says")
        return kind, content

    def close(self) -> None:
        """Releases files and memory, which the library would keep."""
        for database in self.databases():
            if isinstance(database, BoundedPacks):
                database.close()
        gitdb.util.mman.collect()


def _header(pack: int, place: int) -> _Header:
    data = os.pread(pack, _HEADER_BYTES, place)
    if place <= 0 or not data:
        raise Unfit("an object is beyond its pack")
    kind = (data[0] >> 4) & 7
    size, end = data[0] & 15, 1
    if data[0] & 0x80:
        more, end = _number(data, 1)
        size |= more << 4
    if kind in _WHOLE:
        return _Header(kind, size, place + end)
    if kind == REF_DELTA:
        return _Header(kind, size, place + end + 20, base_id=data[end : end + 20])
    if kind != OFS_DELTA:
        raise Unfit("an object is of no known kind")
    back, end = _offset(data, end)
    if not 0 < back < place:
        raise Unfit("a delta is not based on what is before it")
    return _Header(kind, size, place + end, base_at=place - back)


def _check_delta(pack: int, header: _Header) -> None:
    """Checks the sizes announced by a delta, of its base and of its result."""
    data = zlib.decompressobj().decompress(os.pread(pack, 256, header.data_at), _DELTA_HEADER_BYTES)
    before, end = _number(data, 0)
    after, _ = _number(data, end)
    if max(before, after) > LARGEST_OBJECT_BYTES:
        raise Unfit("an object is large")


def _number(data: bytes, start: int) -> tuple[int, int]:
    """A number in groups of seven bits, lowest first, and its end."""
    value = 0
    for end, byte in enumerate(data[start : start + _LONGEST_NUMBER], start=1):
        value |= (byte & 0x7F) << 7 * (end - 1)
        if not byte & 0x80:
            return value, start + end
    raise Unfit("a number has no end")


def _offset(data: bytes, start: int) -> tuple[int, int]:
    """A number in groups of seven bits, highest first, each further group adding one; and its end."""
    value = -1
    for end, byte in enumerate(data[start : start + _LONGEST_NUMBER], start=1):
        value = (value + 1) << 7 | (byte & 0x7F)
        if not byte & 0x80:
            return value, start + end
    raise Unfit("a number has no end")
