"""What structs consist of, found out before several threads read them.

msgspec finds out what a type consists of when that is read for the first time, and lets other threads go on meanwhile:
one that reads the same type then is given half of it, and the whole process dies. So who connects to a cluster finds
out about all types, in the one thread that there is by then. It takes ten milliseconds.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from reconciler.kube.decode import know_kinds
from reconciler.kube.placeholders import know_fields


def know_types() -> None:
    """Of all modules that have been imported."""
    for each in _structs(msgspec.Struct):
        with suppress(TypeError, NameError):  # it was not made to be read
            msgspec.json.Decoder(each)
    know_kinds()
    know_fields()


def _structs(of: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from _structs(each)
