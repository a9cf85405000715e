"""The hash that Karpenter makes of structures, rebuilt from small rules so that a number can be foretold.

Everything ends in FNV-1, 64 bits. A text is hashed by its bytes, a number by its eight, lowest first; two hashes in
order are hashed as two numbers. What has no order is XORed: entries of a mapping (key and value in order), items of
a list. A structure starts with the hash of its type's name; each field XORs the hash of its name and value in order.
An XOR alone would let equal parts in different places cancel out, so mappings are hashed once more at their end, and
structures after every field: for that reason the order of a structure's fields counts. A list gets no such end:
a list with the same item twice hashes as an empty one. Fields that hold Go's zero value are left out; an empty
mapping or list is not zero, only one that was never written is.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def octets(content: bytes) -> int:
    """FNV-1 of bytes."""
    result = _OFFSET
    for octet in content:
        result = (result * _PRIME & _MASK) ^ octet
    return result


@lru_cache(maxsize=4096)
def text(written: str) -> int:
    return octets(written.encode())


def number(value: int) -> int:
    """Of a signed number of 64 bits."""
    return octets((value & _MASK).to_bytes(8, "little"))


def mapping(entries: Mapping[str, str]) -> int:
    found = 0
    for key, value in entries.items():
        found ^= _in_order(text(key), text(value))
    return number(found)


def unordered(items: Iterable[int]) -> int:
    """Of a list, from the hashes of its items."""
    result = 0
    for item in items:
        result ^= item
    return result


def structure(type_name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Of a structure, from the hashes of its fields in the order of their declaration; None is left out."""
    result = text(type_name)
    for name, value in fields:
        if value is not None:
            result = number(result ^ _in_order(text(name), value))
    return result


def _in_order(first: int, second: int) -> int:
    return octets(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
