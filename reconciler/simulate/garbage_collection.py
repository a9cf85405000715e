"""When Python looks for garbage while a play runs: seldom by itself, since nearly all that is written is kept a while.

Every thousand writes leave some ten thousand dicts, which Python would walk again and again to find that they are in
use. What is no longer in use goes by itself; only circles wait. There are few, but a what-if is one, and holds a whole
cluster: left to itself Python would not look for them in a week. So we say when.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.model.cluster.observed import Observed

LARGE = 300  # nodes and pods
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


def let_go(observed: Observed) -> None:
    """A what-if of so much is given up, and goes now, if it is large. With some hundred nodes that takes a tenth of a
    second, and longer where a process holds much else; small ones may wait for Python's own rounds."""
    if len(observed.nodes) + len(observed.pods) >= LARGE:
        gc.collect()
