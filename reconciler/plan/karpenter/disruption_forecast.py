"""What becomes of the nodes that Karpenter drifts or deletes: who goes, when, what is in the way, and what it saves.

Drift: Karpenter deletes empty nodes first and buys nothing for them; for a busy one it buys another, waits until that
is initialized, and evicts the pods; in each case as many at once as the budgets for Drifted allow. In a NodePool of a
fixed size (spec.replicas) an empty node is replaced as well. What holds a node up keeps Karpenter from beginning with
it, and so do limits that leave no room for a replacement, and pods that would then find no place. A NodePool that is
deleted takes its NodeClaims with it, all at once, and no node that has none. Nobody calls back a node that is leaving.

Budgets are taken as they are now, and the times are rough: as if every wave took as long as the slowest node.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Cause, Consequence, Fate, Homeless, Share, summed
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.quantity import billionths
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.karpenter.node_fate import (
    Due,
    Intent,
    NodeOutlook,
    NodePoolSurvey,
    Rules,
    Surveyed,
    moving_pods,
    outlook,
)
from reconciler.plan.karpenter.reschedulability import Goes, homeless_of
from reconciler.plan.nodes.eviction import PodBudgets
from reconciler.plan.sums import NOTHING, UNKNOWN, CostChange, CostLedger, MachineType, Tariff, successor

# --- For how many nodes at once a NodePool's limits let Karpenter launch replacements.
#
# A replacement is launched before the node that it is for goes. Yet that node does not count when room is looked for,
# nor does one that is leaving: nodes go one for one, any number at a time, as long as no limit is exceeded beforehand;
# where one is, no replacement is launched at all. That machines are replaced by equals is taken for granted here.
#
# A NodePool of a fixed size (spec.replicas) is stricter: all its nodes count until they are gone, so that it takes room
# above them for each replacement.

_NODES = "nodes"


def room(spec: Mapping[str, Any], survey: NodePoolSurvey, gone: Collection[str]) -> int | None:
    """How many at once, when some nodes are gone; 0 is none at all, None is any number."""
    limits = {name: _milli(most) for name, most in (spec.get("limits") or {}).items()}
    if not limits:
        return None
    left = [surveyed_node for surveyed_node in survey.all() if surveyed_node.name not in gone]
    if spec.get("replicas") is not None:
        most = limits.get(_NODES)
        return None if most is None else max(0, most // 1000 - len(left))
    counted = [surveyed_node for surveyed_node in left if not surveyed_node.is_leaving]
    exceeded = any(
        most is not None and sum(_amount(surveyed_node, name) for surveyed_node in counted) > most
        for name, most in limits.items()
    )
    return 0 if exceeded else None


def _amount(surveyed_node: Surveyed, resource: str) -> int:
    """In thousandths."""
    return 1000 if resource == _NODES else _milli(surveyed_node.capacity.get(resource, "0")) or 0


def _milli(written: Any) -> int | None:
    """Rounded up; nothing where it can't be read: then it limits nothing here."""
    amount = billionths(str(written))
    return None if amount is None else -(-amount // 1_000_000)


# --- What the bill is less by, node by node, once the nodes of a fate are gone or replaced.
#
# A node that is replaced by one of its own sort costs what it did. Where its pool no longer allows its sort, what
# follows it is the pool's first choice: the difference is told where both prices are known, and else only that it is
# not. Reports price all consequences anew, with those of our own planners and by the prices of a change
# (impact/pricing.py).

_SAVES: frozenset[Fate] = frozenset({"removed", "deleted"})


class Till:
    """Owner of the machines that are left in a NodePool while its fates are told one after the other."""

    def __init__(self, declared: Declared[GpuPool] | None, machines: Counter[MachineType]) -> None:
        self._pool = declared.spec if declared is not None else None
        self._ledger = CostLedger(Tariff(self._pool) if self._pool is not None else None, machines)

    def saved(self, fate: Fate, machine: MachineType | None) -> CostChange:
        """By one node of this fate; its machine is then no longer among those that are left."""
        if machine is None:
            return NOTHING
        if fate in _SAVES:
            return self._ledger.exchange(machine, None)
        if fate == "replaced" and self._pool is not None:
            after = successor(self._pool, machine)
            return self._ledger.exchange(machine, after) if self._ledger.compares(machine, after) else UNKNOWN
        return NOTHING


# A GPU machine boots, joins, and its driver and device plugin come up: minutes, and Karpenter waits for all of it.
NEW_NODE_SECONDS = 300
# The machine of a drained node is shut down; until it is gone, it counts against the budgets.
NODE_GONE_SECONDS = 120

# What goes without any change goes first: of what is paid for anyway, the change may then find fewer nodes.
_CAUSES: tuple[Cause, ...] = ("standing", "change")
_ORDER: tuple[tuple[Cause, Fate], ...] = tuple((cause, fate) for cause in _CAUSES for fate in get_args(Fate))


class Surroundings(msgspec.Struct, frozen=True):
    """What the fate of a NodePool's nodes depends on besides the NodePool."""

    fleet: Fleet
    now: Instant
    budgets: PodBudgets
    pool: str  # the GpuPool that the NodePool is for
    declared: Declared[GpuPool] | None = None  # None: nobody declares it, and no price is known
    steps: int = 1_000_000  # that may be spent on looking for places for pods


class _Expected(msgspec.Struct, frozen=True, gc=False):
    """One node, and what is expected of it."""

    survey: Surveyed
    ahead: NodeOutlook
    intent: Intent
    cause: Cause

    @property
    def is_unconditional(self) -> bool:
        """Whether it goes without any change."""
        return self.ahead.leaving or self.cause == "standing"


class _Pace(msgspec.Struct, frozen=True):
    wave: int = 0
    seconds: int | None = None


def fates(
    node_pool: Unstructured, after_spec: Mapping[str, Any] | None, drift: Drift, around: Surroundings
) -> tuple[Consequence, ...]:
    """What becomes of them, by cause and fate; `after_spec` is None where the NodePool is deleted, whatever drifts."""
    survey = NodePoolSurvey(around.fleet, node_pool.name, around.now)
    groups: defaultdict[tuple[Cause, Fate], list[Due]] = defaultdict(list)
    for due in _within_limits(tuple(_dues(node_pool, after_spec, drift, around)), survey):
        groups[due.cause, due.fate].append(due)
    till = Till(around.declared, survey.machines())
    consequences = []
    for cause, fate in _ORDER:
        if dues := groups.get((cause, fate)):
            pace = _pace(fate, dues, len(groups.get((cause, "removed"), ())))
            consequences.append(_consequence(around.pool, dues, pace, till))
    return tuple(consequences)


def _within_limits(dues: Sequence[Due], survey: NodePoolSurvey) -> Iterator[Due]:
    """Each with the room that there is for replacements once the empty nodes, which go first, are gone."""
    gone: set[str] = set()
    for cause in _CAUSES:
        own = [due for due in dues if due.cause == cause]
        gone |= {due.ahead.name for due in own if due.fate == "removed"}
        space = room(own[0].rules.spec, survey, gone) if any(due.fate == "replaced" for due in own) else None
        yield from (msgspec.structs.replace(due, room=space) for due in own)


def _dues(
    node_pool: Unstructured, after_spec: Mapping[str, Any] | None, drift: Drift, around: Surroundings
) -> Iterator[Due]:
    survey = NodePoolSurvey(around.fleet, node_pool.name, around.now)
    claims = around.fleet.claims_of(node_pool.name)
    nodes = sum(not claim.says("InstanceTerminating") for claim in claims)
    live = Rules(node_pool.name, node_pool.spec, nodes, around.now)
    after = live if after_spec is None else Rules(node_pool.name, after_spec, nodes, around.now)
    live_is_shut, after_is_shut = live.wave() == 0, after.wave() == 0
    expected = [
        _Expected(surveyed_node, outlook(surveyed_node, around.budgets, around.fleet.gpu_requests), intent, cause)
        for surveyed_node, intent, cause in _intended(survey, drift, is_deleted=after_spec is None)
    ]
    expecteds = [each for each in expected if each.is_unconditional]
    changed = [each for each in expected if not each.is_unconditional]
    homeless = _homeless(around, expecteds, Goes(node_pool.name, node_pool.spec))
    homeless |= _homeless(around, changed, Goes(node_pool.name, after_spec, _names(expecteds)))
    is_opened = live_is_shut and not after_is_shut
    for each in expected:
        ahead, without_home = each.ahead, homeless.get(each.ahead.name, ())
        if each.is_unconditional and (ahead.leaving or not is_opened):
            yield Due(ahead, "drifts", "standing", live, live_is_shut, without_home)
        else:  # what the edit lets begin is its doing, though it drifted before
            yield Due(ahead, each.intent, "change", after, after_is_shut, without_home)


def _homeless(around: Surroundings, expected: Sequence[_Expected], goes: Goes) -> dict[str, tuple[Homeless, ...]]:
    pods = {each.ahead.name: moving_pods(each.survey) for each in expected if each.intent != "undrifted"}
    return homeless_of(around.fleet, goes, pods, around.steps)


def _names(expected: Sequence[_Expected]) -> frozenset[str]:
    return frozenset(each.ahead.name for each in expected)


def _intended(survey: NodePoolSurvey, drift: Drift, is_deleted: bool) -> Iterator[tuple[Surveyed, Intent, Cause]]:
    if is_deleted:
        for claim in survey.fleet.claims_of(survey.node_pool):
            yield survey.of_claim(claim), "deleted", "change"
        return
    claims = {claim.name: claim for claim in survey.fleet.claims_of(survey.node_pool)}
    wanted: tuple[tuple[Sequence[str], Intent, Cause], ...] = (
        (drift.already, "drifts", "standing"),
        (drift.fresh, "drifts", "change"),
        (drift.undrifted, "undrifted", "change"),
    )
    for listed, intent, cause in wanted:
        for name in listed:
            yield survey.of_claim(claims[name]), intent, cause


def _consequence(pool: str, dues: Sequence[Due], pace: _Pace, till: Till) -> Consequence:
    """All of `dues` share cause, fate and rules."""
    first = dues[0]
    like = Consequence(
        pool=pool,
        node_pool=first.rules.node_pool,
        cause=first.cause,
        fate=first.fate,
        nodes=(),
        gpus=0,
        gpus_in_use=0,
        pods=0,
        micro_dollars_per_hour=0,
        wave=pace.wave,
        seconds=pace.seconds,
    )
    return summed(like, [(due.ahead.name, _share(due, till)) for due in sorted(dues, key=lambda due: due.ahead.name)])


def _share(due: Due, till: Till) -> Share:
    ahead, saved = due.ahead, till.saved(due.fate, due.ahead.machine)
    pods = 0 if due.fate == "undrifted" else ahead.pods
    return Share(
        gpus=ahead.gpus,
        gpus_in_use=ahead.gpus_in_use,
        pods=pods,
        micro_dollars_per_hour=saved.micro_dollars_per_hour,
        unpriced=saved.unpriced,
        held_by=tuple(sorted(due.held_by)),
        homeless=due.homeless,
    )


def _pace(fate: Fate, dues: Sequence[Due], gone_before: int) -> _Pace:
    """How many at once, and roughly how long all of them take."""
    ahead = [due.ahead for due in dues]
    waits = max(each.wait_seconds for each in ahead)
    drains = max(each.drain_seconds for each in ahead)
    match fate:
        case "removed":
            return _waves(dues, waits, NODE_GONE_SECONDS + drains, gone_before=0)
        case "replaced":
            return _waves(dues, waits, NEW_NODE_SECONDS + drains, gone_before)
        case "blocked":
            return _Pace()
        case "deleted":
            return _Pace(seconds=None if any(each.stalls for each in ahead) else waits + drains + NODE_GONE_SECONDS)
        case _:
            return _Pace(seconds=0)


def _waves(dues: Sequence[Due], waits_seconds: int, wave_seconds: int, gone_before: int) -> _Pace:
    # None: no budget. 0: the budgets are shut, and only nodes that are past them are left.
    wave = dues[0].rules.wave(gone_before) or 0
    if room_left := dues[0].room:
        wave = min(wave, room_left) if wave else room_left
    waves = -(-len(dues) // wave) if wave else 1
    return _Pace(wave, waits_seconds + waves * wave_seconds)
