"""How far the machine has come that Karpenter buys for a request, by the conditions of its NodeClaim.

A NodeClaim never says that it failed: a launch without stock deletes it, and so does a machine that does not register
in time. That it is gone, or going, before its node was ready is the failure.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from reconciler.model.cluster.karpenter import NodeClaim

MachinePhase = Literal["Created", "Launching", "Registering", "Ready", "Failed"]


class _PhaseRule(msgspec.Struct, frozen=True):
    phase: MachinePhase
    text: str
    applies: Callable[[NodeClaim], bool]


# First match wins; the last one always applies.
RULES = (
    _PhaseRule("Failed", "is gone, or is being deleted", lambda claim: claim.metadata.leaving),
    _PhaseRule("Ready", "is Initialized: its node can be used", lambda claim: claim.says("Initialized")),
    _PhaseRule("Registering", "is Launched: its machine boots", lambda claim: claim.says("Launched")),
    _PhaseRule(
        "Launching",
        "says of Launched that it is not, or not yet known",
        lambda claim: claim.condition("Launched") is not None,
    ),
    _PhaseRule("Created", "says nothing yet", lambda _: True),
)


def machine_phase(claim: NodeClaim | None) -> MachinePhase:
    """Of a claim that was there; one that is gone has failed."""
    return next(rule.phase for rule in RULES if rule.applies(claim)) if claim is not None else "Failed"
