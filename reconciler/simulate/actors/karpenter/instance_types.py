"""Machines that can be bought: the offerings of a market, by instance type, and what pods may have of each."""

from collections.abc import Iterable, Mapping

import msgspec

from reconciler.fleet.amounts import CPU, counted
from reconciler.model import names
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.requirements import of_labels, one_of
from reconciler.simulate.market import MarketOffering

PLATFORM = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


class KarpenterInstanceType(msgspec.Struct, frozen=True):
    """One, wherever it is sold."""

    name: str
    labels: dict[str, str]
    demands: Demands  # what its nodes can be
    capacity: dict[str, str]
    size: dict[str, int]  # its capacity as whole numbers
    room: dict[str, int]  # what pods may have of it
    offerings: tuple[MarketOffering, ...]  # cheapest first

    @property
    def allocatable(self) -> dict[str, str]:
        """As Kubernetes writes it."""
        return {
            name: text if self.room[name] == self.size[name] else _quantity(name, self.room[name])
            for name, text in self.capacity.items()
        }


def instance_types(market: Iterable[MarketOffering], reserved: Mapping[str, str]) -> tuple[KarpenterInstanceType, ...]:
    """By name; `reserved` of each is kept for the machine itself."""
    by_name: dict[str, list[MarketOffering]] = {}
    for each in market:
        by_name.setdefault(each.instance_type, []).append(each)
    return tuple(_instance_type(name, by_name[name], counted(dict(reserved))) for name in sorted(by_name))


def _instance_type(name: str, offerings: list[MarketOffering], reserved: Mapping[str, int]) -> KarpenterInstanceType:
    labels = PLATFORM | dict(offerings[0].labels) | {names.INSTANCE_TYPE: name}
    where = {
        names.ZONE: one_of(each.zone for each in offerings),
        names.CAPACITY_TYPE: one_of(each.capacity_type for each in offerings),
    }
    capacity = {"pods": "110"} | dict(offerings[0].capacity)
    size = counted(capacity)
    room = {key: max(0, amount - reserved.get(key, 0)) for key, amount in size.items()}
    cheapest_first = sorted(offerings, key=lambda each: (each.micro_dollars_per_hour, each.zone, each.capacity_type))
    return KarpenterInstanceType(name, labels, of_labels(labels) | where, capacity, size, room, tuple(cheapest_first))


def _quantity(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)
