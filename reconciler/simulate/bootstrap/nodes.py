"""The nodes that a scenario begins with: those of pools as Karpenter would have bought them, and others."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.registration import born
from reconciler.simulate.bootstrap.market import capacity_of
from reconciler.simulate.bootstrap.pools import node_pool
from reconciler.simulate.market import MarketOffering
from reconciler.simulate.runner.play import Play
from reconciler.simulate.scenario.cluster import NodeSet
from reconciler.simulate.workloads.openb.nodes import OpenbNode
from reconciler.simulate.world import World

_ARCHITECTURE = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


class NoSuchPool(ValueError):
    """Nodes of a pool that the first policies do not declare, or that can't be of it; the sentence says what to do."""


class _Machine(msgspec.Struct, frozen=True):
    """A node that nobody manages."""

    name: str
    capacity: tuple[tuple[str, str], ...]
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...] = ()


def put_nodes(world: World, play: Play, market: Sequence[MarketOffering]) -> None:
    """All groups, in the order in which they are written. Raises NoSuchPool."""
    zones = play.scenario.market.zones
    for group, name, number in numbered(play.scenario.cluster.nodes):
        zone = group.zone or zones[number % len(zones)]
        for body in _node(world, play, _NodeOrigin(group, market, name, zone)):
            world.put(body)


def numbered(groups: Iterable[NodeSet]) -> Iterator[tuple[NodeSet, str, int]]:
    """Each node by its group, its name, and its number among those that are called alike."""
    taken: dict[str, int] = {}
    for group in groups:
        prefix = group.name or group.pool
        for _ in range(group.count):
            number = taken[prefix] = taken.get(prefix, 0) + 1
            yield group, f"{prefix}-{number:04d}", number


def put_openb_nodes(world: World, nodes: Sequence[OpenbNode]) -> None:
    """Machines of a trace: nobody buys more of them."""
    for each in nodes:
        labels = {names.GPU_TYPE: each.model} if each.model else {}
        world.put(_machine(_Machine(each.name, each.capacity, labels)))


class _NodeOrigin(msgspec.Struct, frozen=True):
    group: NodeSet
    market: Sequence[MarketOffering]
    name: str
    zone: str


def _node(world: World, play: Play, place: _NodeOrigin) -> Iterator[Object]:
    group = place.group
    if not group.pool:
        labels = {names.ZONE: place.zone, names.INSTANCE_TYPE: group.instance_type} | dict(group.labels)
        taints = tuple({"key": each.key, "value": each.value, "effect": each.effect} for each in group.taints)
        labels = {key: value for key, value in labels.items() if value}
        yield _machine(_Machine(place.name, capacity_of(group.capacity), labels, taints))
        return
    declared = play.first.pool(group.pool)
    pool = node_pool(world, group.pool)
    if declared is None or pool is None:
        known = ", ".join(each.name for each in play.first.pools) or "none"
        raise NoSuchPool(f"nodes of pool {group.pool}: the first policies make no such NodePool; there are: {known}")
    claim, node = born(pool, _offering(place, declared.spec), place.name, world.now)
    if group.labels:
        metadata = node["metadata"]
        node = {**node, "metadata": {**metadata, "labels": {**metadata["labels"], **dict(group.labels)}}}
    yield claim
    yield node


def _offering(place: _NodeOrigin, pool: GpuPool) -> MarketOffering:
    group = place.group
    wanted = group.instance_type or pool.instance_types[0].name
    capacity_type = group.capacity_type or pool.capacity_types[0]
    for each in place.market:
        if (each.instance_type, each.zone, each.capacity_type) == (wanted, place.zone, capacity_type):
            if not group.capacity:
                return each
            return msgspec.structs.replace(each, capacity=capacity_of(group.capacity, pool.devices.count))
    text = f"nodes of pool {group.pool}: {wanted} is not to be had in {place.zone} as {capacity_type}"
    raise NoSuchPool(f"{text}; choose another, or add it to spec.market")


def _machine(machine: _Machine) -> Object:
    capacity = dict(machine.capacity)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    labels = {names.HOSTNAME: machine.name} | _ARCHITECTURE | dict(machine.labels)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"providerID": f"imagined:///{machine.name}", "taints": [dict(each) for each in machine.taints]},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }
