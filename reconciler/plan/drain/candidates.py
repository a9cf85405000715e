"""Which nodes may become candidates at all: an ordered table, the first rule that applies says why not.

What is left is tried: first those that are candidates already, the oldest first, so that a timer is not reset because
another node came to be tried before; then those that are not ready, those that are used least, those that save most for
the least loss (beginning/worth.py), and by name. Where there was no time for all of them, the next plan begins with the
first that was left out.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, timestamp
from reconciler.model.planned.reason import Reason
from reconciler.plan.drain import reasons
from reconciler.plan.drain.beginning.worth import Key, Worth
from reconciler.plan.drain.limits import Budget, Least, budgets_of
from reconciler.plan.drain.setbacks import rests_until
from reconciler.plan.drain.site import Seen, Site, ref_of, why
from reconciler.plan.drain.usage import Usage, usage_of
from reconciler.plan.eviction import stays_until_of
from reconciler.plan.removal import untouchable
from reconciler.plan.requests.settling import settles_at
from reconciler.plan.sums import brake
from reconciler.plan.sums.usage import is_empty


class Ground:
    """Owner of what the rules look up."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.setbacks = {(each.node, each.uid): each for each in site.memory.setbacks}
        self.wakes: list[Instant] = []  # when nodes have settled

    @cached_property
    def budgets(self) -> dict[str, Budget]:
        return budgets_of(self.site)

    @cached_property
    def worth(self) -> Worth:
        return Worth(self.site)

    @cached_property
    def least(self) -> Least:
        return Least(self.site)

    def usage(self, seen: Seen) -> Usage:
        what_if = self.site.fleet.what_if
        return usage_of(what_if, what_if.rows.row_of[seen.name])


Facts = dict[str, str | int]
Rule = Callable[[Ground, Seen], Reason | None]


def _of_others(_: Ground, seen: Seen) -> Reason | None:
    return untouchable(seen.node)


def _draining(_: Ground, seen: Seen) -> Reason | None:
    if seen.draining is None:
        return None
    since = seen.draining.since
    return why(seen, reasons.BEING_DRAINED, since=seen.draining.value if since is None else timestamp(since))


def _scaled_down(_: Ground, seen: Seen) -> Reason | None:
    return why(seen, reasons.SCALED_DOWN) if seen.node.taint(names.DELETION_TIME) is not None else None


def _frozen(ground: Ground, seen: Seen) -> Reason | None:
    pool = ground.site.pools[seen.node.pool]
    if pool.spec.suspend:
        facts = {"what": f"GpuPool/{pool.name}", "until": "until suspend is taken back"}
        return why(seen, reasons.FROZEN_NODE, **facts)
    freeze = ground.site.freezes.of_node(seen.name)
    return why(seen, reasons.FROZEN_NODE, what=freeze.what, until=freeze.told) if freeze else None


def _others_turn(ground: Ground, seen: Seen) -> Reason | None:
    planner = ground.site.draft.claimed_by(ref_of(seen.node))
    # That a candidate gets a label is no reason to take it for something else.
    return why(seen, reasons.OTHERS_TURN, planner=planner) if planner and seen.candidate is None else None


def _settling(ground: Ground, seen: Seen) -> Reason | None:
    claim = ground.site.fleet.claims_on(seen.node.pool).get(seen.name)
    # Whether a node is ready is known to come and go: what was a candidate before has settled.
    settles = settles_at(seen.node, claim, ground.site.now) if seen.candidate is None else None
    if settles is None:
        return None
    ground.wakes.append(settles)
    return why(seen, reasons.JUST_CAME, time=timestamp(settles))


def _opted_out(ground: Ground, seen: Seen) -> Reason | None:
    annotations = seen.node.metadata.annotations
    if annotations.scale_down_disabled == "true":
        return why(seen, reasons.OPTED_OUT, annotation=f"{names.SCALE_DOWN_DISABLED}: true")
    if stays_until_of(annotations.do_not_disrupt, seen.node.metadata.creation_timestamp) > ground.site.now:
        return why(seen, reasons.OPTED_OUT, annotation=f"{names.DO_NOT_DISRUPT}: {annotations.do_not_disrupt}")
    return None


def _set_back(ground: Ground, seen: Seen) -> Reason | None:
    found = ground.setbacks.get((seen.name, seen.node.metadata.uid))
    if found is None or rests_until(found) <= ground.site.now:
        return None
    until = timestamp(rests_until(found))
    return why(seen, reasons.SET_BACK, at=timestamp(found.at), code=found.code, times=found.times, until=until)


def _lent(ground: Ground, seen: Seen) -> Reason | None:
    gpus = ground.site.fleet.lent.get(seen.name, 0)
    return why(seen, reasons.LENT, gpus=gpus) if gpus else None


def _empty(ground: Ground, seen: Seen) -> Reason | None:
    return why(seen, reasons.EMPTY) if is_empty(ground.site.fleet, seen.node) else None


def _pool_unready(ground: Ground, seen: Seen) -> Reason | None:
    pool = ground.site.fleet.pool(seen.node.pool)
    if not brake.is_on(len(pool.nodes), pool.unready):
        return None
    return why(seen, reasons.POOL_UNREADY, unready=pool.unready, size=len(pool.nodes))


def at_minimum(ground: Ground, seen: Seen) -> Reason | None:
    """Why its pool may lose no node more."""
    budget = ground.budgets.get(seen.node.pool)
    if budget is None or budget.left:
        return None
    facts: Facts = {"size": budget.size, "leaving": budget.leaving, "floor": budget.floor, "why": budget.reason}
    facts |= {"used": budget.used, "total": budget.total, "gpus_per_node": budget.gpus_per_node}
    return why(seen, reasons.AT_MINIMUM, provisioner=budget.provisioner, **facts)


def cluster_at_minimum(ground: Ground, seen: Seen) -> Reason | None:
    """Why the cluster may lose no such node more."""
    lacking = ground.least.why_not(seen)
    return why(seen, reasons.CLUSTER_AT_MINIMUM, "clusterMin", **lacking) if lacking else None


def _too_much_used(ground: Ground, seen: Seen) -> Reason | None:
    if not seen.node.is_ready:  # what runs on one that is not ready is of no use to anybody
        return None
    usage, threshold = ground.usage(seen), seen.policy.spec.utilization_threshold_percent
    if usage.is_below(threshold):
        return None
    facts: Facts = {"used": usage.used, "total": usage.total, "resource": usage.resource, "percent": usage.percent}
    return why(seen, reasons.TOO_MUCH_USED, "utilizationThresholdPercent", threshold=threshold, **facts)


RULES: tuple[Rule, ...] = (
    _of_others,
    _draining,
    _scaled_down,
    _frozen,
    _others_turn,
    _settling,
    _opted_out,
    _set_back,
    _lent,
    _empty,
    _pool_unready,
    at_minimum,
    cluster_at_minimum,
    _too_much_used,
)


def why_left_alone(ground: Ground, seen: Seen) -> Reason | None:
    """Why nothing that runs there is to be moved, whichever node that were for."""
    return next((found for rule in (_of_others, _frozen, _opted_out) if (found := rule(ground, seen))), None)


class Eligible(msgspec.Struct, frozen=True):
    """What is tried, in order, and why the others are not."""

    order: tuple[Seen, ...]
    refused: dict[str, Reason]  # by the name of a node


def eligible(ground: Ground) -> Eligible:
    """Nothing is changed by it."""
    order: list[Seen] = []
    refused: dict[str, Reason] = {}
    for seen in ground.site.seen:
        found = next((reason for rule in RULES if (reason := rule(ground, seen)) is not None), None)
        if found is None:
            order.append(seen)
        else:
            refused[seen.name] = found
    return Eligible(tuple(_in_order(ground, order)), refused)


def _in_order(ground: Ground, found: Sequence[Seen]) -> Iterator[Seen]:
    before = sorted((each for each in found if _since(each) is not None), key=lambda each: (_since(each), each.name))
    keys = {each.name: _key(ground, each) for each in found if _since(each) is None}
    others = sorted((each for each in found if each.name in keys), key=lambda each: keys[each.name])
    yield from _from(before, ground.site.memory.begin_at)
    yield from _from(others, ground.site.memory.begin_at)


def _since(seen: Seen) -> Instant | None:
    return seen.candidate.since if seen.candidate is not None else None


def _from(order: Sequence[Seen], name: str) -> list[Seen]:
    """The same, beginning with that one, if it is among them."""
    at = next((place for place, each in enumerate(order) if each.name == name), 0)
    return [*order[at:], *order[:at]]


def _key(ground: Ground, seen: Seen) -> tuple[bool, int, Key, str]:
    return seen.node.is_ready, ground.usage(seen).percent, ground.worth.key((seen,)), seen.name
