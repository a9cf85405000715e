"""Packs written by hand, which git itself would never write."""

import hashlib
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

COMMIT, TREE, BLOB, OFS_DELTA, REF_DELTA = 1, 2, 3, 6, 7


def number(value: int) -> bytes:
    """Groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(0x80 | value & 0x7F)
        value >>= 7
    return bytes([*groups, value])


def header(kind: int, size: int) -> bytes:
    """Kind and size of an object, as a pack has them before its data."""
    first = kind << 4 | size & 15
    return bytes([first]) if size < 16 else bytes([0x80 | first]) + number(size >> 4)


def entry(kind: int, content: bytes, base: bytes = b"", size: int | None = None) -> bytes:
    """An object of a pack; `base` is an id, or an offset as it is written."""
    return header(kind, len(content) if size is None else size) + base + zlib.compress(content)


def delta(source_bytes: int, target_bytes: int, commands: bytes = b"") -> bytes:
    return number(source_bytes) + number(target_bytes) + commands


def write_pack(git_dir: Path, entries: Mapping[bytes, bytes], offsets: Mapping[bytes, int] | None = None) -> None:
    """A pack of these entries by id, with an index that may lie about where they are."""
    pack = bytearray(struct.pack(">4sLL", b"PACK", 2, len(entries)))
    places = {}
    for identity, data in entries.items():
        places[identity] = len(pack)
        pack += data
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    places |= offsets or {}
    index = bytearray(b"\xfftOc" + struct.pack(">L", 2))
    for byte in range(256):
        index += struct.pack(">L", sum(identity[0] <= byte for identity in places))
    ordered = sorted(places)
    index += b"".join(ordered) + bytes(4 * len(ordered))
    index += b"".join(struct.pack(">L", places[identity]) for identity in ordered)
    index += pack[-20:]
    index += hashlib.sha1(index, usedforsecurity=False).digest()
    folder = git_dir / "objects" / "pack"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pack-1.pack").write_bytes(pack)
    (folder / "pack-1.idx").write_bytes(index)


def identity_of(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).digest()
