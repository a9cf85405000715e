"""Edits of drawn policies, as pull requests make them; and what Karpenter does to drawn nodes by them."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.consequence import Cause, Consequence, Fate, Share, summed
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool, InstanceType
from reconciler.model.policy.guards import SizeSchedule
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.quantity import Duration, Money
from tests.unit.plan.scaling.stage import MACHINE

replace = msgspec.structs.replace
PRICES = ("0", "0.5", "14.75", "21.96", "98.32")
TYPES = (MACHINE, "p5.48xlarge", "p4de.24xlarge")
KINDS = (["on-demand"], ["reserved", "on-demand"], ["spot", "on-demand"], ["reserved"], ["spot"])


def priced(inputs: Inputs) -> Inputs:
    """With a price for every machine that a pool may have, and machines of these sorts only."""
    observed = inputs.observed
    nodes, claims = (tuple(map(_of_known_sort, each)) for each in (observed.nodes, observed.node_claims))
    inputs = replace(inputs, observed=replace(observed, nodes=nodes, node_claims=claims))
    return _with_pools(inputs, lambda pool: replace(pool, instance_types=[_priced(each) for each in _all_types(pool)]))


def _of_known_sort(one: Any) -> Any:
    labels = dict(one.metadata.labels)
    if labels.get(names.INSTANCE_TYPE) not in TYPES:
        labels[names.INSTANCE_TYPE] = MACHINE
    if labels.get(names.CAPACITY_TYPE) not in {"spot", "reserved", "on-demand"}:
        labels.pop(names.CAPACITY_TYPE, None)
    return replace(one, metadata=replace(one.metadata, labels=labels))


def _all_types(pool: GpuPool) -> list[InstanceType]:
    listed = {each.name for each in pool.instance_types}
    return [*pool.instance_types, *(InstanceType(name=each) for each in TYPES if each not in listed)]


def _priced(machine: InstanceType) -> InstanceType:
    """By its place among the types, so that no two cost the same."""
    at = TYPES.index(machine.name)
    prices = {
        kind: Money.parse(f"{10 * at + offset}.25") for offset, kind in enumerate(("spot", "reserved", "on-demand"))
    }
    return replace(machine, price_per_hour=prices)


def _with_pools(inputs: Inputs, edit: Any) -> Inputs:
    pools = tuple(replace(each, spec=edit(each.spec)) for each in inputs.desired.pools)
    return replace(inputs, desired=replace(inputs.desired, pools=pools))


class Edits:
    """Owner of the chance by which policies are edited."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(f"edits {seed}")

    def _is(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def edited(self, inputs: Inputs, *, is_priced: bool = False) -> Inputs:
        """By a pull request. `is_priced`: no price is removed."""
        desired = inputs.desired
        pools = [replace(each, spec=self._pool(each.spec, is_priced)) for each in desired.pools if not self._is(8)]
        scaled = [replace(each, spec=self._provisioner(each.spec)) for each in desired.provisioners if not self._is(8)]
        drains = desired.drains if self._is(60) else ()
        changed = replace(desired, pools=tuple(pools), provisioners=tuple(scaled), drains=drains)
        return replace(inputs, desired=changed)

    def _pool(self, pool: GpuPool, is_priced: bool) -> GpuPool:
        types = list(pool.instance_types)
        if self._is(30):
            self._chance.shuffle(types)
        if self._is(25):
            types = types[:1]
        if self._is(25):
            at = self._chance.randrange(len(types))
            types[at] = replace(types[at], price_per_hour=self._prices(is_priced))
        changed: dict[str, Any] = {"instance_types": types}
        if self._is(25):
            changed["capacity_types"] = self._chance.choice(KINDS)
        if self._is(25):
            changed["committed_nodes"] = self._chance.choice((0, 1, 2, 5))
        if self._is(15):
            changed["mode"] = self._chance.choice(("Observe", "Enforce"))
        if self._is(10):
            changed["suspend"] = not pool.suspend
        return replace(pool, **changed)

    def _prices(self, is_priced: bool) -> dict[Any, Money]:
        kinds = ("on-demand", "spot", "reserved")
        return {kind: Money.parse(self._chance.choice(PRICES)) for kind in kinds if is_priced or self._is(60)}

    def _provisioner(self, wish: NodeProvisioner) -> NodeProvisioner:
        changed: dict[str, Any] = {}
        if self._is(40):
            changed["min_size"] = self._chance.choice((0, 1, 4, 9))
        if self._is(30):
            changed["warm_nodes"] = self._chance.choice((0, 1, 3))
        if self._is(20):
            changed["schedules"] = [self._schedule()]
        if self._is(10):
            changed["suspend"] = not wish.suspend
        most = max(wish.max_size, changed.get("min_size", 0)) if self._is(70) else self._chance.choice((1, 2, 30))
        return replace(wish, **changed, max_size=max(most, changed.get("min_size", wish.min_size)))

    def _schedule(self) -> SizeSchedule:
        hour = self._chance.choice((7, 9, 20))
        size = self._chance.choice((2, 6))
        return SizeSchedule(schedule=f"0 {hour} * * *", duration=Duration.parse("3h"), min_size=size, warm_nodes=None)

    def fates(self, observed: Observed, desired: Desired) -> tuple[Consequence, ...]:
        """What Karpenter does to some nodes; of what stands it does the same, whatever is edited."""
        fleet = Fleet(observed)
        return tuple(each for pool in desired.pools for each in self._of_pool(fleet, pool))

    def _of_pool(self, fleet: Fleet, pool: Declared[GpuPool]) -> Iterator[Consequence]:
        groups: dict[tuple[Cause, Fate], list[tuple[str, Share]]] = {}
        for node in fleet.nodes_of(pool.name):
            standing = Random(f"stands {node.name}").randrange(100) < 20
            key: tuple[Cause, Fate] = ("standing", "replaced" if len(node.name) % 2 else "removed")
            if not standing:
                if self._is(50):
                    continue
                key = "change", self._chance.choice(("removed", "replaced", "blocked", "undrifted"))
            groups.setdefault(key, []).append((node.name, Share(node.gpus, 0, 0, 0, 0, ())))
        for (cause, fate), shared in sorted(groups.items()):
            yield summed(Consequence(pool.name, pool.name, cause, fate, (), 0, 0, 0, 0), shared)
