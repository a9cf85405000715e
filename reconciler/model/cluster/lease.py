"""Leases of our namespace: GPUs lent to claims, and leadership."""

import msgspec

from reconciler.model.cluster.metadata import Metadata


class LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who holds it, and since when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: int = 0


class Lease(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Something lent to one holder at a time."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()
