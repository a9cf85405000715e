"""Owner of the assignment of pods to places, for pods whose terms depend on the place; other pods may go anywhere.

Pods are assigned one after another to an allowed place: the cheapest first, then the one that evens out the spread. The
scheduler can bind them later in the same order: each pod passes all filters at its turn. Pods that fit nowhere yet are
retried after the others, until there is no further progress.
"""

import numpy as np

from reconciler.fleet.binpack.domains.domains import Neighbours
from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation, RequiredAffinity
from reconciler.fleet.binpack.inputs import PendingPods, Steps
from reconciler.fleet.binpack.nodes.host_rules import Profile, Profiles
from reconciler.fleet.binpack.nodes.pod_groups import Gathered, Lot, distinct
from reconciler.fleet.binpack.offers import Indices, OfferMarket
from reconciler.fleet.obstacles import CompanionsAtOdds, CompanionsTooLarge
from reconciler.fleet.rows import Counts, Mask
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle


class Sharing:
    """Assigned pods by class and place."""

    def __init__(
        self, waiting: list[PendingPods], company: PendingPodTerms, neighbours: Neighbours, steps: Steps
    ) -> None:
        self._waiting = waiting
        self._company = company
        self._neighbours = neighbours
        self._steps = steps
        self._load: dict[int, int] = {}
        self.order: list[tuple[int, int]] = []  # class, place; one entry per assigned pod, in binding order
        self.refused: dict[int, tuple[int, Obstacle]] = {}  # class -> number of pods without a place, and the obstacle
        self.tied = [neighbours.concern(company.of[each.number]) for each in waiting]

    def share_out(self, costs: dict[int, list[int]]) -> None:
        """Assigns a place to each pod that depends on one;

        `costs` by class and place, for classes that may go anywhere.
        """
        choices = {at: [place for place, cost in enumerate(found) if cost != NOWHERE] for at, found in costs.items()}
        left = {at: len(self._waiting[at].pods) for at in costs}
        levels = self._levels(list(costs))
        pending = sorted(left, key=lambda at: (levels[at], len(choices[at]), at))
        moved = True
        while pending and moved and not self._steps.are_spent:
            moved = False
            for at in pending:
                placed = self._place(at, left[at], [(costs[at][place], place) for place in choices[at]])
                left[at] -= placed
                moved |= placed > 0
            pending = [at for at in pending if left[at]]
        for at in pending:
            self.refused[at] = left[at], self._neighbours.why(at)

    @property
    def asks_hosts(self) -> bool:
        """Whether any pod must share a host with others."""
        return any(_on_host(self._company.of[each.number]) is not None for each in self._waiting)

    def kept(self, nodes: list[int | None]) -> list[bool]:
        """Which pods of the order still pass, one after the other, given each pod's node; None: the pod has no node."""
        self._neighbours.reset()
        on_host: set[tuple[int | None, int]] = set()
        result = []
        for (at, place), node in zip(self.order, nodes, strict=True):
            near = _on_host(self._company.of[at])
            passes = node is not None and self._neighbours.allow(at, place)
            if passes and near is not None and (node, near.meant) not in on_host:
                passes = near.is_first and not self._neighbours.total(near.meant)
            if passes:
                self._neighbours.add(at, place)
                on_host |= {(node, meant) for meant in self._company.of[at].means}
            result.append(passes)
        return result

    def _levels(self, numbers: list[int]) -> dict[int, int]:
        """Dependency levels: pods with affinity come after the pods they need, unless the dependency is mutual."""
        holders: dict[int, list[int]] = {}
        for at in numbers:
            near = self._company.of[at].near
            if near is not None:
                holders.setdefault(near.meant, []).append(at)
        levels = dict.fromkeys(numbers, 0)
        for _ in range(len(holders)):
            highest = dict.fromkeys(holders, -1)
            for at in numbers:
                relation = self._company.of[at]
                for meant in relation.means & holders.keys():
                    if relation.near is None or relation.near.meant != meant:
                        highest[meant] = max(highest[meant], levels[at])
            raised = {at: highest[meant] + 1 for meant, those in holders.items() for at in those}
            if all(levels[at] == level for at, level in raised.items()):
                break
            levels |= raised
        return levels

    def handed_out(self) -> dict[tuple[int, int], list[Pod]]:
        """The pods by class and place, in binding order."""
        pods: dict[tuple[int, int], list[Pod]] = {}
        done: dict[int, int] = {}
        for at, place in self.order:
            number = done.get(at, 0)
            done[at] = number + 1
            pods.setdefault((at, place), []).append(self._waiting[at].pods[number])
        return pods

    def _place(self, at: int, count: int, choices: list[tuple[int, int]]) -> int:
        """Assigns as many of `count` pods as possible; returns the number."""
        neighbours = self._neighbours
        together = neighbours.may_go_together(at)
        placed = 0
        while placed < count and not self._steps.are_spent:
            self._steps.take(len(choices))
            best = min(
                (
                    (cost, neighbours.evens_out(at, place), self._load.get(place, 0), place)
                    for cost, place in choices
                    if neighbours.allow(at, place)
                ),
                default=None,
            )
            if best is None:
                break
            cost, _, load, place = best
            many = count - placed if together else 1
            neighbours.add(at, place, many)
            self._load[place] = load + cost * many
            self.order += [(at, place)] * many
            placed += many
        return placed


def _on_host(relation: Relation) -> RequiredAffinity | None:
    """The affinity of such a pod to pods on the same host."""
    return relation.near if relation.near is not None and names.HOSTNAME in relation.near.keys else None


# --- Owner of the pod groups during their construction: pods bound to a place, and pods that share a host.

_Placed = dict[tuple[int, int], list[Pod]]  # by class and place


class Flock:
    """Pods with affinity to their own class on the same host: all go to one node, so they are packed as a unit."""

    def __init__(self, market: OfferMarket, in_place: Mask, width: int) -> None:
        self._market = market
        self._in_place = in_place  # the offers of the place
        self.unit: list[Pod] = []
        self.request: Counts = np.zeros(width, np.int64)
        self.allowed: Mask | None = None
        self.means: dict[int, int] = {}
        self.rules: dict[int, int] = {}

    def add(self, pod: Pod, relation: Relation, request: Counts, allowed: Mask) -> Obstacle | None:
        """Adds a pod if some node has room for all of them; otherwise returns the obstacle."""
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
    """Builds the pod groups; `asked` and `allowed` are by class."""

    def __init__(self, company: PendingPodTerms, requested: Counts, allowed: list[Mask]) -> None:
        self._profiles = Profiles()
        self.refused: list[tuple[Pod, Obstacle]] = []  # pods that cannot join their unit, and why
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
        """The finished groups."""
        masks: Mask = np.array([np.frombuffer(mask, bool) for mask in self._masks])
        sizes = np.concatenate([self._sizes, *[each[None, :] for each in self._more_sizes]])
        return Gathered(list(self._lots.values()), self._profiles, sizes, masks)

    def add(self, number: int, place: int, pods: list[Pod]) -> None:
        """Adds pods of a class to a place."""
        relation = self._company.of[number]
        lot = self._lot(place, self._profile(relation), self._size_of[number], self._mask(self._allowed[number]))
        lot.units += [(pod,) for pod in pods]

    def add_tied(self, placed: _Placed, market: OfferMarket, place_of_offer: Indices) -> None:
        """Adds pods that depend on places. Pods that must share a host with their own class are added as units."""
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
        """The classes and places that others must follow: their first pods have no other pods to join."""
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
        # Most classes share the same array.
        result = self._mask_of.get(id(allowed))
        if result is None:
            result = self._mask_of[id(allowed)] = self._masks.setdefault(allowed.tobytes(), len(self._masks))
        return result


def _minded(company: PendingPodTerms) -> frozenset[int]:
    """The terms for which the number of pods per host matters."""
    limited = {number for each in company.relations for number in each.rules}
    near = (each.near for each in company.relations)
    return frozenset(limited | {each.meant for each in near if each is not None and names.HOSTNAME in each.keys})


# --- Cost of hosting a pod: the fraction of a node's price for the pod's share of its scarcest resource.

NOWHERE = 2**62
_PARTS = 1024  # fractions of a micro-dollar, the precision of node shares


class Hosting:
    """Owner of the computed costs, by place."""

    def __init__(self, market: OfferMarket, place_of_look: Indices, places: int) -> None:
        self._market = market
        self._place_of_offer = place_of_look[market.look]
        self._places = places
        self._known: dict[tuple[bytes, int], list[int]] = {}

    def costs(self, request: Counts, allowed: Mask) -> list[int]:
        """The cost in each place; NOWHERE if no offer fits."""
        key = request.tobytes(), id(allowed)
        result = self._known.get(key)
        if result is None:
            result = self._known[key] = self._costs(request, allowed)
        return result

    def possible(self, requested: Counts, allowed: list[Mask]) -> Mask:
        """Whether a pod of each class fits on any offer."""
        result: Mask = np.zeros(len(allowed), bool)
        alike: dict[int, list[int]] = {}
        for number, mask in enumerate(allowed):
            alike.setdefault(id(mask), []).append(number)
        for numbers in alike.values():
            result[numbers] = self._any_holds(requested[numbers], allowed[numbers[0]])
        return result

    def _any_holds(self, requested: Counts, allowed: Mask) -> Mask:
        """Most classes fit one of the few offers with the most of some resource; the others are checked one by one."""
        offers = np.flatnonzero(self._market.open & allowed[self._market.look])
        mask: Mask = np.zeros(len(requested), bool)
        if not len(offers):
            return mask
        room = self._market.room[:, offers]
        shares = (room / np.maximum(room.max(axis=1, initial=1), 1)[:, None]).sum(axis=0)
        for offer in sorted({int(shares.argmax()), *room.argmax(axis=1).tolist()}):
            mask |= (requested <= room[:, offer]).all(axis=1)
        for number in np.flatnonzero(~mask).tolist():
            mask[number] = bool((room >= requested[number][:, None]).all(axis=0).any())
        return mask

    def _costs(self, request: Counts, allowed: Mask) -> list[int]:
        market = self._market
        will_do = market.holding(request) & allowed[market.look]
        share = np.zeros(len(market.price))
        for amount, room in zip(request.tolist(), market.room, strict=True):
            if amount:
                share = np.maximum(share, amount / np.maximum(room, 1))
        cost = np.where(will_do, np.rint(share * market.price * _PARTS).astype(np.int64), NOWHERE)
        mask = np.full(self._places, NOWHERE, np.int64)
        np.minimum.at(mask, self._place_of_offer, cost)
        costs: list[int] = mask.tolist()
        return costs
