"""Owner of the lots as they come together: pods tied to a place apart from others, pods that share a host as one."""

import numpy as np

from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation, RequiredAffinity
from reconciler.fleet.binpack.nodes.host_rules import Profile, Profiles
from reconciler.fleet.binpack.nodes.pod_groups import Gathered, Lot, distinct
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.obstacles import CompanionsAtOdds, CompanionsTooLarge
from reconciler.fleet.rows import Counts, Mask
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle

_Placed = dict[tuple[int, int], list[Pod]]  # by class and place


class Flock:
    """Pods that must share a host with their own kind: where the first goes all others follow, so they come as one."""

    def __init__(self, market: OfferMarket, in_place: Mask, width: int) -> None:
        self._market = market
        self._in_place = in_place  # the offers
        self.unit: list[Pod] = []
        self.request: Counts = np.zeros(width, np.int64)
        self.allowed: Mask | None = None
        self.means: dict[int, int] = {}
        self.rules: dict[int, int] = {}

    def add(self, pod: Pod, relation: Relation, request: Counts, allowed: Mask) -> Obstacle | None:
        """One more, if some node has room for all of them; else why not."""
        means = dict(self.means)
        for number in relation.means:
            means[number] = means.get(number, 0) + 1
        rules = {
            number: min(self.rules.get(number, most), relation.rules.get(number, most))
            for number, most in (self.rules | relation.rules).items()
        }
        if any(means.get(number, 0) > most for number, most in rules.items()):
            return CompanionsAtOdds()
        both = allowed if self.allowed is None else self.allowed & allowed
        together = self.request + request
        if not (self._market.holding(together) & both[self._market.look] & self._in_place).any():
            return CompanionsTooLarge()
        self.unit.append(pod)
        self.request, self.allowed, self.means, self.rules = together, both, means, rules
        return None


class Gathering:
    """What the lots are made from; `asked` and `allowed` are by class."""

    def __init__(self, company: PendingPodTerms, requested: Counts, allowed: list[Mask]) -> None:
        self._profiles = Profiles()
        self.refused: list[tuple[Pod, Obstacle]] = []  # pods that can't be with the others of their flock, and why
        self._company = company
        self._requested = requested
        self._allowed = allowed
        self._minded = _minded(company)
        self._profile_of: dict[int, Profile] = {}
        self._sizes, size_of = distinct(requested)
        self._size_of: list[int] = size_of.tolist()
        self._more_sizes: list[Counts] = []
        self._masks: dict[bytes, int] = {}
        self._mask_of: dict[int, int] = {}
        self._lots: dict[tuple[int, int, int, int], Lot] = {}

    def gathered(self) -> Gathered:
        """All of it."""
        masks: Mask = np.array([np.frombuffer(mask, bool) for mask in self._masks])
        sizes = np.concatenate([self._sizes, *[each[None, :] for each in self._more_sizes]])
        return Gathered(list(self._lots.values()), self._profiles, sizes, masks)

    def add(self, number: int, place: int, pods: list[Pod]) -> None:
        """Pods of a class, for a place."""
        relation = self._company.of[number]
        lot = self._lot(place, self._profile(relation), self._size_of[number], self._mask(self._allowed[number]))
        lot.units += [(pod,) for pod in pods]

    def add_tied(self, placed: _Placed, market: OfferMarket, place_of_offer: Indices) -> None:
        """Pods that are tied to places; those that must share a host with their own kind come as one."""
        flocks: dict[tuple[int, int], list[tuple[int, Pod]]] = {}
        leaders = self._leaders(placed)
        for (number, place), pods in placed.items():
            near = self._company.of[number].near
            if near is not None and near.is_first and (near.meant, place) in leaders:
                flocks.setdefault((near.meant, place), []).extend((number, pod) for pod in pods)
            else:
                self.add(number, place, pods)
        for (_, place), members in flocks.items():
            self._add_flock(Flock(market, place_of_offer == place, self._requested.shape[1]), place, members)

    def _leaders(self, placed: _Placed) -> set[tuple[int, int]]:
        """Whom the first must be among, and where: nobody else is there whom they could join."""
        wanting = {(near.meant, place) for number, place in placed if (near := self._near_host(number)) is not None}
        led = {
            (meant, place)
            for number, place in placed
            for meant in self._company.of[number].means
            if (meant, place) in wanting and not self._is_of(number, meant)
        }
        return wanting - led

    def _near_host(self, number: int) -> RequiredAffinity | None:
        near = self._company.of[number].near
        return near if near is not None and names.HOSTNAME in near.keys else None

    def _is_of(self, number: int, meant: int) -> bool:
        near = self._near_host(number)
        return near is not None and near.meant == meant and near.is_first

    def _add_flock(self, flock: Flock, place: int, members: list[tuple[int, Pod]]) -> None:
        for number, pod in members:
            why = flock.add(pod, self._company.of[number], self._requested[number], self._allowed[number])
            if why:
                self.refused.append((pod, why))
        if flock.allowed is None:
            return
        means = {number: count for number, count in sorted(flock.means.items()) if number in self._minded}
        profile = self._profiles.profile(means, flock.rules, None)
        self._more_sizes.append(flock.request)
        size = len(self._sizes) + len(self._more_sizes) - 1
        self._lot(place, profile, size, self._mask(flock.allowed)).units.append(tuple(flock.unit))

    def _lot(self, place: int, profile: Profile, size: int, mask: int) -> Lot:
        key = place, profile.number, size, mask
        lot = self._lots.get(key)
        if lot is None:
            lot = self._lots[key] = Lot(place, profile, size, mask)
        return lot

    def _profile(self, relation: Relation) -> Profile:
        profile = self._profile_of.get(relation.number)
        if profile is None:
            means = dict.fromkeys(sorted(relation.means & self._minded), 1)
            near = relation.near
            follows = near.meant if near is not None and names.HOSTNAME in near.keys else None
            profile = self._profile_of[relation.number] = self._profiles.profile(means, relation.rules, follows)
        return profile

    def _mask(self, allowed: Mask) -> int:
        # Most classes share the very same array.
        result = self._mask_of.get(id(allowed))
        if result is None:
            result = self._mask_of[id(allowed)] = self._masks.setdefault(allowed.tobytes(), len(self._masks))
        return result


def _minded(company: PendingPodTerms) -> frozenset[int]:
    """Of whom it matters how many are on a host."""
    limited = {number for each in company.relations for number in each.rules}
    near = (each.near for each in company.relations)
    return frozenset(limited | {each.meant for each in near if each is not None and names.HOSTNAME in each.keys})
