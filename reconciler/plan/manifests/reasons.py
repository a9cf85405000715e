"""Why a manifest is applied, an object pruned, a label put on a node; or why not."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reconciler.model.plan.decision import CodeFacts, Facts, Ref
from reconciler.plan.reasons import OfPaths

PLANNER = "manifests"


class NodeLabel(msgspec.Struct, frozen=True, gc=False):
    """A label that a node lacks."""

    key: str
    value: str


class Differs(OfPaths, frozen=True):
    """An object that is there differs from its manifest. No code of its own."""

    object: Ref


# Something is wished.


class Missing(CodeFacts, frozen=True):
    template = "{object} is not in the cluster yet: it is made."

    object: Ref


class EditedInPlace(Differs, frozen=True):
    template = "{object} differs in {paths}; that changes in place, and no node is touched."


class EditedOpening(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; that changes in place, and lets Karpenter begin with nodes that had drifted "
        "before: {nodes}, with {gpus} GPUs."
    )

    nodes: int
    gpus: int


class EditedForNewNodes(Differs, frozen=True):
    template = "{object} differs in {paths}; that counts for nodes still to come, and none of {nodes} drifts."

    nodes: int


class EditedBeforeNodes(Differs, frozen=True):
    template = "{object} differs in {paths}; that counts for nodes still to come: it has no nodes yet."


class EditDriftsSome(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; that drifts {drifted} of {nodes} nodes, with {gpus} GPUs: Karpenter replaces "
        "the busy ones and deletes the empty."
    )

    drifted: int
    nodes: int
    gpus: int


class EditDriftsAll(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; that drifts all {nodes} nodes, with {gpus} GPUs: Karpenter replaces the busy "
        "ones and deletes the empty."
    )

    nodes: int
    gpus: int


class EditEndsDrift(Differs, frozen=True):
    template = "{object} differs in {paths}; that ends the drift of {undrifted} of {nodes} nodes, and drifts none."

    undrifted: int
    nodes: int


# Something is wished, and something is in the way.


class KindUnread(CodeFacts, frozen=True):
    template = "{object} could not be looked at ({why}): nothing is written blindly."

    object: Ref
    why: str


class KindAbsent(CodeFacts, frozen=True):
    template = (
        "the cluster serves no {kind}: install what defines it (Karpenter, for a NodePool), and {object} follows."
    )
    by_person = True

    object: Ref
    kind: str


class BeingDeleted(CodeFacts, frozen=True):
    template = "{object} is being deleted: what becomes of it is waited for."

    object: Ref


class NotOurs(CodeFacts, frozen=True):
    template = (
        "{object} was made by someone else{observed}; adopt: true in GpuPool/{pool} takes it over without drifting a "
        "node."
    )
    hold = "blocked"

    object: Ref
    pool: str


class NotOursForAll(CodeFacts, frozen=True):
    template = (
        "{object} was made by someone else, and smart pods of all pools need it as ours: delete it, and it is made "
        "anew."
    )
    hold = "blocked"

    object: Ref


class OwnedByOther(CodeFacts, frozen=True):
    template = (
        "{object} is kept by environment {environment}{observed}: take it out there first. If there is no such "
        "environment any more, take the annotation gpu.scheduling/environment off {object}."
    )
    hold = "blocked"

    object: Ref
    environment: str


class NameTaken(CodeFacts, frozen=True):
    template = (
        "someone else made {object}, and it is left alone: give ours another name in its template, or delete theirs."
    )
    hold = "blocked"

    object: Ref


class FieldConflict(CodeFacts, frozen=True):
    template = (
        "{object}: the field manager {managers:and} (whoever wrote it with that tool) set {paths} otherwise, and "
        "the API server would refuse to change that; to take the field over, delete it from their manifest and apply "
        "that once, or write their value into the policy."
    )
    hold = "blocked"

    object: Ref
    managers: tuple[str, ...]
    paths: tuple[str, ...]


class FieldFixed(Differs, frozen=True):
    template = (
        "{object} differs in {paths}, which can't be changed once it is there; take that back, or give the object "
        "another name."
    )
    hold = "blocked"


class ImpactUnread(Differs, frozen=True):
    template = (
        "{object} differs in {paths}, which may drift nodes, and how many can't be told ({why}): held until it can."
    )

    why: str


# Someone else's object is taken over.


class Adopted(CodeFacts, frozen=True):
    template = "{object} is taken over, as adopt: true says; no node of it drifts."

    object: Ref


class AdoptedByForce(OfPaths, frozen=True):
    template = (
        "{object} is taken over, as adopt: true says; no node of it drifts. It takes force: {managers:and} set "
        "{paths} otherwise, and loses them."
    )

    object: Ref
    managers: tuple[str, ...]


class AdoptionWouldDrift(CodeFacts, frozen=True):
    template = (
        "{object} is not taken over: {drifted} of {nodes} nodes would drift, because the policy differs in {paths}. "
        "Write the policy as the NodePool is (reconciler import does), adopt it, then change it."
    )
    hold = "blocked"

    object: Ref
    drifted: int
    nodes: int
    paths: tuple[str, ...]


class NodeLacksLabels(CodeFacts, frozen=True):
    template = (
        "{node} lacks {labels}: in the template of {object}, which was made by someone else, that would drift every "
        "node."
    )

    node: str
    labels: tuple[NodeLabel, ...]
    object: Ref


# Something of ours is wished no longer.


class NodePoolNotDeclared(CodeFacts, frozen=True):
    template = (
        "no policy declares {object} any more. Deleting it takes {nodes} nodes, {gpus} GPUs and {pods} pods at once, "
        "outside all budgets: it stays until somebody agrees to lose it (reconciler approve --prune {object})."
    )
    hold = "blocked"

    object: Ref
    nodes: int
    gpus: int
    pods: int


class ObjectNotDeclared(CodeFacts, frozen=True):
    template = (
        "no policy yields {object} any more: it stays until somebody agrees to lose it (reconciler approve --prune "
        "{object})."
    )
    hold = "blocked"

    object: Ref


class NodePoolUnclaimed(CodeFacts, frozen=True):
    template = (
        "no policy of environment {environment} declares {object}, and it does not say whose it is: another "
        "environment may. Deleting it takes {nodes} nodes, {gpus} GPUs and {pods} pods at once, outside all budgets: "
        "it stays until somebody agrees to lose it (reconciler approve --prune {object})."
    )
    hold = "blocked"

    environment: str
    object: Ref
    nodes: int
    gpus: int
    pods: int


class ObjectUnclaimed(CodeFacts, frozen=True):
    template = (
        "no policy of environment {environment} yields {object}, and it does not say whose it is: another "
        "environment may. It stays until somebody agrees to lose it (reconciler approve --prune {object})."
    )
    hold = "blocked"

    environment: str
    object: Ref


class ObjectOnlyLabelled(CodeFacts, frozen=True):
    template = (
        "no policy yields {object}, and whoever may write to its namespace could have given it our labels. It stays "
        "until somebody agrees to lose it (reconciler approve --prune {object})."
    )
    by_person = True

    object: Ref


class NodePoolPruned(CodeFacts, frozen=True):
    template = (
        "no policy declares {object} any more, and {by} agrees to lose it: it is deleted, and with it {nodes} nodes, "
        "{gpus} GPUs and {pods} pods, outside all budgets."
    )

    object: Ref
    by: str  # the ChangeApproval, or the option of the command that plans
    nodes: int
    gpus: int
    pods: int


class ObjectPruned(CodeFacts, frozen=True):
    template = "no policy yields {object} any more, and {by} agrees to lose it: it is deleted."

    object: Ref
    by: str  # the ChangeApproval, or the option of the command that plans


class PruneUnread(CodeFacts, frozen=True):
    template = (
        "no policy yields {object} any more, and what would go with it can't be told ({why}): it stays until it can."
    )

    object: Ref
    why: str


class NothingDeclared(CodeFacts, frozen=True):
    template = (
        "the policies declare no GpuPool at all, which is more likely a wrong folder than a wish: {object} stays, "
        "agreed to or not. Declare at least one pool; or, if all shall go, delete {object} by hand."
    )
    hold = "blocked"

    object: Ref


# --- The words of facts about manifests.


def _and_its_nodes(facts: NotOurs | OwnedByOther) -> str:
    """What it means for nodes that their NodePool is not ours."""
    return ", and its nodes are only observed" if facts.object.kind == "NodePool" else ""


def _label(label: NodeLabel) -> str:
    return f"{label.key}={label.value}"


WORDS: Mapping[type, Callable[[Any], str]] = {NodeLabel: _label}

PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    NotOurs: {"observed": _and_its_nodes},
    OwnedByOther: {"observed": _and_its_nodes},
}
