"""What is remembered of drains, and can't be read off nodes: which were tainted together, who was evicted lately,
which nodes were given back, and which pools got a node again."""

import msgspec

from reconciler.model.instant import Instant


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Nodes that are tainted together: all of them, or none."""

    at: Instant
    nodes: tuple[tuple[str, str], ...]  # name and uid
    torn_at: Instant | None = None  # not all could be tainted: since then the taints come off again


class Evicted(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pod that was asked to leave, and what it asks of a node."""

    at: Instant  # when it was asked last
    title: str
    uid: str
    node: str
    pool: str  # of the node
    first: Instant  # when it was asked first
    pod: str  # JSON, without most of its status; nothing once nobody keeps room for it
    owner: str = ""  # namespace and uid of what made it
    home: str = ""  # the node that was found to have room for it
    gang: str = ""  # with which it was to leave
    is_late: bool = False  # it was made after its node had begun to be emptied


class Emptied(msgspec.Struct, frozen=True, gc=False, order=True):
    """A drained node on which nothing counts any more, and since when that is known."""

    node: str
    uid: str
    since: Instant


class Setback(msgspec.Struct, frozen=True, gc=False, order=True):
    """A node that was to go and was given back."""

    node: str
    uid: str
    at: Instant
    code: str  # of the reason
    times: int = 1  # in a row


class Moved(msgspec.Struct, frozen=True, gc=False, order=True):
    """Pods of one owner that were moved off nodes of a pool: since when, and when the last time."""

    pool: str
    owner: str  # namespace and uid
    since: Instant
    at: Instant
    wanted: int | None = None  # how many pods the owner was to have meanwhile, at the least, where that is known


class Load(msgspec.Struct, frozen=True, gc=False, order=True):
    """How the nodes of a pool are used."""

    busy_nodes: int
    pods: int  # that count
    gpus: int  # in use
    spare_nodes: int  # free nodes that the pool keeps on purpose
    at_once: int = 0  # the most nodes with pods that could begin to be emptied together


class Begun(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pool of which drains are under way, and how it was used when the first of them began."""

    pool: str
    load: Load


class InVain(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pool for whose moved pods a node came, and when that was seen."""

    pool: str
    at: Instant
    times: int = 1  # in a row
    load: Load | None = None  # when the drains began; None where that is not known


class DrainMemory(msgspec.Struct, frozen=True):
    """All of it; each tuple is sorted."""

    batch: Batch | None = None  # until all its taints were seen, or none any more
    evicted: tuple[Evicted, ...] = ()
    emptied: tuple[Emptied, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    moved: tuple[Moved, ...] = ()
    in_vain: tuple[InVain, ...] = ()
    begun: tuple[Begun, ...] = ()
    begin_at: str = ""  # the node with which to begin, since there was no time for it the last time
