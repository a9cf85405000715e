"""What becomes of the nodes of a pool for which pods wait, by number; and how many pods wait for one marked node."""

import msgspec


class Growth(msgspec.Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Of the nodes that a pool is wanted with, those that pods are served by."""

    kept: int = 0  # marked before
    arriving: int = 0
    asked: int = 0  # by smart pods
    bought: int = 0
    warm: int = 0  # to be bought, and kept warm


class Claimants(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Pods that a marked node is kept for."""

    pods: int = 0  # 0: how many is not known
    are_evicted: bool = False  # they were evicted lately, and nobody has made them anew yet
