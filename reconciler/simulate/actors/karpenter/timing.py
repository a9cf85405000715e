"""How long things take around an imagined Karpenter, and how long it waits itself by its own rules."""

import msgspec

# Karpenter's own, of its defaults.
BATCH_IDLE_MS = 1_000
BATCH_MOST_MS = 10_000
AGAIN_MS = 10_000  # pods that still wait are looked at again, and so are nodes that might be disrupted
NOMINATED_MS = 20_000  # a node to which pods are to come is not disrupted
VALIDATED_AFTER_MS = 15_000  # a consolidation is looked at again before it is done
LEAST_DRAIN_MS = 5_000
LAUNCH_LIMIT_MS = 5 * 60_000
REGISTRATION_LIMIT_MS = 15 * 60_000
SHORTAGE_REMEMBERED_MS = 3 * 60_000  # what could not be had is not asked for again before


class Timing(msgspec.Struct, frozen=True):
    """Of the cloud and of the machines: what differs from one cluster to another."""

    launch_ms: int = 3_000
    registration_ms: int = 90_000  # from the launch until the Node is there
    initialization_ms: int = 60_000  # from then on until it is ready and its devices are published
    startup_taints_ms: int = 10_000  # until whoever cares takes startup taints off; ours we take off ourselves
    termination_ms: int = 30_000  # from the end of the drain until the machine is gone
    notice_ms: int = 1_000  # until an edit is seen
