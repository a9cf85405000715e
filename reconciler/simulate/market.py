"""What machines can be bought in an imagined cluster, where, and for how much."""

import msgspec


class MarketOffering(msgspec.Struct, frozen=True):
    """One way to buy one machine."""

    instance_type: str
    zone: str
    capacity_type: str
    micro_dollars_per_hour: int
    capacity: tuple[tuple[str, str], ...]  # as Kubernetes writes it: ("cpu", "96"), ("nvidia.com/gpu", "8")
    labels: tuple[tuple[str, str], ...] = ()  # further labels of the node
