"""What a pull request changes in the policies: objects, and below them the fields that say something else."""

from typing import Literal

import msgspec

from reconciler.model.origin import Origin


class FieldChange(msgspec.Struct, frozen=True, gc=False):
    """A field in the words that people write; None is where it says nothing: an item that is added, or taken out."""

    path: str  # below spec: taints, minGPUUtilizationPercent, instanceTypes[p4d.24xlarge].pricePerHour.on-demand
    before: str | None
    after: str | None
    origin: Origin  # where it is written now; where it was, if it is taken out


class PolicyChange(msgspec.Struct, frozen=True, gc=False):
    """An object that is added, changed or taken out."""

    kind: str
    name: str
    verb: Literal["add", "change", "remove"]
    origin: Origin
    fields: tuple[FieldChange, ...]
