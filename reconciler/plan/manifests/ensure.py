"""One manifest: what it takes that the cluster has it as it is wished, or what is in the way."""

import msgspec

from reconciler.model.cluster.whole import Whole
from reconciler.model.desired import Manifest
from reconciler.model.planned.action import Apply, Hold, Presumes, Ref
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.draft import Verdict
from reconciler.plan.karpenter.drift import Drift, drift_of
from reconciler.plan.karpenter.edits import which_fields
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.adopt import adopt, labels
from reconciler.plan.manifests.compare import compare
from reconciler.plan.manifests.comparison import Comparison
from reconciler.plan.manifests.kind_traits import fixed_fields
from reconciler.plan.manifests.settled import is_settled
from reconciler.plan.manifests.sight import NODE_POOL, Sight
from reconciler.plan.manifests.wish import Wish, ref_of, wish_of

_NOTHING = Verdict()


class _Edit(msgspec.Struct, frozen=True):
    """An object of ours that is not as it is wished."""

    wish: Wish
    live: Whole
    subject: Ref
    comparison: Comparison


def ensure(sight: Sight, manifest: Manifest) -> Verdict:
    """What to do for one manifest; for one that stands as it is wished, nothing."""
    live = sight.objects.get((manifest.kind, manifest.namespace, manifest.name))
    verdict = _decided(sight, manifest, live)
    if live is None or live.kind != NODE_POOL or verdict.consequences:
        return verdict
    return msgspec.structs.replace(verdict, consequences=sight.standing(live, manifest.pool))


def _decided(sight: Sight, manifest: Manifest, live: Whole | None) -> Verdict:
    if live is not None and _is_kept_elsewhere(sight, manifest, live):
        return _NOTHING
    if why := _in_the_way(sight, manifest, live):
        return _held(manifest, live, why)
    if live is None:
        reason = reasons.MISSING.reason(manifest.origin, object=ref_of(manifest, live).title)
        apply = Apply(manifest=wish_of(manifest, live, sight.environment).text, presumes=Presumes(absent=True))
        return Verdict((Decision(reasons.PLANNER, ref_of(manifest, live), apply, reason, manifest.pool),))
    if not live.is_ours:
        return adopt(sight, manifest, live)
    wish = wish_of(manifest, live, sight.environment)
    edited = _NOTHING if is_settled(live, wish.body) else _edited(sight, wish, live)
    if not wish.node_labels:
        return edited
    lacking = tuple(labels(sight, wish, ref_of(manifest, live)))
    return msgspec.structs.replace(edited, decisions=(*edited.decisions, *lacking)) if lacking else edited


def _is_kept_elsewhere(sight: Sight, manifest: Manifest, live: Whole) -> bool:
    """What is for all pools is for those of every environment: whichever made it keeps it for the others."""
    return not manifest.pool and live.is_ours and bool(sight.other_environment(live))


def _in_the_way(sight: Sight, manifest: Manifest, live: Whole | None) -> Reason | None:
    """What forbids to look any further; the first that applies."""
    title, origin, pool = ref_of(manifest, live).title, manifest.origin, sight.pools.get(manifest.pool)
    if why := sight.why_unread(manifest.kind):
        return reasons.UNREAD.reason(origin, object=title, why=why)
    if live is None:
        return _no_place(sight, manifest, title)
    if live.metadata.deletion_timestamp:
        return reasons.LEAVING.reason(origin, object=title)
    if other := sight.other_environment(live):
        return reasons.OF_ANOTHER.reason(origin, object=title, environment=other, observed=_observed(live))
    if not live.is_ours and not (pool and pool.spec.adopt):
        if not manifest.pool:
            return reasons.NOT_OURS_FOR_ALL.reason(origin, object=title)
        return reasons.NOT_OURS.reason(origin, object=title, pool=manifest.pool, observed=_observed(live))
    return None


def _observed(live: Whole) -> str:
    """What it means for nodes that their NodePool is not ours."""
    return ", and its nodes are only observed" if live.kind == NODE_POOL else ""


def _no_place(sight: Sight, manifest: Manifest, title: str) -> Reason | None:
    """Why an object that is not there can't be made."""
    if sight.is_absent(manifest.kind):
        return reasons.ABSENT.reason(manifest.origin, object=title, kind=manifest.kind)
    if sight.is_taken((manifest.kind, manifest.namespace, manifest.name)):
        return reasons.NAME_TAKEN.reason(manifest.origin, object=title)
    return None


def _edited(sight: Sight, wish: Wish, live: Whole) -> Verdict:
    comparison = compare(live, wish.body)
    if not comparison.changes:
        return _NOTHING
    edit = _Edit(wish, live, ref_of(wish.manifest, live), comparison)
    if why := _refused(edit):
        return _held(wish.manifest, live, why)
    if live.kind != NODE_POOL:
        return _applied(edit, reasons.IN_PLACE.reason(wish.manifest.origin, **_facts(edit)))
    if not which_fields(live.spec, comparison.spec):
        follows = sight.standing(live, wish.manifest.pool, comparison.spec)
        return _applied(edit, _in_place(edit, follows), follows)
    if why_unread := sight.why_fleet_unread:
        facts = _facts(edit) | {"why": why_unread}
        return _held(wish.manifest, live, reasons.IMPACT_UNREAD.reason(wish.manifest.origin, **facts))
    drift = drift_of(live, comparison.spec, sight.fleet.claims_of(live.name))
    consequences = sight.fates(live, comparison.spec, drift, wish.manifest.pool)
    return _applied(edit, _by_drift(sight, edit, drift, consequences), consequences)


def _refused(edit: _Edit) -> Reason | None:
    """Why the API server would refuse it."""
    title, origin = edit.subject.title, edit.wish.manifest.origin
    if fixed := fixed_fields(edit.live.kind, edit.comparison.paths):
        return reasons.FIXED.reason(origin, object=title, fields=fixed)
    if edit.comparison.foreign and not _may_force(edit):
        return reasons.CONFLICT.reason(origin, object=title, **edit.comparison.contested)
    return None


def _may_force(edit: _Edit) -> bool:
    """Whether every field in question is shared with whoever had the object before we adopted it."""
    return edit.wish.adopted and all(each.shared for each in edit.comparison.foreign)


def _in_place(edit: _Edit, follows: tuple[Consequence, ...]) -> Reason:
    origin, opened = edit.wish.manifest.origin, [each for each in follows if each.cause == "change"]
    if not opened:
        return reasons.IN_PLACE.reason(origin, **_facts(edit))
    nodes, gpus = sum(len(each.nodes) for each in opened), sum(each.gpus for each in opened)
    return reasons.OPENS.reason(origin, **_facts(edit), nodes=nodes, gpus=gpus)


def _by_drift(sight: Sight, edit: _Edit, drift: Drift, consequences: tuple[Consequence, ...]) -> Reason:
    nodes, drifted = len(sight.fleet.claims_of(edit.live.name)), len(drift.fresh)
    origin, facts = edit.wish.manifest.origin, _facts(edit) | {"nodes": nodes}
    if drifted:
        gpus = sum(each.gpus for each in consequences if each.cause == "change" and each.fate != "undrifted")
        because = reasons.DRIFTS_ALL if drifted == nodes else reasons.DRIFTS_SOME
        return because.reason(origin, **facts, drifted=drifted, gpus=gpus)
    if drift.undrifted:
        return reasons.UNDRIFTS.reason(origin, **facts, undrifted=len(drift.undrifted))
    return (reasons.NEW_NODES_ONLY if nodes else reasons.NO_NODES_YET).reason(origin, **facts)


def _facts(edit: _Edit) -> dict[str, str | int]:
    return {"object": edit.subject.title, "fields": edit.comparison.fields}


def _applied(edit: _Edit, reason: Reason, consequences: tuple[Consequence, ...] = ()) -> Verdict:
    apply = Apply(
        manifest=edit.wish.text,
        force=bool(edit.comparison.foreign),
        presumes=Presumes(resource_version=edit.live.metadata.resource_version),
    )
    decision = Decision(reasons.PLANNER, edit.subject, apply, reason, edit.wish.manifest.pool)
    return Verdict((decision,), consequences)


def _held(manifest: Manifest, live: Whole | None, why: Reason) -> Verdict:
    return Verdict((Decision(reasons.PLANNER, ref_of(manifest, live), Hold(), why, manifest.pool),))
