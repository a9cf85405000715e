"""Leases of our namespace: GPUs lent to claims, and leadership."""

import msgspec

from reconciler.model.cluster.metadata import Metadata
from reconciler.model.parsers import Int32


class LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who holds it, and since when."""

    holder_identity: str = ""
    lease_duration_seconds: Int32 = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: Int32 = 0


class Lease(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something lent to one holder at a time."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()
