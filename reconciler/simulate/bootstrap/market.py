"""The market: machines declared in policies, with capacities of live nodes, and machines of the scenario."""

from collections.abc import Iterator, Mapping

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.policy.gpu import GpuPool, InstanceType
from reconciler.model.quantity import Quantity
from reconciler.simulate.actors.karpenter.cloud import MarketOffering
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import ScenarioMachine

_PODS = "110"

Capacity = tuple[tuple[str, str], ...]


class NoCapacity(ValueError):
    """A machine with unknown capacity."""

    def __init__(self, pool: str, instance_type: str) -> None:
        super().__init__(pool, instance_type)  # these arguments recreate the exception in another process
        self._text = (
            f"GpuPool/{pool}: the capacity of {instance_type} is unknown; "
            f"set the capacity of its instance type, or add it to spec.market.machines"
        )

    def __str__(self) -> str:
        return self._text


def market_of(play: Play) -> tuple[MarketOffering, ...]:
    """By instance type, zone and capacity type; the scenario's machines take precedence. Raises NoCapacity."""
    market = play.scenario.market
    live = _live(play.observed)
    zones = tuple(sorted({*market.zones, *_live_zones(play.observed)})) if play.observed else tuple(market.zones)
    market_offerings: dict[tuple[str, str, str], MarketOffering] = {}
    for revised in play.revisions:
        for pool in revised.desired.pools:
            for each in _declared(pool.name, pool.spec, live, zones):
                market_offerings.setdefault((each.instance_type, each.zone, each.capacity_type), each)
    of_scenario = {machine.name for machine in market.machines}
    market_offerings = {key: each for key, each in market_offerings.items() if key[0] not in of_scenario}
    for machine in market.machines:
        for each in _of_machine(machine, zones):
            market_offerings[each.instance_type, each.zone, each.capacity_type] = each
    return tuple(market_offerings[key] for key in sorted(market_offerings))


def capacity_of(resources: Mapping[str, Quantity], gpus: int = 0) -> Capacity:
    """In Kubernetes' format."""
    found = {"pods": _PODS} | {key: str(value) for key, value in resources.items()}
    if gpus and names.NVIDIA_GPU not in found:
        found[names.NVIDIA_GPU] = str(gpus)
    return tuple(sorted(found.items()))


def _declared(
    name: str, pool: GpuPool, live: Mapping[str, Capacity], zones: tuple[str, ...]
) -> Iterator[MarketOffering]:
    for machine in pool.instance_types:
        capacity = capacity_of(machine.capacity, pool.devices.count) if machine.capacity else live.get(machine.name)
        if capacity is None:
            raise NoCapacity(name, machine.name)
        for capacity_type, money in _prices(pool, machine):
            for zone in zones:
                yield MarketOffering(machine.name, zone, capacity_type, money, capacity)


def _prices(pool: GpuPool, machine: InstanceType) -> Iterator[tuple[str, int]]:
    """Machines without a price are available too, but not included in the cost."""
    for capacity_type in pool.capacity_types:
        money = machine.price_per_hour.get(capacity_type)
        yield capacity_type, money.micro_dollars if money else 0


def _of_machine(machine: ScenarioMachine, zones: tuple[str, ...]) -> Iterator[MarketOffering]:
    capacity = capacity_of(machine.capacity)
    labels = tuple(sorted(machine.labels.items()))
    for capacity_type, money in sorted(machine.price_per_hour.items()):
        for zone in machine.zones or zones:
            yield MarketOffering(machine.name, zone, capacity_type, money.micro_dollars, capacity, labels)


def _live(observed: Observed | None) -> dict[str, Capacity]:
    """Capacity by instance type, from live nodes that pods can use."""
    nodes = sorted(observed.nodes, key=lambda each: each.name) if observed else []
    return {
        each.instance_type: tuple(sorted(each.status.allocatable.items()))
        for each in nodes
        if each.instance_type and each.status.allocatable
    }


def _live_zones(observed: Observed | None) -> Iterator[str]:
    for node in observed.nodes if observed else ():
        if zone := node.metadata.labels.get(names.ZONE):
            yield zone
