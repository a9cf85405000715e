"""What becomes of the nodes that Karpenter drifts or deletes: who goes, when, what is in the way, and what it saves.

Drift: Karpenter deletes empty nodes first and buys nothing for them; for a busy one it buys another, waits until that
is initialized, and evicts the pods; in each case as many at once as the budgets for Drifted allow. In a NodePool of a
fixed size (spec.replicas) an empty node is replaced as well. What holds a node up keeps Karpenter from beginning with
it. A NodePool that is deleted takes its NodeClaims with it, all at once. Nobody calls back a node that is leaving.

Budgets are taken as they are now, and the times are rough: as if every wave took as long as the slowest node.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.whole import Whole
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.consequence import Cause, Consequence, Fate
from reconciler.plan.cost import Machine, bill
from reconciler.plan.eviction import PodBudgets
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.karpenter.due import Due, Intent, Rules
from reconciler.plan.karpenter.outlook import outlook
from reconciler.plan.karpenter.survey import Site, Surveyed

# A GPU machine boots, joins, and its driver and device plugin come up: minutes, and Karpenter waits for all of it.
NEW_NODE_SECONDS = 300
# The machine of a drained node is shut down; until it is gone, it counts against the budgets.
NODE_GONE_SECONDS = 120

# What goes without any change goes first: of what is paid for anyway, the change may then find fewer nodes.
_CAUSES: tuple[Cause, ...] = ("standing", "change")
_ORDER: tuple[tuple[Cause, Fate], ...] = tuple((cause, fate) for cause in _CAUSES for fate in get_args(Fate))
_SAVES: frozenset[Fate] = frozenset({"removed", "deleted"})


class Surroundings(msgspec.Struct, frozen=True):
    """What the fate of a NodePool's nodes depends on besides the NodePool."""

    fleet: Fleet
    now: Instant
    budgets: PodBudgets
    pool: str  # the GpuPool that the NodePool is for
    declared: Declared[GpuPool] | None = None  # None: nobody declares it, and no price is known


class _Saved(msgspec.Struct, frozen=True):
    micro_dollars_per_hour: int = 0  # negative
    unpriced: int = 0


class _Pace(msgspec.Struct, frozen=True):
    wave: int = 0
    seconds: int | None = None


def fates(
    node_pool: Whole, after_spec: Mapping[str, Any] | None, drift: Drift, around: Surroundings
) -> tuple[Consequence, ...]:
    """What becomes of them, by cause and fate; `after_spec` is None where the NodePool is deleted, whatever drifts."""
    groups: defaultdict[tuple[Cause, Fate], list[Due]] = defaultdict(list)
    for due in _dues(node_pool, after_spec, drift, around):
        groups[due.cause, due.fate].append(due)
    left = Site(around.fleet, node_pool.name, around.now).machines()
    told = []
    for cause, fate in _ORDER:
        if dues := groups.get((cause, fate)):
            saved = _saved(dues, left, around.declared) if fate in _SAVES else _Saved()
            pace = _pace(fate, dues, len(groups.get((cause, "removed"), ())))
            told.append(_consequence(around.pool, dues, pace, saved))
    return tuple(told)


def _dues(node_pool: Whole, after_spec: Mapping[str, Any] | None, drift: Drift, around: Surroundings) -> Iterator[Due]:
    site = Site(around.fleet, node_pool.name, around.now)
    claims = around.fleet.claims_of(node_pool.name)
    nodes = sum(not claim.says("InstanceTerminating") for claim in claims)
    live = Rules(node_pool.name, node_pool.spec, nodes, around.now)
    after = live if after_spec is None else Rules(node_pool.name, after_spec, nodes, around.now)
    live_is_shut, after_is_shut = live.wave() == 0, after.wave() == 0
    for found, intent, cause in _intended(site, drift, is_deleted=after_spec is None):
        ahead = outlook(found, around.budgets)
        if ahead.leaving or cause == "standing":
            yield Due(ahead, "drifts", "standing", live, live_is_shut)
        else:
            yield Due(ahead, intent, cause, after, after_is_shut)


def _intended(site: Site, drift: Drift, is_deleted: bool) -> Iterator[tuple[Surveyed, Intent, Cause]]:
    if is_deleted:
        for found in site.all():
            yield found, "deleted", "change"
        return
    claims = {claim.name: claim for claim in site.fleet.claims_of(site.node_pool)}
    wanted: tuple[tuple[Sequence[str], Intent, Cause], ...] = (
        (drift.already, "drifts", "standing"),
        (drift.fresh, "drifts", "change"),
        (drift.undrifted, "undrifted", "change"),
    )
    for listed, intent, cause in wanted:
        for name in listed:
            yield site.of_claim(claims[name]), intent, cause


def _consequence(pool: str, dues: Sequence[Due], pace: _Pace, saved: _Saved) -> Consequence:
    """All of `dues` share cause, fate and rules."""
    first = dues[0]
    held = Counter(holder for due in dues for holder in due.held_by)
    return Consequence(
        pool=pool,
        node_pool=first.rules.node_pool,
        cause=first.cause,
        fate=first.fate,
        nodes=tuple(sorted(due.ahead.name for due in dues)),
        gpus=sum(due.ahead.gpus for due in dues),
        gpus_in_use=sum(due.ahead.gpus_in_use for due in dues),
        pods=0 if first.fate == "undrifted" else sum(due.ahead.pods for due in dues),
        micro_dollars_per_hour=saved.micro_dollars_per_hour,
        wave=pace.wave,
        seconds=pace.seconds,
        held_by=tuple(sorted(held.items())),
        unpriced=saved.unpriced,
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
        case "undrifted":
            return _Pace(seconds=0)


def _waves(dues: Sequence[Due], waits_seconds: int, wave_seconds: int, gone_before: int) -> _Pace:
    # None: no budget. 0: the budgets are shut, and only nodes that are past them are left.
    wave = dues[0].rules.wave(gone_before) or 0
    waves = -(-len(dues) // wave) if wave else 1
    return _Pace(wave, waits_seconds + waves * wave_seconds)


def _saved(dues: Sequence[Due], left: Counter[Machine], declared: Declared[GpuPool] | None) -> _Saved:
    """What the bill is less by without their machines, which are taken from those that are left."""
    gone = Counter(due.ahead.machine for due in dues if due.ahead.machine is not None)
    before = bill(declared.spec, left) if declared is not None else None
    left.subtract(gone)
    if declared is None or before is None:
        return _Saved(unpriced=gone.total())
    after = bill(declared.spec, left)
    return _Saved(after.micro_dollars_per_hour - before.micro_dollars_per_hour, before.unpriced - after.unpriced)
