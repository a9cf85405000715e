"""Forecast of nodes that Karpenter disrupts: which, when, obstacles, and cost.

Drift: Karpenter deletes empty nodes first without replacement. For a busy node it launches a replacement, waits
until that is initialized, and evicts the pods. Budgets for Drifted limit both. In a NodePool of a fixed size
(spec.replicas) empty nodes are replaced too. Karpenter does not begin with a node that has an obstacle, if limits
leave no room for a replacement, or if its pods would not fit elsewhere. Deleting a NodePool deletes all of its
NodeClaims at once, but no node without a NodeClaim. A deletion that has begun cannot be stopped.

Budgets are evaluated at the present time, and durations are estimates: every wave takes as long as its slowest node.
"""

from collections import defaultdict
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
from reconciler.plan.sums import NOTHING, UNKNOWN, CostChange, CostLedger, Tariff, successor

# --- Number of replacements that a NodePool's limits allow at once.
#
# A replacement is launched before the old node is deleted, but the old node does not count against the limits then, nor
# do departing nodes. So nodes are replaced one for one, any number at a time, as long as no limit is exceeded
# beforehand; if one is exceeded, no replacement is launched. Replacements are assumed to be of equal size.
#
# A NodePool of a fixed size (spec.replicas) is stricter: all its nodes count until they are deleted, so each
# replacement needs room within the limits.

_NODES = "nodes"


def room(spec: Mapping[str, Any], survey: NodePoolSurvey, gone: Collection[str]) -> int | None:
    """Number of replacements at once, after some nodes are deleted; 0 is none, None is unlimited."""
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
    """In thousandths, rounded up; None if the value cannot be parsed: it is no limit here."""
    amount = billionths(str(written))
    return None if amount is None else -(-amount // 1_000_000)


# --- Cost difference of each node that is deleted or replaced.
#
# A replacement of the same machine type costs the same. If the pool no longer allows the type, the replacement is the
# first choice of the pool: the difference is known if both prices are. Reports price all consequences again, together
# with those of our own planners and with the prices of a change (impact/pricing.py).

_SAVES: frozenset[Fate] = frozenset({"removed", "deleted"})


def _saved(declared: Declared[GpuPool] | None, ledger: CostLedger, due: Due) -> CostChange:
    """Cost difference of one node; its machine is then no longer among the remaining ones of the ledger."""
    machine = due.ahead.machine
    if machine is None:
        return NOTHING
    if due.fate in _SAVES:
        return ledger.exchange(machine, None)
    if due.fate == "replaced" and declared is not None:
        after = successor(declared.spec, machine)
        return ledger.exchange(machine, after) if ledger.compares(machine, after) else UNKNOWN
    return NOTHING


# A GPU machine boots, joins, and starts its driver and device plugin. Karpenter waits several minutes for that.
NEW_NODE_SECONDS = 300
# A drained node's machine shuts down; until it is deleted, it counts against the budgets.
NODE_GONE_SECONDS = 120

# Nodes that are removed without any change come first: the change may then find fewer nodes.
_CAUSES: tuple[Cause, ...] = ("standing", "change")
_ORDER: tuple[tuple[Cause, Fate], ...] = tuple((cause, fate) for cause in _CAUSES for fate in get_args(Fate))


class Surroundings(msgspec.Struct, frozen=True):
    """Context that determines the fate of a NodePool's nodes."""

    fleet: Fleet
    now: Instant
    budgets: PodBudgets
    pool: str  # the GpuPool of the NodePool
    declared: Declared[GpuPool] | None = None  # None: no policy declares it, and no price is known
    steps: int = 1_000_000  # limit of the placement search


class _Expected(msgspec.Struct, frozen=True, gc=False):
    """One node with its expected fate."""

    survey: Surveyed
    ahead: NodeOutlook
    intent: Intent
    cause: Cause

    @property
    def is_unconditional(self) -> bool:
        """Whether the node is removed without any change."""
        return self.ahead.leaving or self.cause == "standing"


class _Pace(msgspec.Struct, frozen=True):
    wave: int = 0
    seconds: int | None = None


def fates(
    node_pool: Unstructured, after_spec: Mapping[str, Any] | None, drift: Drift, around: Surroundings
) -> tuple[Consequence, ...]:
    """Consequences by cause and fate; `after_spec` is None if the NodePool is deleted, whatever drifts."""
    survey = NodePoolSurvey(around.fleet, node_pool.name, around.now)
    groups: defaultdict[tuple[Cause, Fate], list[Due]] = defaultdict(list)
    for due in _within_limits(tuple(_dues(node_pool, after_spec, drift, around)), survey):
        groups[due.cause, due.fate].append(due)
    tariff = Tariff(around.declared.spec) if around.declared is not None else None
    ledger = CostLedger(tariff, survey.machines())
    consequences = []
    for cause, fate in _ORDER:
        if dues := groups.get((cause, fate)):
            pace = _pace(fate, dues, len(groups.get((cause, "removed"), ())))
            consequences.append(_consequence(around, dues, pace, ledger))
    return tuple(consequences)


def _within_limits(dues: Sequence[Due], survey: NodePoolSurvey) -> Iterator[Due]:
    """Adds the room for replacements after empty nodes, which are deleted first."""
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
    others = frozenset(each.ahead.name for each in expecteds)
    homeless |= _homeless(around, changed, Goes(node_pool.name, after_spec, others))
    is_opened = live_is_shut and not after_is_shut
    for each in expected:
        ahead, without_home = each.ahead, homeless.get(each.ahead.name, ())
        if each.is_unconditional and (ahead.leaving or not is_opened):
            yield Due(ahead, "drifts", "standing", live, live_is_shut, without_home)
        else:  # nodes that the edit unblocks count as caused by it, though they drifted before
            yield Due(ahead, each.intent, "change", after, after_is_shut, without_home)


def _homeless(around: Surroundings, expected: Sequence[_Expected], goes: Goes) -> dict[str, tuple[Homeless, ...]]:
    pods = {each.ahead.name: moving_pods(each.survey) for each in expected if each.intent != "undrifted"}
    return homeless_of(around.fleet, goes, pods, around.steps)


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


def _consequence(around: Surroundings, dues: Sequence[Due], pace: _Pace, ledger: CostLedger) -> Consequence:
    """`dues` share cause, fate and rules."""
    first = dues[0]
    like = Consequence(
        pool=around.pool,
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
    ordered = sorted(dues, key=lambda due: due.ahead.name)
    return summed(like, [(due.ahead.name, _share(due, _saved(around.declared, ledger, due))) for due in ordered])


def _share(due: Due, saved: CostChange) -> Share:
    ahead = due.ahead
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
    """Wave size, and estimated duration of all waves."""
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
    # None: no budget. 0: the budgets are closed, and only nodes past them are left.
    wave = dues[0].rules.wave(gone_before) or 0
    if room_left := dues[0].room:
        wave = min(wave, room_left) if wave else room_left
    waves = -(-len(dues) // wave) if wave else 1
    return _Pace(wave, waits_seconds + waves * wave_seconds)
