"""State of drains that nodes cannot carry: batches tainted together, recent evictions, returned nodes and backoff."""

import msgspec

from reconciler.model.instant import Instant


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Nodes that are tainted together: all or none."""

    at: Instant
    nodes: tuple[tuple[str, str], ...]  # name and uid
    torn_at: Instant | None = None  # not all nodes could be tainted: since then, the taints are being removed


class Evicted(msgspec.Struct, frozen=True, gc=False, order=True):
    """An evicted pod, and its requests."""

    at: Instant  # time of the last eviction request
    title: str
    uid: str
    node: str
    pool: str  # pool of the node
    first: Instant  # time of the first eviction request
    pod: str  # JSON without most of the status; empty once no room is reserved for the pod
    owner: str = ""  # namespace and uid of the controller
    home: str = ""  # the node where the pod was found to fit
    gang: str = ""  # the gang with which the pod was evicted
    is_late: bool = False  # created after the drain of its node had begun


class Emptied(msgspec.Struct, frozen=True, gc=False, order=True):
    """A drained node without workload pods, and since when that is known."""

    node: str
    uid: str
    since: Instant


class Setback(msgspec.Struct, frozen=True, gc=False, order=True):
    """A node whose drain was cancelled."""

    node: str
    uid: str
    at: Instant
    code: str  # code of the reason
    times: int = 1  # consecutive times


class Moved(msgspec.Struct, frozen=True, gc=False, order=True):
    """Pods of one owner that were moved off nodes of a pool: first and last time."""

    pool: str
    owner: str  # namespace and uid
    since: Instant
    at: Instant
    wanted: int | None = None  # minimum replicas of the owner in the meantime, if known


class Load(msgspec.Struct, frozen=True, gc=False, order=True):
    """Utilization of the nodes of a pool."""

    busy_nodes: int
    pods: int  # workload pods
    gpus: int  # in use
    spare_nodes: int  # free nodes that the pool keeps as spares
    at_once: int = 0  # maximum number of nodes with pods that may be drained at once


class Begun(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pool with drains in progress, and its utilization when the first drain began."""

    pool: str
    load: Load


class InVain(msgspec.Struct, frozen=True, gc=False, order=True):
    """A pool that got a new node for moved pods, and when this was observed."""

    pool: str
    at: Instant
    times: int = 1  # consecutive times
    load: Load | None = None  # when the drains began; None if unknown


class DrainMemory(msgspec.Struct, frozen=True):
    """The drain planner's memory; each tuple is sorted."""

    batch: Batch | None = None  # until all its taints were observed, or none remains
    evicted: tuple[Evicted, ...] = ()
    emptied: tuple[Emptied, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    moved: tuple[Moved, ...] = ()
    in_vain: tuple[InVain, ...] = ()
    begun: tuple[Begun, ...] = ()
    begin_at: str = ""  # the node to begin with, because the last cycle ran out of time before it
