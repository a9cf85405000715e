"""What a changed field comes to: nothing is touched, or nodes drift, or it is held."""

from collections.abc import Iterable, Set

from reconciler.model.change import FieldChange, PolicyChange
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.blame import Blame, pool_of
from reconciler.report.blocks import Tone
from reconciler.report.plans.planned import Planned, PoolLine
from reconciler.report.plans.purchases import buy_words, schedule_words
from reconciler.report.wording import counted

IN_PLACE = "in place"
HELD = "held, see below"
ALREADY = "drifted already"

# These never get into what Karpenter compares nodes with. Any other field of a pool may: through a template, even that
# which no template of ours uses.
_NEVER_DRIFT = ("adopt", "committedNodes", "disruption", "limits", "mode", "smartPods", "suspend")
_NEVER_DRIFT_OF_INSTANCE_TYPES = frozenset({"pricePerHour", "capacity"})
_NEVER_BUY = frozenset({"adopt", "committedNodes", "disruption"})
_DIM = frozenset({IN_PLACE, ALREADY})
_DRIFTED: frozenset[Fate] = frozenset({"removed", "replaced", "blocked"})
SWITCHES = frozenset({"mode", "adopt", "suspend"})  # fields that decide whether a pool is acted on at all
_TAKEN: tuple[tuple[Fate, str, str], ...] = (("scaled", "scale down", "scales down"), ("drained", "drain", "drains"))


def drift_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """drifts all 120 nodes; nothing where no node of the pool drifts that did not anyway, nor ceases to."""
    if change.kind != "GpuPool":
        return ""
    line = planned.pool(change.name)
    drifted = _nodes(blamed.causes, change.name, _DRIFTED)
    if planned.base is not None:
        drifted -= _nodes(planned.base.consequences, change.name, _DRIFTED)
    deleted = _nodes(blamed.causes, change.name, {"deleted"})
    undrifted = _nodes(blamed.causes, change.name, {"undrifted"}) | _nodes(blamed.spared, change.name, _DRIFTED)
    would = "would " if line and line.observation else ""
    verbs = (("delete", _share(deleted, line)), ("drift", _share(drifted, line)))
    lines = [f"{would}{verb if would else verb + 's'} {count}" for verb, count in verbs if count]
    if undrifted:
        lines.append(f"{would}end{'' if would else 's'} the drift of {counted(len(undrifted), 'node')}")
    return ", ".join(lines)


def switch_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """drifts all 9 nodes, scales down 3 of 9 nodes; or spares 5 nodes. What comes of a pool that is acted on from now
    on, or no longer is."""
    line = planned.pool(change.name)
    is_supposed = line is not None and line.observation is not None
    lines = [] if any(map(_may_drift, change.fields)) else [drift_words(planned, blamed, change)]
    for fate, verb, verbs in _TAKEN:
        if taken := _nodes(blamed.causes, change.name, {fate}):
            lines.append(f"{f'would {verb}' if is_supposed else verbs} {_share(taken, line)}")
    if spared := _nodes(blamed.spared, change.name, {fate for fate, _, _ in _TAKEN}):
        lines.append(f"spares {counted(len(spared), 'node')}")
    return ", ".join(filter(None, lines))


def drained_pools(planned: Planned, policy: str) -> list[str]:
    """The pools whose nodes the DrainPolicy drains, with the change or without it."""
    plans = [plan for plan in (planned.plan, planned.base) if plan is not None]
    return sorted({each.pool for plan in plans for each in plan.weighed if each.policy == policy})


def drain_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """drains 5 of 11 nodes; nothing where the change of a DrainPolicy drains no other nodes."""
    if change.kind != "DrainPolicy":
        return ""
    pools = drained_pools(planned, change.name)
    lines = []
    for pool in pools:
        line = planned.pool(pool)
        would = "would " if line and line.observation else ""
        of = f" of {pool}" if len(pools) > 1 else ""
        if drained := _nodes(blamed.causes, pool, {"drained"}):
            lines.append(f"{would}{'drain' if would else 'drains'} {_share(drained, line)}{of}")
        if spared := _nodes(blamed.spared, pool, {"drained"}):
            lines.append(f"{would}{'spare' if would else 'spares'} {counted(len(spared), 'node')}{of}")
    return ", ".join(lines)


def _nodes(consequences: Iterable[Consequence], pool: str, fates: Set[Fate]) -> set[str]:
    return {node for each in consequences if pool_of(each) == pool and each.fate in fates for node in each.nodes}


def _share(nodes: set[str], line: PoolLine | None) -> str:
    """all 120 nodes, 34 of 120 nodes, 34 nodes."""
    if not nodes:
        return ""
    if line is None or line.nodes < len(nodes):
        return counted(len(nodes), "node")
    return f"all {counted(line.nodes, 'node')}" if len(nodes) == line.nodes else f"{len(nodes)} of {line.nodes} nodes"


def effect(planned: Planned, blamed: Blame, change: PolicyChange, field: FieldChange) -> tuple[str, Tone]:
    """Of one field of a policy that was changed."""
    if change.kind == "GpuPool" and _is_held(planned, change.name):
        return HELD, "warn"
    buys = buy_words(planned, blamed, change)
    if change.kind == "NodeProvisioner":
        words, tone = _resized(planned, change)
        scheduled = schedule_words(planned, blamed, change) if field.path.startswith("schedules") else ""
        text = "; ".join(filter(None, (words, buys, scheduled)))
        return text, "warn" if buys or scheduled else tone
    if drains := drain_words(planned, blamed, change):
        return drains, "warn"
    if change.kind == "GpuPool" and field.path in SWITCHES:
        switched = "; ".join(filter(None, (switch_words(planned, blamed, change), buys)))
        return (switched, "warn") if switched else (IN_PLACE, "dim")
    if change.kind != "GpuPool":
        return IN_PLACE, "dim"
    words = _drift_effect(planned, blamed, change) if _may_drift(field) else IN_PLACE
    is_bought = buys and _may_buy(field)
    return (f"{words}; {buys}" if is_bought else words), "warn" if is_bought or words not in _DIM else "dim"


def _drift_effect(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    drifts = drift_words(planned, blamed, change)
    return drifts or (ALREADY if _drifts_anyway(planned, change.name) else IN_PLACE)


def _resized(planned: Planned, change: PolicyChange) -> tuple[str, Tone]:
    """in place; target size 114 -> 100. Several fields of a provisioner come to one size together."""
    sizes = [
        next((each.target for each in plan.sizes if each.provisioner == change.name), None) if plan else None
        for plan in (planned.base, planned.plan)
    ]
    before, after = sizes
    if after is None:
        return IN_PLACE, "dim"
    if before is None or before == after:
        return f"{IN_PLACE}; target size {'stays ' if before else ''}{after}", "dim"
    return f"{IN_PLACE}; target size {before} -> {after}", "warn"


def _drifts_anyway(planned: Planned, pool: str) -> bool:
    """Whether the NodePool is edited while nodes of it drift; that they all do anyway is known by then."""
    edited = any(each.decision.pool == pool and each.decision.subject.kind == "NodePool" for each in planned.acted)
    return edited and bool(_nodes(planned.plan.consequences, pool, _DRIFTED))


def _is_held(planned: Planned, pool: str) -> bool:
    """Whether the NodePool stays as it is, whatever its policy says; what a guard holds comes once it is approved."""
    holds = (*planned.held, *planned.waiting)
    held = (each.decision for each in holds if not isinstance(each.decision.reason.facts, HeldByGuard))
    return any(each.pool == pool and each.subject.kind == "NodePool" for each in held)


def _may_buy(field: FieldChange) -> bool:
    """Whether a field of a pool decides over what is bought for it; any may that is not named."""
    steps = field.path.replace("[", ".[").split(".")
    return steps[0] not in _NEVER_BUY and "pricePerHour" not in steps


def _may_drift(field: FieldChange) -> bool:
    steps = field.path.replace("[", ".[").split(".")
    if steps[0] == "instanceTypes":
        return _NEVER_DRIFT_OF_INSTANCE_TYPES.isdisjoint(steps)
    return steps[0] not in _NEVER_DRIFT
