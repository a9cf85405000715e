"""Owner of what the cloud has and has not: where it is out of stock, and what Karpenter knows of that.

Karpenter learns of a shortage only by asking, and then does not ask again for some minutes. What is not offered at all
it knows without asking.
"""

from collections import Counter
from random import Random

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.instance_types import KarpenterInstanceType
from reconciler.simulate.actors.karpenter.timing import SHORTAGE_REMEMBERED_MS
from reconciler.simulate.market import MarketOffering

Place = tuple[str, str, str]  # instance type, zone, capacity type


class Stockout(msgspec.Struct, frozen=True):
    """What can't be had; what is not said is any."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""

    def concerns(self, offering: MarketOffering) -> bool:
        said = zip((self.instance_type, self.zone, self.capacity_type), _place(offering), strict=True)
        return all(wanted in ("", is_so) for wanted, is_so in said)

    def covers(self, other: "Stockout") -> bool:
        """Whether none of that can be had either."""
        said = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return all(wanted in ("", is_so) for wanted, is_so in said)


class Cloud:
    """All instance types, and which offerings of them can be had."""

    def __init__(self, types: tuple[KarpenterInstanceType, ...]) -> None:
        self.types = {each.name: each for each in types}
        self.version = 0  # another whenever there is more to be had than was known
        self._sold_out: Counter[Stockout] = Counter()  # those in the same words are over when the last of them is
        self._withheld: Counter[Stockout] = Counter()
        self._known: dict[Place, Instant] = {}  # until when it is not asked for

    def hold_back(self, out: Stockout) -> None:
        self._sold_out[out] += 1

    def restock(self, out: Stockout) -> None:
        self._sold_out[out] -= 1
        self._sold_out = +self._sold_out
        self.version += 1

    def withhold(self, out: Stockout) -> None:
        """It is not offered, and Karpenter knows."""
        self._withheld[out] += 1

    def offer(self, out: Stockout) -> None:
        """It is offered again."""
        self._withheld[out] -= 1
        self._withheld = +self._withheld
        self.version += 1

    def holds_back(self, out: Stockout) -> bool:
        """Whether none of it can be had."""
        return any(each.covers(out) for each in self._sold_out)

    def withholds(self, out: Stockout) -> bool:
        """Whether none of it is offered."""
        return any(each.covers(out) for each in self._withheld)

    def known(self, machine: KarpenterInstanceType, now: Instant) -> tuple[MarketOffering, ...]:
        """The offerings that Karpenter takes to be there, cheapest first."""
        if not self._known and not self._withheld:
            return machine.offerings
        return tuple(each for each in machine.offerings if self._is_requested(each, now))

    def buy(self, alloweds: Demands, now: Instant, chance: Random) -> MarketOffering | None:
        """The cheapest that can be had; of several at one price some. None: everything asked for is out of stock."""
        best: list[MarketOffering] = []
        for name in sorted(alloweds[names.INSTANCE_TYPE].values):
            machine = self.types.get(name)
            for each in self.known(machine, now) if machine is not None else ():
                if not matches_demands(each, alloweds):
                    continue
                if self._is_out(each):
                    self._known[_place(each)] = Instant(now + SHORTAGE_REMEMBERED_MS)
                elif not best or each.micro_dollars_per_hour < best[0].micro_dollars_per_hour:
                    best = [each]
                elif each.micro_dollars_per_hour == best[0].micro_dollars_per_hour:
                    best.append(each)
        return chance.choice(best) if best else None

    def forget_shortages(self, now: Instant) -> bool:
        """Whether there is something that may be asked for again."""
        over = [place for place, until in self._known.items() if until <= now]
        for place in over:
            del self._known[place]
        self.version += bool(over)
        return bool(over)

    def _is_requested(self, offering: MarketOffering, now: Instant) -> bool:
        is_withheld = any(out.concerns(offering) for out in self._withheld)
        return not is_withheld and self._known.get(_place(offering), now) <= now

    def _is_out(self, offering: MarketOffering) -> bool:
        return any(out.concerns(offering) for out in self._sold_out)


def matches_demands(offering: MarketOffering, alloweds: Demands) -> bool:
    """Whether zone and capacity type are as asked for."""
    zone, capacity_type = alloweds.get(names.ZONE), alloweds.get(names.CAPACITY_TYPE)
    return (zone is None or zone.has(offering.zone)) and (
        capacity_type is None or capacity_type.has(offering.capacity_type)
    )


def _place(offering: MarketOffering) -> Place:
    return offering.instance_type, offering.zone, offering.capacity_type
