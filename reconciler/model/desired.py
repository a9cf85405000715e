"""Desired: all policies of one environment, resolved."""

from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner, PressurePolicy
from reconciler.model.problem import Origin

Spec_co = TypeVar("Spec_co", covariant=True)


class Declared(msgspec.Struct, Generic[Spec_co], frozen=True, dict=True, omit_defaults=True):
    """A policy object and the source position of each value."""

    kind: str
    name: str
    spec: Spec_co
    origins: tuple[tuple[str, Origin], ...]  # by path, such as spec.taints[0].key; '' is the object itself
    labels: tuple[tuple[str, str], ...] = ()  # of the policy object; no plan depends on them
    annotations: tuple[tuple[str, str], ...] = ()

    def origin(self, path: str = "") -> Origin:
        """Where a value was written; for a default, the position of the enclosing value."""
        known = self._by_path
        while path and path not in known:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return known[path]

    @cached_property
    def _by_path(self) -> dict[str, Origin]:
        return dict(self.origins)


class Manifest(msgspec.Struct, frozen=True):
    """A rendered object."""

    kind: str
    namespace: str
    name: str
    body: str  # canonical JSON
    pool: str  # the GpuPool; empty for shared objects
    origin: Origin
    template: Origin  # names no file if there is no template


class SmartPod(msgspec.Struct, frozen=True):
    """The rendered smart pod of a pool and instance type.

    Name, resources, node affinity and derived fields are filled in when a smart pod is created.
    """

    pool: str
    instance_type: str
    body: str  # canonical JSON of a Pod
    template: Origin


class Desired(msgspec.Struct, frozen=True):
    """The resolved policies; each tuple is sorted by name."""

    revision: str
    environment: str
    pools: tuple[Declared[GpuPool], ...] = ()
    provisioners: tuple[Declared[NodeProvisioner], ...] = ()
    drains: tuple[Declared[DrainPolicy], ...] = ()
    pressures: tuple[Declared[PressurePolicy], ...] = ()
    guards: tuple[Declared[ChangeGuard], ...] = ()
    manifests: tuple[Manifest, ...] = ()
    smart_pods: tuple[SmartPod, ...] = ()  # by pool, in the order of the pool's instance types
    is_claimed: bool = False  # an annotation of custom resources names the revision; authors may name any

    @property
    def declared(self) -> tuple[Declared[Any], ...]:
        """All policies, by kind and name."""
        return (*self.pools, *self.provisioners, *self.drains, *self.pressures, *self.guards)

    def pool(self, name: str) -> Declared[GpuPool] | None:
        return next((pool for pool in self.pools if pool.name == name), None)
