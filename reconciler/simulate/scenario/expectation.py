"""An Expectation: a figure, and what it must be."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import NAME, Says, Within
from reconciler.model.quantity import Duration

Measure = Literal[
    "evictions",
    "disruptedGPUs",
    "lostPods",
    "pendingGPUMinutes",
    "gpuUtilizationPercent",
    "gpuHoursPaid",
    "dollars",
    "nodesBought",
    "nodesRemoved",
    "finishedPods",
    "actions",
    "nodes",
    "targetNodes",
    "taintedNodes",
    "pendingPods",
    "heldByGuards",
]
# Known of each pool by itself.
POOLED = frozenset({"nodes", "targetNodes", "taintedNodes", "gpuUtilizationPercent", "gpuHoursPaid", "dollars"})


class Expectation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A figure, and the least and the most that it may be."""

    measure: Annotated[Measure, Says("Which figure.")]
    pool: Annotated[str, Says("Of which pool; absent, of all that there is."), Within(1, 253), NAME] = ""
    at: Annotated[Duration | None, Says("When; absent, at the end.")] = None
    at_least: Annotated[int | None, Says("The least it may be."), Within(0, 10**15)] = None
    at_most: Annotated[int | None, Says("The most it may be."), Within(0, 10**15)] = None
