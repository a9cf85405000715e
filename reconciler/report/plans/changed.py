"""List of changes: policies and their fields; without a base, objects that are written and deleted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from typing import Literal

import msgspec

from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Apply, Decision, Delete, Evict, Hold
from reconciler.model.plan.evaluation import DrainReport, ScalingReport
from reconciler.model.problem import Origin
from reconciler.plan.drain.codes.candidacy import DrainCandidateNext
from reconciler.plan.drain.reasons import PLANNER as DRAIN
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.blame import Blame, pool_of
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.plan.smart_pods.reasons import PLANNER as SMART_PODS
from reconciler.report.decision_text import DecisionText, decision_items, place_of, would
from reconciler.report.document import Detail, Item, Tone
from reconciler.report.plans.plan_shape import EditTold
from reconciler.report.plans.planned import Planned, PoolLine
from reconciler.report.wording import counted, grouped

Verb = Literal["add", "change", "remove"]

_MARKS: dict[Verb, tuple[str, Tone]] = {"add": ("+", "good"), "change": ("~", "warn"), "remove": ("-", "bad")}


def count(planned: Planned) -> tuple[Counter[Verb], Counter[Observation]]:
    """Counts policies if there is a base, otherwise objects in the cluster; and suppressed changes of objects."""
    if planned.base is not None:
        return Counter(each.verb for each in planned.changes), Counter()
    # One plan writes to some of the drain candidates; its counts cover all of them.
    later = [each for each in planned.decision_texts if isinstance(each.decision.reason.facts, DrainCandidateNext)]
    changes = [*planned.acted, *later]
    supposed = Counter(each.observation for each in changes if each.observation is not None)
    return Counter(verb_of(each.decision) for each in changes if each.observation is None), supposed


def verb_of(decision: Decision) -> Verb:
    """The change that an action makes to its subject."""
    match decision.act:
        case Delete():
            return "remove"
        case Apply(presumes=presumes) if presumes.absent:
            return "add"
        case _:
            return "change"


def changed_items(planned: Planned, blame: Blame) -> Iterator[Item]:
    """Changed policies first; then writes without an edited policy of their pool, for example after a template edit."""
    for change in planned.changes:
        yield _policy_item(planned, blame, change)
    if planned.base is None:
        yield from _scaled_items(planned)
    yield from decision_items(unexplained(planned), planned.setting.now)


def _scaled_items(planned: Planned) -> Iterator[Item]:
    """Actions on nodes and pods, equal ones of a pool in one line."""
    alike = grouped(
        filter(_of_the_day, planned.acted),
        lambda each: (each.decision.pool, each.decision.subject.kind, each.decision.reason.code, each.decision.would),
    )
    nexts = ((each.decision.pool, each.decision.reason.facts) for each in planned.decision_texts)
    later = Counter((pool, facts.candidacy.code) for pool, facts in nexts if isinstance(facts, DrainCandidateNext))
    for (pool, kind, code, would_be), group in alike.items():
        first, more = group[0], later[pool, code]
        total = len(group) + more
        title = first.decision.subject.title if total == 1 else f"{total} {kind}s of {pool}"
        details = [Detail(first.sentence if total == 1 else f"example: {first.sentence}")]
        if more:
            details.append(Detail(f"{len(group)} in this plan, {more} in later plans"))
        mark, tone = _MARKS[verb_of(first.decision)] if kind == "Pod" else ("~", "warn")
        yield Item(mark, would(title, would_be), first.place, tuple(details), tone)


def unexplained(planned: Planned) -> tuple[DecisionText, ...]:
    """Actions caused by this change that the changed policies in the list do not explain."""
    # If a pool was not acted on before, the changed fields do not say what is written.
    pools = (each for each in planned.changes if each.kind == "GpuPool")
    edited = {each.name for each in pools if SWITCHES.isdisjoint(field.path for field in each.fields)}
    anyway = _deeds(planned)
    return tuple(
        each
        for each in planned.acted
        if each.decision.pool not in edited and _deed(each.decision) not in anyway and not _of_the_day(each)
    )


def anyway(planned: Planned) -> tuple[DecisionText, ...]:
    """Actions that are the same with and without this change."""
    deeds = _deeds(planned)
    return tuple(each for each in planned.acted if _deed(each.decision) in deeds and not _of_the_day(each))


def _of_the_day(decision_text: DecisionText) -> bool:
    """Actions that follow from the use of a pool, not from edits: nodes removed by scaling or drains and their evicted
    pods, which the section of the pool reports, and requests of smart pods."""
    decision = decision_text.decision
    is_departure = decision.planner in {SCALING, DRAIN} and decision.subject.kind in {"Node", "Pod"}
    return decision.planner == SMART_PODS or is_departure


def _deeds(planned: Planned) -> frozenset[bytes]:
    decisions = planned.base.decisions if planned.base else ()
    return frozenset(_deed(each) for each in decisions if not isinstance(each.act, Hold))


def _deed(decision: Decision) -> bytes:
    """Identity of an action. A suppressed action differs from one that is carried out."""
    act = decision.act.api_request if isinstance(decision.act, Evict) else decision.act
    return msgspec.json.encode((decision.subject, act, decision.would))


def _policy_item(planned: Planned, blame: Blame, change: PolicyChange) -> Item:
    mark, tone = _MARKS[change.verb]
    line = planned.pool(change.name) if change.kind == "GpuPool" else None
    title = f"{change.kind}/{change.name}"
    buys = "; ".join(filter(None, (buy_words(planned, blame, change), schedule_words(planned, blame, change))))
    if change.verb == "remove":
        words = "; ".join(
            filter(None, (drift_words(planned, blame, change) or drain_words(planned, blame, change), buys))
        )
        details: tuple[Detail, ...] = (Detail("no longer declared", words, "bad"),) if words else ()
    elif change.verb == "add":
        details = tuple(Detail(f"{field.path}: {field.after}") for field in change.fields if field.after is not None)
        if words := drain_words(planned, blame, change) or buys:
            details = (*details, Detail("", words, "warn"))
    else:
        details = tuple(Detail(field_words(field), *effect(planned, blame, change, field)) for field in change.fields)
    observed = line is not None and line.observation is not None
    observed = observed and SWITCHES.isdisjoint(field.path for field in change.fields)
    return Item(mark, would(title, observed), place_of(change_origin(change)), details, tone)


def change_origin(change: PolicyChange) -> Origin:
    """The first edited line; for a new or deleted policy, its beginning."""
    lines = [field.origin for field in change.fields if field.origin.file == change.origin.file]
    return min(lines, default=change.origin) if change.verb == "change" else change.origin


def field_words(field: FieldChange) -> str:
    """Such as minSize: 8 -> 10, or taints: + dedicated=training:NoSchedule."""
    return EditTold(field.path, field.before, field.after).words


# --- Effect of a changed field: in place, drift of nodes, or held.

IN_PLACE = "in place"
HELD = "held, see below"
ALREADY = "drifted already"

# Fields that never affect Karpenter's drift hash. Any other field of a pool may affect it through a template, even if
# no template of ours uses the field.
_NEVER_DRIFT = ("adopt", "committedNodes", "disruption", "limits", "mode", "smartPods", "suspend")
_NEVER_DRIFT_OF_INSTANCE_TYPES = frozenset({"pricePerHour", "capacity"})
_NEVER_BUY = frozenset({"adopt", "committedNodes", "disruption"})
_DIM = frozenset({IN_PLACE, ALREADY})
_DRIFTED: frozenset[Fate] = frozenset({"removed", "replaced", "blocked"})
SWITCHES = frozenset({"mode", "adopt", "suspend"})  # fields that decide whether the pool is acted on
_TAKEN: tuple[tuple[Fate, str, str], ...] = (("scaled", "scale", " down"), ("drained", "drain", ""))


def drift_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Such as drifts all 120 nodes; empty if the change neither causes nor ends drift."""
    if change.kind != "GpuPool":
        return ""
    line = planned.pool(change.name)
    drifted = _nodes(blamed.causes, change.name, _DRIFTED)
    if planned.base is not None:
        drifted -= _nodes(planned.base.consequences, change.name, _DRIFTED)
    deleted = _nodes(blamed.causes, change.name, {"deleted"})
    undrifted = _nodes(blamed.causes, change.name, {"undrifted"}) | _nodes(blamed.spared, change.name, _DRIFTED)
    verbs = (("delete", _share(deleted, line)), ("drift", _share(drifted, line)))
    lines = [f"{_verb(line, verb)} {count}" for verb, count in verbs if count]
    if undrifted:
        lines.append(f"{_verb(line, 'end')} drift of {counted(len(undrifted), 'node')}")
    return ", ".join(lines)


def _verb(line: PoolLine | None, verb: str) -> str:
    return f"would {verb}" if line is not None and line.observation else f"{verb}s"


def switch_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Such as drifts all 9 nodes, scales down 3 of 9 nodes, or spares 5 nodes: effect of a pool that is now acted on,
    or no longer is."""
    line = planned.pool(change.name)
    lines = [] if any(map(_may_drift, change.fields)) else [drift_words(planned, blamed, change)]
    for fate, verb, particle in _TAKEN:
        if taken := _nodes(blamed.causes, change.name, {fate}):
            lines.append(f"{_verb(line, verb)}{particle} {_share(taken, line)}")
    if spared := _nodes(blamed.spared, change.name, {fate for fate, _, _ in _TAKEN}):
        lines.append(f"spares {counted(len(spared), 'node')}")
    return ", ".join(filter(None, lines))


def drained_pools(planned: Planned, policy: str) -> list[str]:
    """Pools whose nodes the DrainPolicy drains, with or without the change."""
    plans = [plan for plan in (planned.plan, planned.base) if plan is not None]
    return sorted({each.pool for plan in plans for each in plan.report(DrainReport).weighed if each.policy == policy})


def drain_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Such as drains 5 of 11 nodes; empty if the change of a DrainPolicy drains no other nodes."""
    if change.kind != "DrainPolicy":
        return ""
    pools = drained_pools(planned, change.name)
    lines = []
    for pool in pools:
        line = planned.pool(pool)
        of = f" of {pool}" if len(pools) > 1 else ""
        if drained := _nodes(blamed.causes, pool, {"drained"}):
            lines.append(f"{_verb(line, 'drain')} {_share(drained, line)}{of}")
        if spared := _nodes(blamed.spared, pool, {"drained"}):
            lines.append(f"{_verb(line, 'spare')} {counted(len(spared), 'node')}{of}")
    return ", ".join(lines)


def _nodes(consequences: Iterable[Consequence], pool: str, fates: Set[Fate]) -> set[str]:
    return {node for each in consequences if pool_of(each) == pool and each.fate in fates for node in each.nodes}


def _share(nodes: set[str], line: PoolLine | None) -> str:
    """Such as all 120 nodes, 34 of 120 nodes, or 34 nodes."""
    if not nodes:
        return ""
    if line is None or line.nodes < len(nodes):
        return counted(len(nodes), "node")
    return f"all {counted(line.nodes, 'node')}" if len(nodes) == line.nodes else f"{len(nodes)} of {line.nodes} nodes"


def effect(planned: Planned, blamed: Blame, change: PolicyChange, field: FieldChange) -> tuple[str, Tone]:
    """Effect of one changed field of a policy."""
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
    words = IN_PLACE
    if _may_drift(field):
        is_drifting = _drifts_anyway(planned, change.name)
        words = drift_words(planned, blamed, change) or (ALREADY if is_drifting else IN_PLACE)
    is_bought = buys and _may_buy(field)
    return (f"{words}; {buys}" if is_bought else words), "warn" if is_bought or words not in _DIM else "dim"


def _resized(planned: Planned, change: PolicyChange) -> tuple[str, Tone]:
    """Such as in place; target size 114 -> 100. All changed fields of a provisioner share one size."""
    before, after = (
        next((each.target for each in report.sizes if each.provisioner == change.name), None)
        for report in (plan.report(ScalingReport) if plan else ScalingReport() for plan in (planned.base, planned.plan))
    )
    if after is None:
        return IN_PLACE, "dim"
    if before is None or before == after:
        return f"{IN_PLACE}; target size {'stays ' if before else ''}{after}", "dim"
    return f"{IN_PLACE}; target size {before} -> {after}", "warn"


def _drifts_anyway(planned: Planned, pool: str) -> bool:
    """Whether the NodePool is edited while nodes of it drift in any case."""
    edited = any(each.decision.pool == pool and each.decision.subject.kind == "NodePool" for each in planned.acted)
    return edited and bool(_nodes(planned.plan.consequences, pool, _DRIFTED))


def _is_held(planned: Planned, pool: str) -> bool:
    """Whether the NodePool does not change whatever its policy says. Changes held by a guard happen after approval."""
    holds = (*planned.held, *planned.waiting)
    held = (each.decision for each in holds if not isinstance(each.decision.reason.facts, HeldByGuard))
    return any(each.pool == pool and each.subject.kind == "NodePool" for each in held)


def _may_buy(field: FieldChange) -> bool:
    """Whether a pool's field may affect purchases; true for every field that is not listed."""
    steps = field.path.replace("[", ".[").split(".")
    return steps[0] not in _NEVER_BUY and "pricePerHour" not in steps


def _may_drift(field: FieldChange) -> bool:
    steps = field.path.replace("[", ".[").split(".")
    if steps[0] == "instanceTypes":
        return _NEVER_DRIFT_OF_INSTANCE_TYPES.isdisjoint(steps)
    return steps[0] not in _NEVER_DRIFT


# --- Purchases caused by a changed policy, in a few words.
#
# Reported at the NodeProvisioner if one of the pool is edited, otherwise at the GpuPool. Purchases that follow drift
# are reported at the GpuPool.

_Sort = Callable[[Consequence], bool]


def buy_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Such as buys 10 nodes, or buys 10 fewer nodes; empty if the change buys nothing different."""
    lines = []
    for pool, is_own in _pools(planned, change):
        more = _count(filter(is_own, blamed.causes), pool, "bought")
        fewer = _count(filter(is_own, blamed.spared), pool, "bought")
        instead = f" in place of {fewer}" if fewer else ""
        if more:
            lines.append(f"{_verb(planned.pool(pool), 'buy')} {counted(more, 'node')}{instead}")
        elif fewer:
            lines.append(f"buys {counted(fewer, 'fewer node')}")
    return ", ".join(lines)


def schedule_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Such as buys 5 nodes by schedules; empty if no schedule of a NodeProvisioner buys more than before."""
    if change.kind != "NodeProvisioner":
        return ""
    nodes = ((planned.pool(pool), _count(blamed.causes, pool, "scheduled")) for pool, _ in _pools(planned, change))
    return ", ".join(f"{_verb(line, 'buy')} {counted(each, 'node')} by schedules" for line, each in nodes if each)


def _pools(planned: Planned, change: PolicyChange) -> list[tuple[str, _Sort]]:
    """Pools whose purchases are reported at this policy, and which kinds of purchase."""
    plans = [plan for plan in (planned.plan, planned.base) if plan is not None]
    sized = {(each.provisioner, each.pool) for plan in plans for each in plan.report(ScalingReport).sizes}
    if change.kind == "NodeProvisioner":
        return [
            (pool, lambda each: not _follows_drift(each))
            for pool in sorted({pool for name, pool in sized if name == change.name})
        ]
    if change.kind != "GpuPool":
        return []
    edited = {each.name for each in planned.changes if each.kind == "NodeProvisioner"}
    is_sized = any(pool == change.name and name in edited for name, pool in sized)
    return [(change.name, _follows_drift if is_sized else lambda _: True)]


def _follows_drift(consequence: Consequence) -> bool:
    return consequence.order is not None and consequence.order.stage == "refill"


def _count(consequences: Iterable[Consequence], pool: str, fate: Fate) -> int:
    return sum(len(each.nodes) for each in consequences if pool_of(each) == pool and each.fate == fate)
