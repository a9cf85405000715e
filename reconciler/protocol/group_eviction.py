"""Pods that leave together or not at all: whether all of them are there still, asked before any is asked to leave."""

from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object, WriteResult


def leaves(ref: Ref, found: Object | None) -> bool:
    """Whether there is nobody to ask: it is gone, on its way, or another has its name."""
    if found is None or found["metadata"].get("deletionTimestamp"):
        return True
    return ref.uid not in {"", found["metadata"].get("uid", "")}


def no_longer_whole(ref: Ref) -> WriteResult:
    """How it ends where one has left before any was asked: whoever planned it knew of all."""
    return WriteResult("stale", f"{ref.title} leaves already, and was to leave together with others")
