"""What has been reserved of each node, as the planner gets it: the definitions of resources, and the entries of pods.

`fleet/pressure` has the arithmetic. The controller that answers the agents fills the state; a dump contains it.
"""

from collections.abc import Mapping

import msgspec

_ALL = 10_000  # basis points


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """One resource of a node, in the units of kube-scheduler: thousandths of cpu, units of all others."""

    total: int
    system: int = 0  # for processes and pods that our scheduler does not place
    watermark_basis_points: int = _ALL  # of what is reservable
    slot: int = 1  # the requests of pods that are not elastic are rounded up to slots, as one sum
    compute_unit: int = 1  # asks are multiples of this

    @property
    def reservable(self) -> int:
        """What pods may reserve. Not even this much may be free, after `system` was raised."""
        return max(0, self.total - self.system)

    @property
    def watermark(self) -> int:
        """From here on, pods are to move away."""
        return self.reservable * self.watermark_basis_points // _ALL


NodeBounds = Mapping[str, Bounds]  # by resource
Amounts = Mapping[str, int]  # by resource


class ElasticPod(msgspec.Struct, frozen=True, gc=False, tag="elastic", omit_defaults=True):
    """A pod whose agent asks for permits. All amounts name the same resources."""

    uid: str
    title: str  # namespace/name
    least: Amounts
    most: Amounts
    has: Amounts  # what the pod is seen to have
    permitted: Amounts = {}  # the last permit; of no meaning while silent
    lacks: Amounts = {}  # what the agent asked for beyond its permit
    is_silent: bool = False  # no ask since this ledger began
    is_migrating: bool = False

    def reserved(self, name: str) -> int:
        """What nobody else may use."""
        has = self.has.get(name, 0)
        return max(has, self.most.get(name, 0) if self.is_silent else self.permitted.get(name, 0))

    def buffer(self, name: str) -> int:
        """What the pod may not have of it."""
        return self.reserved(name) - self.has.get(name, 0) if self.is_silent else 0


class PlainPod(msgspec.Struct, frozen=True, gc=False, tag="plain", omit_defaults=True):
    """A pod that never asks, and reserves its requests."""

    uid: str
    title: str
    requests: Amounts


LedgerPod = ElasticPod | PlainPod


class NodePods(msgspec.Struct, frozen=True, gc=False):
    """The ledger of one node."""

    node: str
    bounds: NodeBounds
    pods: tuple[LedgerPod, ...] = ()  # by uid


class PressureState(msgspec.Struct, frozen=True):
    """The ledgers of all nodes with a PressurePolicy in force, and the loads that agents reported last."""

    nodes: tuple[NodePods, ...] = ()  # by name
    loads: Mapping[str, int] = {}  # thousandths of a process that wants to run, by uid; absent: not reported
