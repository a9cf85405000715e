"""An Imagined taint: what a node of a pool in mode Observe would bear, were the pool acted on."""

import msgspec


class ObservedTaint(msgspec.Struct, frozen=True, gc=False, order=True):
    """By the uid of the node: another node of its name starts afresh."""

    node: str
    uid: str
    key: str
    value: str
    effect: str
