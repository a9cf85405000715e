"""Which of several empty nodes goes first: a table of keys, the first that tells two nodes apart decides.

A node of which no price is known comes after all that have one: what it saves is not known either.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Literal

import msgspec

from reconciler.model.cluster.node import Node
from reconciler.model.policy.gpu_pool import GpuPool

KeyName = Literal["readiness", "price", "priced", "name"]


class Key(msgspec.Struct, frozen=True):
    """What is looked at."""

    name: KeyName
    of: Callable[[Node, int | None], int | str]  # of a node and its price


class RemovalOrder:
    """For the nodes of one pool."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool

    def sorted(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that go first, first."""
        return sorted(nodes, key=self.key)

    def key(self, node: Node) -> tuple[int | str, ...]:
        price = self.price(node)
        return tuple(each.of(node, price) for each in KEYS)

    def price(self, node: Node) -> int | None:
        """Millionths of a dollar an hour; None where the policy does not say."""
        return self._prices.get((node.instance_type, node.capacity_type))

    @cached_property
    def _prices(self) -> dict[tuple[str, str], int]:
        return {
            (each.name, capacity_type): money.micro_dollars
            for each in self._pool.instance_types
            for capacity_type, money in each.price_per_hour.items()
        }


KEYS: tuple[Key, ...] = (
    Key("readiness", lambda node, _: int(node.is_ready)),
    Key("price", lambda _, price: -(price or 0)),
    Key("priced", lambda _, price: int(price is None)),
    Key("name", lambda node, _: node.name),
)
