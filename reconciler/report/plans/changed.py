"""What changes, as a list: policies and their fields; without a base to compare with, what is written and deleted."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Literal

import msgspec

from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Apply, Decision, Delete, Evict, Hold
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
from reconciler.report.plans.planned import Planned, PoolLine
from reconciler.report.wording import counted

Verb = Literal["add", "change", "remove"]

_MARKS: dict[Verb, tuple[str, Tone]] = {"add": ("+", "good"), "change": ("~", "warn"), "remove": ("-", "bad")}


class ChangeCount(msgspec.Struct, frozen=True):
    """How much changes."""

    change: int = 0
    add: int = 0
    remove: int = 0
    supposed: Mapping[Observation, int] = {}  # objects of pools that are only observed


def count(planned: Planned) -> ChangeCount:
    """Of policies, compared with a base; else of objects in the cluster."""
    verbs: list[Verb] = [each.verb for each in planned.changes]
    supposed: Counter[Observation] = Counter()
    if planned.base is None:
        # One plan writes to some of the candidates of a drain, and its counts are of all.
        later = [each for each in planned.decision_texts if isinstance(each.decision.reason.facts, DrainCandidateNext)]
        verbs = [verb_of(each.decision) for each in planned.acted if each.observation is None]
        verbs += ["change" for each in later if each.observation is None]
        supposed = Counter(each.observation for each in (*planned.acted, *later) if each.observation is not None)
    return ChangeCount(verbs.count("change"), verbs.count("add"), verbs.count("remove"), supposed)


def verb_of(decision: Decision) -> Verb:
    """What an action does to its subject."""
    match decision.act:
        case Delete():
            return "remove"
        case Apply(presumes=presumes) if presumes.absent:
            return "add"
        case _:
            return "change"


def changed_items(planned: Planned, blame: Blame) -> Iterator[Item]:
    """Policies first; then what is written although no policy of its pool was edited: a template was, say."""
    for change in planned.changes:
        yield _policy_item(planned, blame, change)
    if planned.base is None:
        yield from _scaled_items(planned)
    yield from decision_items(unexplained(planned), planned.setting.now)


def _scaled_items(planned: Planned) -> Iterator[Item]:
    """What is done to nodes and pods as they come and go, alike ones of a pool in one line."""
    alike: dict[tuple[str, str, str, bool], list[DecisionText]] = {}
    for each in planned.acted:
        if _of_the_day(each):
            decision = each.decision
            key = decision.pool, decision.subject.kind, decision.reason.code, decision.would
            alike.setdefault(key, []).append(each)
    nexts = ((each.decision.pool, each.decision.reason.facts) for each in planned.decision_texts)
    later = Counter((pool, facts.candidacy.code) for pool, facts in nexts if isinstance(facts, DrainCandidateNext))
    for (pool, kind, code, would_be), group in alike.items():
        first, more = group[0], later[pool, code]
        total = len(group) + more
        title = first.decision.subject.title if total == 1 else f"{total} {kind}s of {pool}"
        details = [Detail(first.sentence if total == 1 else f"one of them: {first.sentence}")]
        if more:
            details.append(Detail(f"{len(group)} of them in this plan, {more} in the plans after it"))
        mark, tone = _MARKS[verb_of(first.decision)] if kind == "Pod" else ("~", "warn")
        yield Item(mark, would(title, would_be), first.place, tuple(details), tone)


def unexplained(planned: Planned) -> tuple[DecisionText, ...]:
    """What is done because of this change, and that the list of changed policies does not lead to."""
    # Where a pool is acted on that was not before, the fields that changed do not say what is written.
    pools = (each for each in planned.changes if each.kind == "GpuPool")
    edited = {each.name for each in pools if SWITCHES.isdisjoint(field.path for field in each.fields)}
    anyway = _deeds(planned)
    return tuple(
        each
        for each in planned.acted
        if each.decision.pool not in edited and _deed(each.decision) not in anyway and not _of_the_day(each)
    )


def anyway(planned: Planned) -> tuple[DecisionText, ...]:
    """What is done with this change just as without it."""
    deeds = _deeds(planned)
    return tuple(each for each in planned.acted if _deed(each.decision) in deeds and not _of_the_day(each))


def _of_the_day(decision_text: DecisionText) -> bool:
    """What follows from how a pool is used, whoever edits what: nodes that scaling or drains take away and pods that
    are evicted for it, of which the section of their pool tells, and what smart pods ask for."""
    decision = decision_text.decision
    is_departure = decision.planner in {SCALING, DRAIN} and decision.subject.kind in {"Node", "Pod"}
    return decision.planner == SMART_PODS or is_departure


def _deeds(planned: Planned) -> frozenset[bytes]:
    decisions = planned.base.decisions if planned.base else ()
    return frozenset(_deed(each) for each in decisions if not isinstance(each.act, Hold))


def _deed(decision: Decision) -> bytes:
    """What would be done in a pool that is only observed is not done."""
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
    """The first line that was edited; of what is new or gone, where it begins."""
    lines = [field.origin for field in change.fields if field.origin.file == change.origin.file]
    return min(lines, default=change.origin) if change.verb == "change" else change.origin


def field_words(field: FieldChange) -> str:
    """minSize: 8 -> 10, taints: + dedicated=training:NoSchedule."""
    if field.before is None:
        return f"{field.path}: + {field.after}"
    if field.after is None:
        return f"{field.path}: - {field.before}"
    return f"{field.path}: {field.before} -> {field.after}"


# --- What a changed field comes to: nothing is touched, or nodes drift, or it is held.

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


# --- What a changed policy buys, in a few words beside it.
#
# Told of the NodeProvisioner where one of the pool is edited, else of the GpuPool; what follows on drift of the
# GpuPool.

_Sort = Callable[[Consequence], bool]


def buy_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """buys 10 nodes, buys 10 nodes fewer; nothing where the change buys what is bought anyway."""
    lines = []
    for pool, is_own in _pools(planned, change):
        more = _count(filter(is_own, blamed.causes), pool, "bought")
        fewer = _count(filter(is_own, blamed.spared), pool, "bought")
        instead = f" in place of {fewer}" if fewer else ""
        if more:
            lines.append(f"{_verb(planned, pool)} {counted(more, 'node')}{instead}")
        elif fewer:
            lines.append(f"buys {counted(fewer, 'node')} fewer")
    return ", ".join(lines)


def schedule_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """buys 5 nodes by schedules; nothing where no schedule of a NodeProvisioner buys more than it did."""
    if change.kind != "NodeProvisioner":
        return ""
    nodes = ((pool, _count(blamed.causes, pool, "scheduled")) for pool, _ in _pools(planned, change))
    return ", ".join(f"{_verb(planned, pool)} {counted(each, 'node')} by schedules" for pool, each in nodes if each)


def _verb(planned: Planned, pool: str) -> str:
    line = planned.pool(pool)
    return "would buy" if line and line.observation else "buys"


def _pools(planned: Planned, change: PolicyChange) -> list[tuple[str, _Sort]]:
    """Those whose purchases are told of this policy, and which of these are."""
    plans = [plan for plan in (planned.plan, planned.base) if plan is not None]
    sized = {(each.provisioner, each.pool) for plan in plans for each in plan.sizes}
    if change.kind == "NodeProvisioner":
        return [(pool, _is_requested) for pool in sorted({pool for name, pool in sized if name == change.name})]
    if change.kind != "GpuPool":
        return []
    edited = {each.name for each in planned.changes if each.kind == "NodeProvisioner"}
    is_sized = any(pool == change.name and name in edited for name, pool in sized)
    return [(change.name, _follows_drift if is_sized else lambda _: True)]


def _follows_drift(consequence: Consequence) -> bool:
    return consequence.order is not None and consequence.order.stage == "refill"


def _is_requested(consequence: Consequence) -> bool:
    return not _follows_drift(consequence)


def _count(consequences: Iterable[Consequence], pool: str, fate: Fate) -> int:
    return sum(len(each.nodes) for each in consequences if pool_of(each) == pool and each.fate == fate)
