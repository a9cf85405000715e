"""What must outlive a restart and that the cluster cannot carry itself; and hints, which may be lost at any time."""

import msgspec


class Memory(msgspec.Struct, frozen=True):
    """Written before actions go out."""


class Hints(msgspec.Struct, frozen=True):
    """May change destinations, never safety, timers or batches in flight."""
