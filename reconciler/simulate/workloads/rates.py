"""When jobs come and how long they run: draws of chance, and the hour of the day.

By day more comes than by night: the share of the busiest hour follows a cosine, which is 1 at that hour and the least
share half a day away from it.
"""

import math
from random import Random

from reconciler.model.instant import Instant
from reconciler.simulate.scenario.workload import Diurnal, ScenarioWorkload

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_LONGEST_TIMES = 50  # the average


def gap_ms(chance: Random, per_day: float) -> int:
    """Until the next of so many a day, each of which comes whenever it likes."""
    return max(1, round(chance.expovariate(per_day / DAY_MS)))


def share(now_ms: int, busiest_hour: int, least: float) -> float:
    """Of what there is in the busiest hour."""
    hours = now_ms % DAY_MS / HOUR_MS
    return least + (1 - least) * (1 + math.cos(2 * math.pi * (hours - busiest_hour) / 24)) / 2


def comes_now(chance: Random, diurnal: Diurnal, now: Instant) -> bool:
    """Whether one that would come in the busiest hour comes at this one."""
    return chance.random() < share(now, diurnal.busiest_hour, diurnal.quietest_percent.basis_points / 10_000)


def run_seconds(chance: Random, workload: ScenarioWorkload) -> int:
    """How long the next job runs."""
    average = (workload.runs_for.milliseconds if workload.runs_for else 0) / 1_000
    match workload.varies:
        case "No":
            return max(1, round(average))
        case "Mildly":
            return max(1, round(average * chance.uniform(0.5, 1.5)))
        case "Widely":
            return widely(chance, average)


def widely(chance: Random, average: float) -> int:
    """Log-normal, as run times in production are: most are short, a few very long."""
    sigma = 1.2
    drawn = chance.lognormvariate(math.log(max(1.0, average)) - sigma**2 / 2, sigma)
    return max(1, round(min(drawn, average * _LONGEST_TIMES)))
