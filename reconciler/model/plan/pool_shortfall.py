"""Lacking: since when a pool lacks nodes for pods that Karpenter sees, and could buy."""

import msgspec

from reconciler.model.instant import Instant


class PoolShortfall(msgspec.Struct, frozen=True, gc=False, order=True):
    """Forgotten as soon as nothing is lacking."""

    pool: str
    since: Instant
