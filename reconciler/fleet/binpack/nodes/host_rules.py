"""Host rules as tables: which pods may share a host, and the state of a host as it fills (see domains/pod_terms.py)."""

from collections.abc import Sequence

import numpy as np

from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.rows import Counts, Mask

_ANY = 2**31
_MOST_KNOWN = 10_000


class Profile:
    """The host rules of a pod, or of pods packed as a unit."""

    __slots__ = ("concerns", "follows", "is_plain", "means", "number", "rules")

    def __init__(self, number: int, means: dict[int, int], rules: dict[int, int], follows: int | None) -> None:
        self.number = number
        self.means = means  # term -> how often the pod counts for the term
        self.rules = rules  # term -> maximum number of selected pods on the host
        self.follows = follows  # the term of pods that must be on the host
        self.concerns = tuple({**means, **rules})  # terms whose count on the host matters once the pod is there
        self.is_plain = not self.concerns and follows is None  # without any host rules


class Profiles:
    """All profiles, and for each term the profiles that it affects."""

    def __init__(self) -> None:
        self.all: list[Profile] = []
        self.followers: list[Profile] = []
        self._known: dict[object, Profile] = {}
        self._concerned: dict[int, list[int]] = {}  # term -> numbers of profiles
        self._tables: dict[int, tuple[Indices, Counts, Counts]] = {}
        self._welcome: dict[tuple[int, int, int], Mask] = {}

    def profile(self, means: dict[int, int], rules: dict[int, int], follows: int | None) -> Profile:
        """The profile with these rules, created if new."""
        key = tuple(sorted(means.items())), tuple(sorted(rules.items())), follows
        profile = self._known.get(key)
        if profile is None:
            profile = self._known[key] = Profile(len(self.all), means, rules, follows)
            self.all.append(profile)
            for each in profile.concerns:
                self._concerned.setdefault(each, []).append(profile.number)
            if follows is not None:
                self.followers.append(profile)
        return profile

    def welcome(self, number: int, count: int, most: int) -> Mask:
        """The profiles allowed on a host with `count` pods of a term, at most `most`."""
        key = number, count, most
        mask = self._welcome.get(key)
        if mask is None:
            if len(self._welcome) >= _MOST_KNOWN:
                self._welcome.clear()
            mask = self._welcome[key] = np.ones(len(self.all), bool)
            profiles, adding, allowing = self._table(number)
            mask[profiles] = adding + count <= np.minimum(allowing, most)
        return mask

    def _table(self, number: int) -> tuple[Indices, Counts, Counts]:
        """The profiles that a term affects, their contribution to its count, and their limits."""
        result = self._tables.get(number)
        if result is None:
            concerned = [self.all[at] for at in self._concerned.get(number, ())]
            result = self._tables[number] = (
                np.array([each.number for each in concerned], np.intp),
                np.array([each.means.get(number, 0) for each in concerned], np.int64),
                np.array([each.rules.get(number, _ANY) for each in concerned], np.int64),
            )
        return result

    def first(self) -> Mask:
        """The profiles allowed on an empty host: all except those with affinity to other pods."""
        return np.array([each.follows is None for each in self.all], bool)


class HostOccupancy:
    """Owner of the occupancy of one host, as far as host rules matter."""

    __slots__ = ("_counts", "_most", "_profiles", "welcome")

    def __init__(self, profiles: Profiles, first: Mask) -> None:
        self._profiles = profiles
        self._counts: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self.welcome: Mask = first.copy()  # profiles that may still be added

    def admit(self, profile: Profile, count: int = 1) -> None:
        """Adds pods of a profile."""
        if profile.is_plain:
            return
        counts, most = self._counts, self._most
        unlocked = [number for number in profile.means if number not in counts] if self._profiles.followers else ()
        for number, many in profile.means.items():
            counts[number] = counts.get(number, 0) + many * count
        for number, allowed in profile.rules.items():
            most[number] = min(allowed, most.get(number, _ANY))
        for number in profile.concerns:
            self.welcome &= self._profiles.welcome(number, counts.get(number, 0), most.get(number, _ANY))
        if unlocked:
            self._unlock(unlocked)

    def takes(self, profile: Profile) -> bool:
        """Whether one more pod of the profile may be added."""
        if profile.follows is not None and not self._counts.get(profile.follows):
            return False
        counts, most = self._counts, self._most
        return all(counts.get(at, 0) + many <= most.get(at, _ANY) for at, many in profile.means.items()) and all(
            counts.get(at, 0) + profile.means.get(at, 0) <= allowed for at, allowed in profile.rules.items()
        )

    def _unlock(self, numbers: Sequence[int]) -> None:
        """Allows the profiles whose affinity is now satisfied."""
        for each in self._profiles.followers:
            if each.follows in numbers and self.takes(each):
                self.welcome[each.number] = True


# --- Lower bound on the number of nodes implied by per-host pod limits.


class Forcing:
    """Pods without a node, by the term that limits their own kind."""

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
        """Adds pods without a node by profile; removes them for negative counts."""
        for profile, count in zip(profiles.tolist(), counts.tolist(), strict=True):
            kinds = self._of_profile[profile]
            for kind, many in kinds:
                self._left[kind] += many * count
            if not kinds:
                self._unlimited += count

    @property
    def nodes(self) -> int:
        """The lower bound on the number of nodes."""
        return int((-(-self._left // self._most)).max(initial=0))

    @property
    def most_on_one(self) -> int:
        """Maximum number of pods per node under these rules."""
        return self._unlimited + int(np.minimum(self._left, self._most).sum())

    def tightest(self) -> list[Mask]:
        """For each kind that implies the bound, its profiles: every node must have some of them."""
        needed = -(-self._left // self._most)
        return [self._members[at] for at in np.flatnonzero(needed == self.nodes).tolist()]


def _limits_itself(profile: Profile) -> list[int]:
    return [number for number in profile.rules if number in profile.means]
