"""What allows no more nodes of a pool."""

from typing import Literal

import msgspec

LimitSource = Literal[
    "limits",  # of the GpuPool, on one resource
    "maxSize",  # of the NodeProvisioner
    "instanceTypes",  # the GpuPool declares none
]


class CapacityLimit(msgspec.Struct, frozen=True, gc=False, order=True):
    """As the policy has it."""

    source: LimitSource
    policy: str  # its name
    resource: str = ""  # of limits
    amount: str = ""  # nothing where no instance type is declared
