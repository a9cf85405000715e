"""What an elastic pod wants, by what it uses.

A pod wants so many cpus that its load is a certain share of them, and so much memory that its use is a certain share.
Both are rounded up to the compute unit and kept within the bounds of the pod. All figures are integers.
"""

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.pressure.pods import ElasticBounds
from reconciler.model.plan.pressure import Amounts

LOAD_PERCENT = 90  # of the cpus
MEMORY_PERCENT = 75


class Usage(NamedTuple):
    """What the pod uses."""

    load_milli: int  # thousandths of processes that run or want to, over the last minute
    memory: int  # bytes that are not only caches


def wanted(usage: Usage, bounds: ElasticBounds, unit: Mapping[str, int]) -> Amounts:
    """The amounts of all elastic resources. A resource without a known use stays at the least."""
    needed = {CPU: _share(usage.load_milli, LOAD_PERCENT), MEMORY: _share(usage.memory, MEMORY_PERCENT)}
    return {
        name: _fitting(needed.get(name, least), least, most, unit.get(name, 1))
        for name, (least, most) in bounds.items()
    }


def _share(used: int, percent: int) -> int:
    return -(-100 * used // percent)


def _fitting(amount: int, least: int, most: int, unit: int) -> int:
    """The smallest multiple of the unit that is enough, within the bounds; a bound itself where no multiple fits."""
    units = -(-max(amount, least) // unit) * unit
    return units if units <= most else max(most // unit * unit, least)
