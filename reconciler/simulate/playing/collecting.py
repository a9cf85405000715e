"""How often Python looks for garbage while a play runs: seldom, since nearly all that is written is kept for a while.

Every thousand writes leave some ten thousand dicts, which Python would walk again and again to find that they are in
use. What is no longer in use goes by itself; only circles wait, and there are few.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 50_000  # until those are looked through


@contextmanager
def seldom() -> Iterator[None]:
    """As it was before, afterwards."""
    before = gc.get_threshold()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
