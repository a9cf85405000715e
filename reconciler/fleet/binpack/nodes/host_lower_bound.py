"""Owner of how many nodes the rules of hosts force: pods of which a node may have but so many need that many nodes."""

import numpy as np

from reconciler.fleet.binpack.nodes.host_rules import Profile, Profiles
from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.rows import Counts, Mask


class Forcing:
    """Pods without a node, by whom they count as, of those that limit their own kind."""

    def __init__(self, profiles: Profiles) -> None:
        limits: dict[int, int] = {}
        for each in profiles.all:
            for number in _limits_itself(each):
                limits[number] = max(limits.get(number, 0), each.rules[number])
        self._most: Counts = np.array([max(most, 1) for most in limits.values()], np.int64)
        self._left: Counts = np.zeros(len(limits), np.int64)
        numbers = {number: at for at, number in enumerate(limits)}
        self._of_profile = [
            [(numbers[number], each.means[number]) for number in _limits_itself(each)] for each in profiles.all
        ]
        self._members: Mask = np.zeros((len(limits), len(profiles.all)), bool)
        for profile, kinds in enumerate(self._of_profile):
            for kind, _ in kinds:
                self._members[kind, profile] = True
        self._unlimited = 0

    def add(self, profiles: Indices, counts: Counts) -> None:
        """So many more pods of each profile without a node; fewer where a count is below 0."""
        for profile, count in zip(profiles.tolist(), counts.tolist(), strict=True):
            kinds = self._of_profile[profile]
            for kind, many in kinds:
                self._left[kind] += many * count
            if not kinds:
                self._unlimited += count

    @property
    def nodes(self) -> int:
        """How many nodes there must be."""
        return int((-(-self._left // self._most)).max(initial=0))

    @property
    def most_on_one(self) -> int:
        """How many pods a node may have at most, as far as these rules go."""
        return self._unlimited + int(np.minimum(self._left, self._most).sum())

    def tightest(self) -> list[Mask]:
        """For each kind that forces that many nodes, the profiles that are of it: every node must have some of them."""
        needed = -(-self._left // self._most)
        return [self._members[at] for at in np.flatnonzero(needed == self.nodes).tolist()]


def _limits_itself(profile: Profile) -> list[int]:
    return [number for number in profile.rules if number in profile.means]
