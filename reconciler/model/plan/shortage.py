"""A Shortage: a way to buy machines for a pool by which none came; remembered for a while, for all who would ask so."""

import msgspec

from reconciler.model.instant import Instant


class Shortage(msgspec.Struct, frozen=True, gc=False, order=True):
    """What is empty was left open."""

    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    since: Instant
    until: Instant
    asked: str  # digest of what the pool said of its machines then: said otherwise, it is tried anew
    why: str  # the code of a reason
