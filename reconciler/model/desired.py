"""Desired: all policies of one environment, resolved into one wish."""

from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner, PressurePolicy
from reconciler.model.problem import Origin

Spec_co = TypeVar("Spec_co", covariant=True)


class Declared(msgspec.Struct, Generic[Spec_co], frozen=True, dict=True, omit_defaults=True):
    """One object of a kind, and where each of its values was written."""

    kind: str
    name: str
    spec: Spec_co
    origins: tuple[tuple[str, Origin], ...]  # by path, as in spec.taints[0].key; '' is the object itself
    labels: tuple[tuple[str, str], ...] = ()  # of the policy object; no plan depends on them
    annotations: tuple[tuple[str, str], ...] = ()

    def origin(self, path: str = "") -> Origin:
        """Where a value was written, or what stands around it, where a default serves."""
        known = self._by_path
        while path and path not in known:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return known[path]

    @cached_property
    def _by_path(self) -> dict[str, Origin]:
        return dict(self.origins)


class Manifest(msgspec.Struct, frozen=True):
    """An object for the cluster, as a template yielded it."""

    kind: str
    namespace: str
    name: str
    body: str  # canonical JSON
    pool: str  # the GpuPool it is for; nothing where it is for all of them
    origin: Origin
    template: Origin  # names no file where it comes from no template


class SmartPod(msgspec.Struct, frozen=True):
    """What a smart pod of a pool looks like that asks for machines of one type, as its template yielded it.

    Name, resources, request and whatever follows from what it is for are filled in when one is made.
    """

    pool: str
    instance_type: str
    body: str  # canonical JSON of a Pod
    template: Origin


class Desired(msgspec.Struct, frozen=True):
    """The wish; each tuple is sorted by name."""

    revision: str
    environment: str
    pools: tuple[Declared[GpuPool], ...] = ()
    provisioners: tuple[Declared[NodeProvisioner], ...] = ()
    drains: tuple[Declared[DrainPolicy], ...] = ()
    pressures: tuple[Declared[PressurePolicy], ...] = ()
    guards: tuple[Declared[ChangeGuard], ...] = ()
    manifests: tuple[Manifest, ...] = ()
    smart_pods: tuple[SmartPod, ...] = ()  # by pool, and by instance type as the pool has them
    is_claimed: bool = False  # the revision is an annotation of custom resources: whoever writes these may name any

    @property
    def declared(self) -> tuple[Declared[Any], ...]:
        """Every policy, by kind and name."""
        return (*self.pools, *self.provisioners, *self.drains, *self.pressures, *self.guards)

    def pool(self, name: str) -> Declared[GpuPool] | None:
        return next((pool for pool in self.pools if pool.name == name), None)
