"""A Mix: jobs of all sizes, as in production, and what share of them is of which size."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Says, Unit, Within
from reconciler.model.quantity import Percent

_Share = Annotated[int, Within(0, 1_000)]


class Shares(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How many jobs are of which size, in proportion to one another."""

    cpu_only: Annotated[_Share, Says("Jobs without a GPU.")] = 10
    part_of_gpu: Annotated[_Share, Says("Jobs that use part of one GPU; they are given a whole one.")] = 20
    one_gpu: Annotated[_Share, Says("Jobs with one GPU.")] = 45
    two_gpus: Annotated[_Share, Says("Jobs with two GPUs.")] = 8
    four_gpus: Annotated[_Share, Says("Jobs with four GPUs.")] = 6
    eight_gpus: Annotated[_Share, Says("Jobs with eight GPUs; a quarter of them on two nodes or more.")] = 11


class Mix(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What production looks like: many small jobs, few large ones, most of them short and some very long."""

    per_day: Annotated[int, Says("How many jobs on average."), Within(1, 1_000_000), Unit("per day")]
    shares: Annotated[Shares, Says("How many are of which size.")] = Shares()
    quietest_percent: Annotated[Percent, Says("What share of the busiest hour's jobs come in the quietest.")] = Percent(
        4_000
    )
    busiest_hour: Annotated[int, Says("When it is busiest, in UTC."), Within(0, 23), Unit("h")] = 14
