"""The simulated cloud: instance types with offerings, label requirements, and stock-outs."""

from collections.abc import Iterable, Mapping
from random import Random

import msgspec

from reconciler.fleet.amounts import CPU, counted
from reconciler.model import names
from reconciler.model.cluster.node import NodePoolRequirement
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.plan.karpenter.drift import Allowed, Demands, demands
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.machines import SHORTAGE_REMEMBERED_MS

# --- Label requirements, compared and intersected as in Karpenter: of NodePools, pods, instance types and offerings.

# A new node always gets a value for these labels, whether or not its NodePool names them.
WELL_KNOWN = frozenset(
    {
        names.KARPENTER_POOL,
        names.ZONE,
        names.REGION,
        names.INSTANCE_TYPE,
        names.CAPACITY_TYPE,
        "kubernetes.io/arch",
        "kubernetes.io/os",
    }
)
_BEYOND_ANY = 2**63


def one_of(values: Iterable[str]) -> Allowed:
    return Allowed(frozenset(values), all_but=False)


def of_labels(labels: Mapping[str, str]) -> dict[str, Allowed]:
    return {key: one_of((value,)) for key, value in labels.items()}


def alternatives(pod: Pod) -> tuple[Demands, ...]:
    """The alternative label requirements of a pod, tried in order.

    None for a pod that requires node fields, which Karpenter does not support.
    """
    spec = pod.spec
    selected = [NodePoolRequirement(key, "In", (value,)) for key, value in sorted(spec.node_selector.items())]
    required = spec.affinity.node_affinity.required if spec.affinity is not None else None
    if required is None or not required.node_selector_terms:
        return (demands(selected),)
    if any(term.match_fields for term in required.node_selector_terms):
        return ()
    terms = (term.match_expressions for term in required.node_selector_terms)
    lines = ([NodePoolRequirement(each.key, each.operator, each.values) for each in term] for term in terms)
    return tuple(demands([*selected, *each]) for each in lines)


def compatible(has: Demands, asks: Demands, known: frozenset[str]) -> bool:
    """Whether the requirements can be met; labels outside `known` must be present."""
    for key, allowed in asks.items():
        if key not in has and key not in known and not allowed.may_be_missing:
            return False
    return intersects(has, asks)


def intersects(one: Demands, other: Demands) -> bool:
    """Whether both allow a common value for each shared label."""
    for key, allowed in other.items():
        mine = one.get(key)
        if mine is None or not is_empty(mine.joined(allowed)):
            continue
        if not (mine.may_be_missing and allowed.may_be_missing):
            return False
    return True


def joined(one: Demands, other: Demands) -> dict[str, Allowed]:
    """The intersection of both."""
    requirements_by_key = dict(one)
    for key, allowed in other.items():
        requirements_by_key[key] = requirements_by_key[key].joined(allowed) if key in requirements_by_key else allowed
    return requirements_by_key


def is_empty(allowed: Allowed) -> bool:
    return not allowed.all_but and not allowed.values


def some_value(allowed: Allowed) -> str:
    """A value for a node; empty if there is none."""
    if not allowed.all_but:
        return min(allowed.values, default="")
    if allowed.least is None and allowed.most is None and allowed.values:
        return ""
    number = allowed.least if allowed.least is not None else 0 if allowed.most is None else allowed.most
    step = -1 if allowed.least is None and allowed.most is not None else 1
    while str(number) in allowed.values and abs(number) < _BEYOND_ANY:
        number += step
    return str(number) if allowed.has(str(number)) else ""


def written(requirements_by_key: Demands) -> list[Object]:
    """In the format of a NodeClaim's spec."""
    result: list[Object] = []
    for key, allowed in sorted(requirements_by_key.items()):
        if not allowed.all_but:
            operator = "In" if allowed.values else "DoesNotExist"
            result.append(_line(key, operator, sorted(allowed.values)))
            continue
        if allowed.least is not None:
            result.append(_line(key, "Gt", [str(allowed.least - 1)]))
        if allowed.most is not None:
            result.append(_line(key, "Lt", [str(allowed.most + 1)]))
        if allowed.values:
            result.append(_line(key, "NotIn", sorted(allowed.values)))
        elif allowed.least is None and allowed.most is None:
            result.append(_line(key, "Exists", []))
    return result


def _line(key: str, operator: str, values: list[str]) -> Object:
    return {"key": key, "operator": operator} | ({"values": values} if values else {})


# --- Machines that can be launched in a simulated cluster, with zones and prices.


class MarketOffering(msgspec.Struct, frozen=True):
    instance_type: str
    zone: str
    capacity_type: str
    micro_dollars_per_hour: int
    capacity: tuple[tuple[str, str], ...]  # in Kubernetes' format: ("cpu", "96"), ("nvidia.com/gpu", "8")
    labels: tuple[tuple[str, str], ...] = ()  # further labels of the node


# --- Instance types: the offerings of a market by instance type, with allocatable resources.

PLATFORM = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


class KarpenterInstanceType(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str]
    demands: Demands  # possible labels of its nodes
    capacity: dict[str, str]
    size: dict[str, int]  # capacity as integers
    room: dict[str, int]  # allocatable as integers
    offerings: tuple[MarketOffering, ...]  # cheapest first

    @property
    def allocatable(self) -> dict[str, str]:
        """In Kubernetes' format."""
        return {
            name: text if self.room[name] == self.size[name] else quantity(name, self.room[name])
            for name, text in self.capacity.items()
        }


def instance_types(market: Iterable[MarketOffering], reserved: Mapping[str, str]) -> tuple[KarpenterInstanceType, ...]:
    """By name; `reserved` is subtracted from each capacity."""
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


def quantity(name: str, amount: int) -> str:
    """In Kubernetes' format."""
    return f"{amount}m" if name == CPU else str(amount)


# --- Owner of the cloud's stock-outs, and of Karpenter's knowledge about them.
#
# Karpenter learns of a stock-out only from a failed launch, and then avoids the offering for some minutes. Karpenter
# always knows which offerings do not exist.

Place = tuple[str, str, str]  # instance type, zone, capacity type


class Stockout(msgspec.Struct, frozen=True):
    """Unavailable offerings; an empty field matches any value."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""

    def concerns(self, offering: MarketOffering) -> bool:
        return self.covers(Stockout(*_place(offering)))

    def covers(self, other: "Stockout") -> bool:
        """Whether the other offerings are all unavailable too."""
        said = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return all(wanted in ("", is_so) for wanted, is_so in said)


class Cloud:
    """All instance types, and the availability of their offerings."""

    def __init__(self, types: tuple[KarpenterInstanceType, ...]) -> None:
        self.types = {each.name: each for each in types}
        self.version = 0  # changes when the known availability grows
        self.sold_out: list[Stockout] = []
        self.withheld: list[Stockout] = []  # removed offerings: Karpenter does not try to launch them
        self._known: dict[Place, Instant] = {}  # until when the offering is avoided

    def restock(self, stockouts: list[Stockout], out: Stockout) -> bool:
        """Ends one of the stock-outs; returns whether another one covers its offerings."""
        stockouts.remove(out)
        self.version += 1
        return any(each.covers(out) for each in stockouts)

    def known(self, machine: KarpenterInstanceType, now: Instant) -> tuple[MarketOffering, ...]:
        """The offerings that Karpenter believes available, cheapest first."""
        if not self._known and not self.withheld:
            return machine.offerings
        return tuple(each for each in machine.offerings if self._is_requested(each, now))

    def buy(self, requirements_by_key: Demands, now: Instant, chance: Random) -> MarketOffering | None:
        """The cheapest available offering; among equal prices, a random one.

        None: all matching ones are out of stock.
        """
        best: list[MarketOffering] = []
        types = requirements_by_key.get(names.INSTANCE_TYPE)
        for name in sorted(types.values) if types is not None else ():
            machine = self.types.get(name)
            for each in self.known(machine, now) if machine is not None else ():
                if not matches_demands(each, requirements_by_key):
                    continue
                if any(out.concerns(each) for out in self.sold_out):
                    self._known[_place(each)] = Instant(now + SHORTAGE_REMEMBERED_MS)
                elif not best or each.micro_dollars_per_hour < best[0].micro_dollars_per_hour:
                    best = [each]
                elif each.micro_dollars_per_hour == best[0].micro_dollars_per_hour:
                    best.append(each)
        return chance.choice(best) if best else None

    def forget_shortages(self, now: Instant) -> bool:
        """Whether any offering may be tried again."""
        over = [place for place, until in self._known.items() if until <= now]
        for place in over:
            del self._known[place]
        self.version += bool(over)
        return bool(over)

    def _is_requested(self, offering: MarketOffering, now: Instant) -> bool:
        is_withheld = any(out.concerns(offering) for out in self.withheld)
        return not is_withheld and self._known.get(_place(offering), now) <= now


def matches_demands(offering: MarketOffering, requirements_by_key: Demands) -> bool:
    """Whether zone and capacity type match the requirements."""
    zone, capacity_type = requirements_by_key.get(names.ZONE), requirements_by_key.get(names.CAPACITY_TYPE)
    return (zone is None or zone.has(offering.zone)) and (
        capacity_type is None or capacity_type.has(offering.capacity_type)
    )


def _place(offering: MarketOffering) -> Place:
    return offering.instance_type, offering.zone, offering.capacity_type
