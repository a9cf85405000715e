"""Release: removes everything that reconciler put on a cluster."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.decision import (
    Annotate,
    Decision,
    Delete,
    Hold,
    Label,
    Preconditions,
    Ref,
    Taint,
    node_ref,
)
from reconciler.plan.feature.release_context import ReleaseContext, made_by_us, released
from reconciler.plan.features import FEATURES
from reconciler.plan.reasons import OfObject

# --- Reasons for releasing or keeping an object.


class TaintReleased(OfObject, frozen=True):
    template = "{object} has the taint {key}:{effect} of reconciler: the taint is removed."

    key: str
    effect: str


class LabelsReleased(OfObject, frozen=True):
    template = "{object} has labels of reconciler ({keys}): the labels are removed."

    keys: tuple[str, ...]


class FreezeReleased(OfObject, frozen=True):
    template = "{object} is frozen, which has no effect without reconciler: the freeze annotations are removed."


class ObjectReleased(OfObject, frozen=True):
    template = "{object} was created for a pool: {object} is deleted."


class ReleasedWhenUnused(OfObject, frozen=True):
    template = (
        "{object} was created for a pool and stays: {pods} pods use {object}, and their controllers need {object} for "
        "new pods."
    )

    pods: int


REASONS = (
    TaintReleased,
    LabelsReleased,
    FreezeReleased,
    ObjectReleased,
    ReleasedWhenUnused,
)


# --- Everything that reconciler put on a cluster, and how to remove it.
#
# NodePools stay as they are, including the labels and budgets that reconciler wrote, because any edit of a NodePool
# could cost nodes. Labels and taints that a Node has from its NodePool stay too, because new nodes would have them
# again. Policies that are custom resources belong to the people who wrote them.
#
# A subject gets one action at a time: the caller observes the cluster and calls `release` again until there are no more
# actions. Objects that only one feature writes are removed by that feature (see plan/feature.py).

# Kinds that must have been read to say that nothing is left.
NEEDED = ("nodes", "pods", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh")

_FREEZE = ((names.FROZEN_UNTIL, None), (names.FROZEN_REASON, None))


def release(observed: Observed, pool: str = "") -> tuple[Decision, ...]:
    """Decisions that remove objects and marks now. Objects that can't be removed get a hold with the reason."""
    context = ReleaseContext(observed, pool)
    decisions: dict[Ref, Decision] = {}
    for line in RELEASED:
        for decision in line(context):
            decisions.setdefault(decision.subject, decision)
    return tuple(decisions[subject] for subject in sorted(decisions))


def why_unsure(observed: Observed) -> str:
    """Why objects of reconciler may exist that were not read; empty if all kinds could be read."""
    kept = tuple(each.kind for each in observed.unread if each.kind.endswith(f"{names.MANAGED}=true"))
    return observed.why_unread(*NEEDED, *kept)


def _taints(context: ReleaseContext) -> Iterator[Decision]:
    for node in context.nodes:
        duration = _template_taints(context, node)
        for taint in node.spec.taints:
            if taint.key.startswith(names.OURS) and (taint.key, taint.effect) not in duration:
                act = Taint(key=taint.key, value=None, effect=taint.effect)
                why = TaintReleased(object=node_ref(node), key=taint.key, effect=taint.effect)
                yield released(node_ref(node), act, why, node.pool)


def _labels(context: ReleaseContext) -> Iterator[Decision]:
    for node in context.nodes:
        duration = _template_labels(context, node)
        ours = sorted(key for key in node.metadata.labels if key.startswith(names.OURS) and key not in duration)
        if ours:
            act = Label(labels=tuple((key, None) for key in ours))
            why = LabelsReleased(object=node_ref(node), keys=tuple(ours))
            yield released(node_ref(node), act, why, node.pool)


def _freezes(context: ReleaseContext) -> Iterator[Decision]:
    frozen: list[tuple[Ref, Metadata, str]] = [(node_ref(each), each.metadata, each.pool) for each in context.nodes]
    if not context.pool:
        own = (each for each in context.observed.namespaces if not each.metadata.leaving)
        frozen += [(Ref("Namespace", "", each.name, each.metadata.uid), each.metadata, "") for each in own]
    for subject, metadata, pool in frozen:
        if metadata.annotations.frozen_until or metadata.annotations.frozen_reason:
            act = Annotate(annotations=_FREEZE)
            yield released(subject, act, FreezeReleased(object=subject), pool)


def _objects(context: ReleaseContext) -> Iterator[Decision]:
    """Objects that templates rendered besides NodePools: smart pods, their budgets and priority classes."""
    users = Counter(each.spec.priority_class_name for each in context.observed.pods if not made_by_us(each))
    for each in context.observed.kept:
        metadata = each.metadata
        if metadata.deletion_timestamp or not context.is_of_pool(metadata.labels):
            continue
        if each.kind == "Pod" and (metadata.namespace, each.name) not in context.own_pods:
            continue
        subject = Ref(each.kind, metadata.namespace, each.name, metadata.uid)
        pool = metadata.labels.get(names.POOL, "")
        if each.kind == "PriorityClass" and (pods := users[each.name]):
            yield released(subject, Hold(), ReleasedWhenUnused(object=subject, pods=pods), pool)
            continue
        delete = Delete(
            presumes=Preconditions(resource_version="" if each.kind == "Pod" else metadata.resource_version)
        )
        yield released(subject, delete, ObjectReleased(object=subject), pool)


# The first decision about a subject counts. Feature-specific releases come first, then taints, which keep pods away.
RELEASED: tuple[Callable[[ReleaseContext], Iterable[Decision]], ...] = (
    *(line for feature in FEATURES for line in feature.release),
    _taints,
    _labels,
    _freezes,
    _objects,
)


def _template_taints(context: ReleaseContext, node: Node) -> set[tuple[str, str]]:
    """Taints that the NodePool gives to each node permanently. Startup taints are not included: whoever declared a
    startup taint removes the taint.
    """
    node_pool = context.templates.get(node.metadata.labels.get(names.KARPENTER_POOL, ""))
    template = (node_pool.spec.get("template") or {}).get("spec") or {} if node_pool else {}
    return {(str(each.get("key")), str(each.get("effect"))) for each in template.get("taints") or ()}


def _template_labels(context: ReleaseContext, node: Node) -> set[str]:
    """Labels that the node has from its NodePool. Without Karpenter, people set the pool label of a node themselves."""
    node_pool = context.templates.get(node.metadata.labels.get(names.KARPENTER_POOL, ""))
    template = (node_pool.spec.get("template") or {}).get("metadata") or {} if node_pool else {}
    by_people = set() if names.KARPENTER_POOL in node.metadata.labels else {names.POOL}
    return {*(template.get("labels") or {}), *context.claimed_labels.get(node.name, {}), *by_people}
