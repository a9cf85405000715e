"""What a node was found to be when it was looked at for a drain: a candidate, or not, and why."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.memory import FailedPlacement
from reconciler.model.plan.reason import Reason


class DrainEligibility(msgspec.Struct, frozen=True, gc=False):
    """One node of a pool that a DrainPolicy names."""

    node: str
    pool: str
    policy: str  # name of the DrainPolicy
    reason: Reason
    is_candidate: bool = False
    since: Instant | None = None  # of a candidate: since when it is known to be one
    tried: FailedPlacement | None = None  # of one that is none: when it was last found that its pods have no places
