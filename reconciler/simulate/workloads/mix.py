"""A mix of jobs as production has it: mostly one GPU or less for minutes, now and then many nodes for a day.

The shares are of the order that has been published of large shared GPU clusters: three of four jobs ask for one GPU at
most, yet most of the GPU time goes to those that ask for whole nodes. Run times have a heavy tail: see `widely`.
"""

from random import Random

import msgspec

from reconciler.simulate.scenario.mix import Mix, Shares
from reconciler.simulate.workloads.rates import DAY_MS, gap_ms, share, widely

_TENTH_MILLI = 100


class Drawn(msgspec.Struct, frozen=True):
    """A job of the mix."""

    gpus: int  # of one pod
    gpu_milli: int
    pods: int
    seconds: int


# Mean run times, by the share.
_SECONDS = {
    "cpu_only": 900,
    "part_of_gpu": 1_500,
    "one_gpu": 3_000,
    "two_gpus": 5_400,
    "four_gpus": 7_200,
}
_GPUS = {"cpu_only": 0, "part_of_gpu": 1, "one_gpu": 1, "two_gpus": 2, "four_gpus": 4, "eight_gpus": 8}
# Of those with eight GPUs: how many in a thousand have so many pods, and run so long.
_GANGS = ((700, 1, 10_800), (210, 2, 18_000), (65, 4, 36_000), (25, 8, 64_800))


def draw(chance: Random, shares: Shares, most_gpus: int) -> Drawn:
    """The next job; a pod never asks for more than `most_gpus`."""
    names = [name for name in shares.__struct_fields__ if getattr(shares, name)]
    (name,) = chance.choices(names, [getattr(shares, each) for each in names])
    pods, average = 1, _SECONDS.get(name, 0)
    if name == "eight_gpus":
        ((_, pods, average),) = chance.choices(_GANGS, [per_mille for per_mille, _, _ in _GANGS])
    milli = _TENTH_MILLI * chance.randrange(1, 10) if name == "part_of_gpu" else 1_000
    return Drawn(min(_GPUS[name], most_gpus), milli, pods, widely(chance, average))


def mix_gap_ms(chance: Random, mix: Mix) -> int:
    """Until the next that would come if all hours were as busy as the busiest."""
    least = mix.quietest_percent.basis_points / 10_000
    return gap_ms(chance, mix.per_day * 2 / (1 + least))


def comes_in_mix(chance: Random, mix: Mix, now_ms: int) -> bool:
    """Whether one that would come in the busiest hour comes at this one."""
    return chance.random() < share(now_ms % DAY_MS, mix.busiest_hour, mix.quietest_percent.basis_points / 10_000)
