"""A Mark: what was taken away or disrupted, and when that began; guards count each once, over restarts."""

from typing import Literal

import msgspec

from reconciler.model.instant import Instant

MarkedKind = Literal["Node", "Pod", "NodePool"]


class DisruptionRecord(msgspec.Struct, frozen=True, gc=False, order=True):
    """One node, pod or NodePool; of a node that left by another's doing, too, since it left all the same."""

    at: Instant  # when it was marked, or when it was first seen leaving
    kind: MarkedKind
    name: str
    uid: str = ""  # nothing for a NodeClaim whose Node had not appeared
    claim: str = ""  # uid of a node's NodeClaim
    pool: str = ""  # the GpuPool, or else the NodePool, that it was of
    goes: bool = False  # for good: it is not replaced
    gpus: int = 0  # in use on it then
    approvals: tuple[str, ...] = ()  # names of the ChangeApprovals that let it pass
    own: bool = True  # False: we did not cause it
