"""Inputs after inputs: each told by what is different from those before, so that it costs no more than what changed."""

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.observed_delta import Key, ObservedDelta, Replica, difference
from reconciler.model.desired import Desired
from reconciler.model.plan.inputs import Inputs


class Successor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What makes the next inputs of those before; the first are told by what differs from nothing."""

    inputs: Inputs  # whole, but for what is observed and perhaps the policies
    gone: dict[str, tuple[Key, ...]] = {}
    same_policies: bool = False


def successor(before: Inputs | None, after: Inputs) -> Successor:
    """Policies and objects count as the same only if they are the very same objects."""
    change = difference(before.observed if before else Observed(), after.observed)
    same = before is not None and before.desired is after.desired
    desired = Desired(after.desired.revision, after.desired.environment) if same else after.desired
    return Successor(msgspec.structs.replace(after, desired=desired, observed=change.put), change.gone, same)


class Succession:
    """Owner of the inputs as they are after what was told so far."""

    def __init__(self) -> None:
        self._replica = Replica()
        self._desired: Desired | None = None

    def take(self, delta: Successor) -> Inputs:
        """The next inputs; what did not change stays the same object. Raises ValueError where the first is missing."""
        desired = self._desired if delta.same_policies else delta.inputs.desired
        if desired is None:
            raise ValueError("the inputs before these are missing")
        self._desired = desired
        observed = self._replica.take(ObservedDelta(delta.inputs.observed, delta.gone))
        return msgspec.structs.replace(delta.inputs, desired=desired, observed=observed)
