"""Owner of what the machines of each NodePool come to: kept with each change, so that nobody has to walk them."""

from collections.abc import Mapping

import msgspec

NODES = "nodes"  # in limits: how many nodes
_NOTHING: dict[str, int] = {}


class Part(msgspec.Struct, frozen=True, gc=False):
    """What one machine counts for."""

    pool: str
    is_used: bool  # of limits: it was launched, and stays
    is_existing: bool  # of budgets: initialized, and not yet shut down
    is_disrupted: bool  # of those: on its way out, or not ready
    size: dict[str, int]


class _Sum(msgspec.Struct):
    used: dict[str, int]
    existing: int = 0
    disrupted: int = 0


class Tallies:
    """Told of each machine as it stands."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._of_pool: dict[str, _Sum] = {}

    def put(self, claim: str, part: Part | None) -> None:
        """None: it is gone."""
        before = self._parts.pop(claim, None)
        if before is not None:
            self._add(before, -1)
        if part is not None:
            self._parts[claim] = part
            self._add(part, 1)

    def used(self, pool: str, limited: Mapping[str, int]) -> dict[str, int]:
        """How much of what is limited they have."""
        found = self._of_pool.get(pool)
        used = found.used if found is not None else _NOTHING
        return {resource: used.get(resource, 0) for resource in limited}

    def existing(self, pool: str) -> int:
        found = self._of_pool.get(pool)
        return found.existing if found is not None else 0

    def disrupted(self, pool: str) -> int:
        found = self._of_pool.get(pool)
        return found.disrupted if found is not None else 0

    def _add(self, part: Part, sign: int) -> None:
        found = self._of_pool.get(part.pool)
        if found is None:
            found = self._of_pool[part.pool] = _Sum({})
        if part.is_used:
            used = found.used
            used[NODES] = used.get(NODES, 0) + sign
            for resource, amount in part.size.items():
                if resource != NODES:
                    used[resource] = used.get(resource, 0) + sign * amount
        if part.is_existing:
            found.existing += sign
            found.disrupted += sign * part.is_disrupted
