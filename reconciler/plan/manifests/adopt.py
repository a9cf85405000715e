"""What was someone else's becomes ours, when asked: no node of it drifts, or it is not adopted.

An adopted object keeps its former manager beside us, who set the same fields to the same. The API server would refuse
each later edit of such a shared field as a conflict; so what was adopted is edited by force, where we share the field.
A field that the former manager has set anew since is its alone, and is not taken from it.
"""

from collections.abc import Iterator

from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.action import Apply, Hold, Label, Preconditions, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import node_ref
from reconciler.plan.draft import Verdict
from reconciler.plan.karpenter.drift import drift_of
from reconciler.plan.karpenter.edits import which_fields
from reconciler.plan.manifests.compare import compare
from reconciler.plan.manifests.comparison import Comparison
from reconciler.plan.manifests.context import NODE_POOL, ManifestContext
from reconciler.plan.manifests.kind_traits import fixed_fields
from reconciler.plan.manifests.reasons import (
    PLANNER,
    Adopted,
    AdoptedByForce,
    AdoptionWouldDrift,
    FieldFixed,
    ImpactUnread,
    NodeLabel,
    NodeLacksLabels,
)
from reconciler.plan.manifests.wanted_manifest import WantedManifest, ref_of, wish_of


def adopt(context: ManifestContext, manifest: Manifest, live: Unstructured) -> Verdict:
    """Takes the object over, or says why not."""
    wish = wish_of(manifest, live, context.environment, adopting=True)
    comparison = compare(live, wish.body)
    subject = ref_of(manifest, live)
    if why := _why_not(context, manifest, live, comparison):
        return Verdict((Decision(PLANNER, subject, Hold(), why, manifest.pool),))
    apply = Apply(
        manifest=wish.text,
        force=bool(comparison.foreign),
        presumes=Preconditions(resource_version=live.metadata.resource_version),
    )
    taken = Decision(PLANNER, subject, apply, _reason(subject, manifest, comparison), manifest.pool)
    follows = context.current_consequences(live, manifest.pool, comparison.spec) if live.kind == NODE_POOL else ()
    return Verdict((taken, *labels(context, wish, subject, after=(subject,))), follows)


def labels(
    context: ManifestContext, wish: WantedManifest, node_pool: Ref, after: tuple[Ref, ...] = ()
) -> Iterator[Decision]:
    """Puts on each node what it lacks."""
    if not wish.node_labels:
        return
    for node in context.fleet.nodes_of(node_pool.name):
        borne = node.metadata.labels
        lacking = tuple((key, value) for key, value in wish.node_labels.items() if borne.get(key) != value)
        if lacking and not node.metadata.leaving:
            # Of that very node, whatever else changed on it: a kubelet writes its status every few minutes.
            act = Label(labels=lacking)
            node_labels = tuple(NodeLabel(key, value) for key, value in lacking)
            reason = Reason(NodeLacksLabels(node=node.name, labels=node_labels, object=node_pool), wish.manifest.origin)
            yield Decision(PLANNER, node_ref(node), act, reason, wish.manifest.pool, after=after)


def _why_not(context: ManifestContext, manifest: Manifest, live: Unstructured, comparison: Comparison) -> Reason | None:
    subject, origin = ref_of(manifest, live), manifest.origin
    if fixed := fixed_fields(live.kind, comparison.paths):
        return Reason(FieldFixed(object=subject, paths=fixed), origin)
    changed = which_fields(live.spec, comparison.spec) if live.kind == NODE_POOL else ()
    if not changed:
        return None
    paths = tuple(f"spec.{path}" for path in changed)
    if why := context.why_fleet_unread:
        return Reason(ImpactUnread(object=subject, paths=paths, why=why), origin)
    claims = context.fleet.claims_of(live.name)
    drifted = drift_of(live, comparison.spec, claims).fresh
    if not drifted:
        return None
    return Reason(AdoptionWouldDrift(object=subject, paths=paths, drifted=len(drifted), nodes=len(claims)), origin)


def _reason(subject: Ref, manifest: Manifest, comparison: Comparison) -> Reason:
    if not comparison.foreign:
        return Reason(Adopted(object=subject), manifest.origin)
    facts = AdoptedByForce(object=subject, managers=comparison.managers, paths=comparison.contested)
    return Reason(facts, manifest.origin)
