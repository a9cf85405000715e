"""Overview as a document: policies in force, cluster, and pools."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, format_moment, moment, span, timestamp
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.words import short_of, short_words
from reconciler.plan.drain.codes.candidacy import DrainCandidateNext
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.gpu.claim_report import ClaimReport, WaitingClaims
from reconciler.plan.guards.frozen import Freeze, Freezes
from reconciler.plan.guards.observing import Observation, observation_of
from reconciler.plan.guards.reasons import MEASURES
from reconciler.plan.holds.classes import is_at_rest, is_held, supposed_by
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import unread_of_use
from reconciler.plan.pressure.report import PressedNode
from reconciler.plan.sums import use_of
from reconciler.protocol.leadership import LONGEST_LEASE_MS
from reconciler.report.decision_text import DecisionText, conditions, mark_of, would
from reconciler.report.document import (
    Blank,
    Block,
    CheckedCount,
    Detail,
    Item,
    ItemList,
    ReportDocument,
    ReportNote,
    ReportNotes,
    Row,
    RowGroup,
    Section,
    SectionContainment,
    Table,
    TableColumn,
    line,
)
from reconciler.report.header import ReportHeader, set_aside_notices, time_json, unread_notes
from reconciler.report.plans.build import describe_decisions
from reconciler.report.plans.plan_json import freezes_json, guards_json
from reconciler.report.status.claims import waiting_json, waiting_words
from reconciler.report.status.leaving import LeavingNodes, leaving_of
from reconciler.report.status.pressure import pressed_node_json, pressed_node_words, pressed_of
from reconciler.report.wording import age, counted, grouped

# --- State of the controller from its Lease: whether one runs, the leader, and its last snapshot.

_TITLE = "leases.coordination.k8s.io of the controller"
_ALL_LEASES = "leases.coordination.k8s.io"
_CLOCKS_DIFFER_BY_MS = 30_000  # tolerated clock difference between the leader and this machine


class ControllerStatus(msgspec.Struct, frozen=True):
    """The Lease of the leader."""

    leader: str = ""  # empty: nobody holds the Lease
    runs: bool | None = None  # None: unknown
    leads_since: Instant | None = None
    renewed_at: Instant | None = None
    seen_cluster_at: Instant | None = None
    why_unknown: str = ""  # why the Lease could not be read
    namespace: str = names.OWN_NAMESPACE  # namespace of the Lease


def controller_of(observed: Observed) -> ControllerStatus:
    """State of the controller. The Lease is as old as the snapshot: a file says nothing about now."""
    ours = (each for each in observed.leases if each.metadata.namespace != names.LEASES_NAMESPACE)
    lease = next((each for each in ours if each.metadata.name == names.LEADER_LEASE), None)
    # Older versions wrote all Leases into dumps as one kind.
    if lease is None and (why := observed.why_unread(_TITLE, _ALL_LEASES)):
        return ControllerStatus(why_unknown=why)
    if lease is None or not lease.spec.holder_identity:
        return ControllerStatus(runs=False, namespace=observed.own_namespace)
    renewed_at = moment(lease.spec.renew_time)
    return ControllerStatus(
        leader=lease.spec.holder_identity,
        runs=_runs(observed, renewed_at, lease.spec.lease_duration_seconds),
        leads_since=moment(lease.spec.acquire_time),
        renewed_at=renewed_at,
        seen_cluster_at=moment(lease.metadata.annotations.seen_at),
    )


def _runs(observed: Observed, renewed_at: Instant | None, lease_seconds: int) -> bool | None:
    """None if the read time of the Lease is unknown."""
    if renewed_at is None or not observed.seen_at:
        return None
    ago_ms = observed.seen_at - renewed_at
    return -_CLOCKS_DIFFER_BY_MS <= ago_ms <= min(1_000 * lease_seconds, LONGEST_LEASE_MS) + _CLOCKS_DIFFER_BY_MS


def controller_words(controller: ControllerStatus, now: Instant) -> str:
    """Such as Controller: pod-7f leads for 3 h; it renewed its Lease 2 s ago, and saw the cluster 3 s ago."""
    if controller.why_unknown:
        return f"Controller: unknown ({controller.why_unknown})."
    if not controller.leader:
        return f"Controller: not running: nobody holds Lease/{controller.namespace}/{names.LEADER_LEASE}."
    renewed = f"renewed its Lease {age(controller.renewed_at, now)}" if controller.renewed_at is not None else ""
    saw = f"took a snapshot {age(controller.seen_cluster_at, now)}" if controller.seen_cluster_at is not None else ""
    text = ", and ".join(filter(None, (renewed, saw)))
    its = f"; it {text}" if text else ""
    if controller.runs is False:
        return f"Controller: not running: the last leader was {controller.leader}{its}."
    if controller.runs is None:
        return f"Controller: {controller.leader} held the Lease at the time of the snapshot{its}."
    since = controller.leads_since
    lasting = f" for {span(max(0, now - since) // 1_000)}" if since is not None else ""
    return f"Controller: {controller.leader} leads{lasting}{its}."


FORMAT_VERSION = 1

_NUMBERS = ("nodes", "busy", "GPUs", "in use", "drifted")
_COLUMNS = (TableColumn("pool"), TableColumn("mode"), *(TableColumn(each, right=True) for each in _NUMBERS))


class PoolOverview(msgspec.Struct, frozen=True):
    """State of a pool; None means the value could not be read."""

    pool: str
    mode: str
    nodes: int | None = None
    busy_nodes: int | None = None
    gpus: int | None = None
    gpus_in_use: int | None = None
    drifted_nodes: int | None = None
    short: str = ""  # failed launch options, as text
    observed_because: str = ""  # why the pool is only observed, whatever its mode


class Overview(msgspec.Struct, frozen=True):
    """The overview, with counts of decisions: suppressed, held, waiting, and to carry out."""

    setting: ReportHeader
    pools: tuple[PoolOverview, ...] = ()
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    pending: int = 0
    supposed: Mapping[Observation, int] = {}  # suppressed decisions
    held: int = 0  # by a person or a guard
    waiting: int = 0  # until they continue by themselves
    freezes: tuple[Freeze, ...] = ()
    guarded: tuple[GuardVerdict, ...] = ()
    controller: ControllerStatus | None = None  # None: not read
    leaving: tuple[LeavingNodes, ...] = ()
    holds: tuple[DecisionText, ...] = ()
    claims: tuple[WaitingClaims, ...] = ()
    pressed: tuple[PressedNode, ...] = ()


def overview_document(overview: Overview) -> ReportDocument:
    return ReportDocument(
        command="status",
        title=f"Status of {overview.setting.policies}",
        tool_version=overview.setting.tool_version,
        blocks=tuple(_blocks(overview)),
        payload=_payload(overview),
        otherwise=overview.setting.headline,
        judged=CheckedCount(len(overview.pools), "pool", "problem"),
    )


def _blocks(overview: Overview) -> Iterator[Block]:
    yield from (line(f"FROZEN: {each.scope_text}, {each.until_text}", "bad") for each in overview.freezes)
    notes = (*unread_notes(overview.unread), *(ReportNote("note", each) for each in overview.notices))
    if notes:
        yield ReportNotes(notes)
    yield line(overview.setting.headline, "strong")
    yield Blank()
    if overview.pools:
        yield Table(_COLUMNS, (RowGroup(tuple(map(_row, overview.pools))),))
    else:
        yield line("No policy declares a pool.")
    yield Blank()
    if overview.leaving:
        items = (Item("*", each.words(overview.setting.now)) for each in overview.leaving)
        yield Section("Nodes leaving and arriving", (ItemList(tuple(items)),))
        yield Blank()
    if overview.claims:
        yield Section("Waiting claims", (ItemList(tuple(Item("*", waiting_words(each)) for each in overview.claims)),))
        yield Blank()
    if overview.pressed:
        items = (Item("-", pressed_node_words(each)) for each in overview.pressed)
        yield Section("Nodes under pressure", (ItemList(tuple(items)),))
        yield Blank()
    if overview.holds:
        for title, by_someone in (("Held", True), ("Waiting", False)):
            holds = [each for each in overview.holds if each.held_by_someone == by_someone]
            if holds:
                yield Section(title, (ItemList(tuple(_holds(holds, overview.setting.now))),))
                yield Blank()
    yield from (
        line(f"Pool {each.pool} is only observed: {each.observed_because}.", "warn")
        for each in overview.pools
        if each.observed_because and each.mode == "Enforce"
    )
    yield from (line(f"Pool {each.pool} lacks capacity: {each.short}.", "bad") for each in overview.pools if each.short)
    yield from (line(text) for text in map(_guard, overview.guarded) if text)
    if overview.controller is not None:
        yield line(controller_words(overview.controller, overview.setting.now))
    yield line(_waiting(overview))


def _holds(holds: Sequence[DecisionText], now: Instant) -> Iterator[Item]:
    """One item per reason: the first hold with the reason, and the number of others."""
    for group in grouped(holds, lambda each: (each.decision.reason.code, each.is_supposed)).values():
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        until = min((each.until for each in group if each.until is not None), default=None)
        details = [Detail(first.sentence)]
        if until is not None:
            details.append(Detail(f"re-evaluated {format_moment(until, now)}"))
        title = would(f"{first.decision.subject.title}{more}", first.is_supposed)
        mark, tone = mark_of(first)
        yield Item(mark, title, first.place, tuple(details), tone)


def _row(pool: PoolOverview) -> Row:
    numbers = (pool.nodes, pool.busy_nodes, pool.gpus, pool.gpus_in_use, pool.drifted_nodes)
    return Row((pool.pool, pool.mode, *("?" if each is None else str(each) for each in numbers)))


def _guard(guarded: GuardVerdict) -> str:
    """Such as Guard fleet, in the last hour: removed nodes 6 of 40. Suppressed changes are excluded."""
    hour = [each for each in guarded.counts if each.period == "hour"]
    text = ", ".join(f"{MEASURES[each.measure]} {each.before} of {each.allowed}" for each in hour)
    held = f"; holds {counted(guarded.held, 'decision')}" if guarded.held else ""
    return f"Guard {guarded.guard}, in the last hour: {text or 'no limit'}{held}." if hour or held else ""


def _waiting(overview: Overview) -> str:
    lines = [f"{counted(overview.pending, 'action')} to carry out"] if overview.pending else []
    lines += [f"{number} suppressed (would apply if {clause})" for number, clause in conditions(overview.supposed)]
    if overview.held:
        lines.append(f"{overview.held} held")
    if overview.waiting:
        lines.append(f"{overview.waiting} waiting")
    if not lines:
        more = "more " if overview.leaving else ""
        about = " for the objects that could be read" if overview.unread else ""
        return f"There is nothing {more}to do{' now' if more else ''}{about}."
    return f"{', '.join(lines)}. For details, run `reconciler plan`."


def _payload(overview: Overview) -> dict[str, Any]:
    setting = overview.setting
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "reconciler", "version": setting.tool_version},
        "environment": setting.environment,
        "revision": setting.revision,
        "now": timestamp(setting.now),
        "cluster": {"name": setting.cluster, "uid": setting.cluster_uid, "seen_at": time_json(setting.seen_at or None)},
        "pools": [msgspec.to_builtins(pool) for pool in overview.pools],
        "guards": msgspec.to_builtins([each for each in guards_json(overview.guarded) if not each.would]),
        "freezes": msgspec.to_builtins(freezes_json(overview.freezes)),
        "unread": [{"kind": each.kind, "why": each.why} for each in sorted(overview.unread)],
        "notices": list(overview.notices),
        "pending": overview.pending,
        "would": sum(overview.supposed.values()),
        "held": overview.held,
        "waiting": overview.waiting,
        "controller": _controller(overview.controller or ControllerStatus()),
        "leaving": [_leaving(each) for each in overview.leaving],
        "holds": [_hold(each) for each in overview.holds],
        "waiting_claims": [waiting_json(each) for each in overview.claims],
        "pressed_nodes": [pressed_node_json(each) for each in overview.pressed],
    }


def _controller(controller: ControllerStatus) -> dict[str, Any]:
    times = {name: time_json(getattr(controller, name)) for name in ("leads_since", "renewed_at", "seen_cluster_at")}
    return {"leader": controller.leader, "runs": controller.runs, **times, "why_unknown": controller.why_unknown}


def _leaving(leaving: LeavingNodes) -> dict[str, Any]:
    return {
        "pool": leaving.pool,
        "how": leaving.how,
        "nodes": list(leaving.nodes),
        "pods": leaving.pods,
        "first_at": time_json(leaving.first_at),
        "last_at": time_json(leaving.last_at),
        "would": leaving.observation is not None,
        "observed_because": leaving.observation.causes_text if leaving.observation is not None else "",
        "guard": leaving.guard,
    }


def _hold(decision_text: DecisionText) -> dict[str, Any]:
    return {
        "subject": decision_text.decision.subject.title,
        "held": decision_text.held_by_someone,
        "reason": decision_text.decision.reason.code,
        "sentence": decision_text.sentence,
        "hold": decision_text.hold,
        "until": time_json(decision_text.until),
    }


# --- Builds the overview from a plan and its fleet.


def overview_of(setting: ReportHeader, scene: PlanningResult, notices: tuple[str, ...] = ()) -> Overview:
    """State of all declared pools, and counts of decisions."""
    contained, planned = SectionContainment(), scene
    scene = contained.part("leaving and arriving nodes", lambda: with_impact(planned).scene, scene)
    decisions = tuple(each for each in scene.plan.decisions if not is_at_rest(each))
    holds = tuple(each for each in decisions if isinstance(each.act, Hold))
    # One plan writes to some of the drain candidates; counts cover all of them.
    later = [each for each in scene.plan.decisions if isinstance(each.reason.facts, DrainCandidateNext)]
    acted = [each for each in decisions if not isinstance(each.act, Hold)]
    observations = (supposed_by(scene.inputs, each) for each in (*acted, *later))
    supposed = Counter(each for each in observations if each is not None)
    pools = tuple(
        contained.part(
            f"pool {pool.name}",
            partial(_pool_overview, scene, pool),
            PoolOverview(pool.name, pool.spec.mode),
        )
        for pool in scene.inputs.desired.pools
    )
    leaving = contained.several("leaving and arriving nodes", lambda: leaving_of(scene))
    decision_texts = contained.several("the holds", lambda: describe_decisions(scene.inputs, holds))
    return Overview(
        setting=setting,
        pools=pools,
        unread=unread_of_use(scene.inputs.observed),
        notices=(*notices, *set_aside_notices(scene.inputs.observed), *contained.notes),
        pending=len(acted) + len(later) - supposed.total(),
        supposed=supposed,
        held=sum(map(is_held, holds)),
        waiting=sum(not is_held(each) for each in holds),
        freezes=Freezes(scene.inputs, scene.fleet).all(),
        guarded=tuple(each for each in scene.plan.guarded if not each.would),
        controller=controller_of(scene.inputs.observed),
        leaving=leaving,
        holds=decision_texts,
        claims=scene.plan.report(ClaimReport).waiting,
        pressed=contained.several("nodes under pressure", lambda: pressed_of(scene)),
    )


def _pool_overview(scene: PlanningResult, pool: Declared[GpuPool]) -> PoolOverview:
    use = use_of(scene.fleet, pool.name, pool.spec.devices.count)
    drifted = sum(claim.says("Drifted") for claim in scene.fleet.claims_of(pool.name))
    why, observation = scene.inputs.observed.why_unread, observation_of(scene.inputs, pool.name)
    return PoolOverview(
        pool=pool.name,
        mode=pool.spec.mode,
        nodes=None if why("nodes") else use.nodes,
        busy_nodes=None if why("nodes", "pods") else use.busy_nodes,
        gpus=None if why("nodes") else use.gpus_total,
        gpus_in_use=None if why("nodes", "pods") else use.gpus_used,
        drifted_nodes=None if why("nodeclaims.karpenter.sh") else drifted,
        observed_because=observation.causes_text if observation is not None else "",
        short=short_words(short_of(scene.plan.memory.shortages, pool.name, scene.inputs.now)),
    )
