"""Reasons of the manifests planner: apply, prune, label, and holds."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from reconciler.model.plan.decision import CodeFacts, Facts, Ref
from reconciler.plan.reasons import OfNode, OfObject, OfPaths

PLANNER = "manifests"


class NodeLabel(msgspec.Struct, frozen=True, gc=False):
    """A label missing on a node."""

    key: str
    value: str


class Differs(OfPaths, frozen=True):
    """An existing object that differs from its manifest. Not a code by itself."""

    object: Ref


# Desired objects.


class Missing(OfObject, frozen=True):
    template = "{object} does not exist yet and is created."


class EditedInPlace(Differs, frozen=True):
    template = "{object} differs in {paths}; the edit is in place and affects no node."


class EditedOpening(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; the edit is in place, and lets Karpenter disrupt nodes that had drifted "
        "before: {nodes}, with {gpus} GPUs."
    )

    nodes: int
    gpus: int


class EditedForNewNodes(Differs, frozen=True):
    template = "{object} differs in {paths}; the edit affects only new nodes, and none of {nodes} drifts."

    nodes: int


class EditedBeforeNodes(Differs, frozen=True):
    template = "{object} differs in {paths}; the edit affects only new nodes, and the NodePool has no nodes yet."


class EditDriftsSome(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; {drifted} of {nodes} nodes drift, with {gpus} GPUs: Karpenter replaces busy "
        "nodes and deletes empty nodes."
    )

    drifted: int
    nodes: int
    gpus: int


class EditDriftsAll(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; all {nodes} nodes drift, with {gpus} GPUs: Karpenter replaces busy nodes and "
        "deletes empty nodes."
    )

    nodes: int
    gpus: int


class EditEndsDrift(Differs, frozen=True):
    template = (
        "{object} differs in {paths}; the edit ends the drift of {undrifted} of {nodes} nodes, and no other node "
        "drifts."
    )

    undrifted: int
    nodes: int


# Desired objects with an obstacle.


class KindUnread(OfObject, frozen=True):
    template = "{object} could not be read ({why}), so the object is not changed."

    why: str


class KindAbsent(OfObject, frozen=True):
    template = (
        "the cluster does not serve {kind}: install its definition (Karpenter, for a NodePool) to create {object}."
    )
    by_person = True

    kind: str


class BeingDeleted(OfObject, frozen=True):
    template = "{object} is being deleted: waiting for the end of the deletion."


class NotOurs(OfObject, frozen=True):
    template = (
        "{object} was created by someone else{observed}. To adopt it without drift of its nodes, set adopt: true in "
        "GpuPool/{pool}."
    )
    hold = "blocked"

    pool: str


class NotOursForAll(OfObject, frozen=True):
    template = (
        "{object} was created by someone else, but the smart pods of all pools need this object: delete it, and "
        "reconciler creates it again."
    )
    hold = "blocked"


class OwnedByOther(OfObject, frozen=True):
    template = (
        "{object} is owned by environment {environment}{observed}: first delete the policy of {object} in environment "
        "{environment}. If this environment does not exist any more, remove the annotation gpu.scheduling/environment "
        "from {object}."
    )
    hold = "blocked"

    environment: str


class NameTaken(OfObject, frozen=True):
    template = (
        "{object} was created by someone else and is not changed: rename the object in its template, or delete the "
        "existing object."
    )
    hold = "blocked"


class FieldConflict(OfObject, frozen=True):
    template = (
        "{object}: another tool (field manager {managers:and}) set {paths} to other values, and the API server would "
        "refuse the change. To take over a field, delete the field from the manifest of that tool and apply the "
        "manifest once; or write the other value into the policy."
    )
    hold = "blocked"

    managers: tuple[str, ...]
    paths: tuple[str, ...]


class FieldFixed(Differs, frozen=True):
    template = "{object} differs in {paths}, which is immutable; revert the change, or give the object another name."
    hold = "blocked"


class ImpactUnread(Differs, frozen=True):
    template = (
        "{object} differs in {paths}, which may make an unknown number of nodes drift ({why}): held until the number "
        "is known."
    )

    why: str


# Adoption.


class Adopted(OfObject, frozen=True):
    template = "{object} is adopted because of adopt: true; none of its nodes drifts."


class AdoptedByForce(OfPaths, frozen=True):
    template = (
        "{object} is adopted because of adopt: true; none of its nodes drifts. By force, reconciler overwrites the "
        "values of {paths} that {managers:and} set, and takes over ownership of these fields."
    )

    object: Ref
    managers: tuple[str, ...]


class AdoptionWouldDrift(OfObject, frozen=True):
    template = (
        "{object} is not adopted: {drifted} of {nodes} nodes would drift, because the policy differs in {paths}. "
        "Make the policy match the NodePool (with reconciler import), adopt the NodePool, and then change the policy."
    )
    hold = "blocked"

    drifted: int
    nodes: int
    paths: tuple[str, ...]


class NodeLacksLabels(OfNode, frozen=True):
    template = (
        "{node} lacks the labels {labels}: they are added to the node, because in the template of the adopted "
        "{object} they would make every node drift."
    )

    labels: tuple[NodeLabel, ...]
    object: Ref


# Objects without a manifest.


class NodePoolNotDeclared(OfObject, frozen=True):
    template = (
        "no policy declares {object} any more. Deletion removes {nodes} nodes, {gpus} GPUs and {pods} pods "
        "immediately, ignoring all budgets: the NodePool stays until a person allows the deletion (reconciler approve "
        "--prune {object})."
    )
    hold = "blocked"

    nodes: int
    gpus: int
    pods: int


class ObjectNotDeclared(OfObject, frozen=True):
    template = (
        "no policy renders {object} any more: the object stays until a person allows the deletion (reconciler approve "
        "--prune {object})."
    )
    hold = "blocked"


class NodePoolUnclaimed(CodeFacts, frozen=True):
    template = (
        "no policy of environment {environment} declares {object}, and the environment of the NodePool is unknown: "
        "another environment may declare it. Deletion removes {nodes} nodes, {gpus} GPUs and {pods} pods immediately, "
        "ignoring all budgets: the NodePool stays until a person allows the deletion (reconciler approve --prune "
        "{object})."
    )
    hold = "blocked"

    environment: str
    object: Ref
    nodes: int
    gpus: int
    pods: int


class ObjectUnclaimed(CodeFacts, frozen=True):
    template = (
        "no policy of environment {environment} renders {object}, and the environment of the object is unknown: "
        "another environment may render it. The object stays until a person allows the deletion (reconciler approve "
        "--prune {object})."
    )
    hold = "blocked"

    environment: str
    object: Ref


class ObjectOnlyLabelled(OfObject, frozen=True):
    template = (
        "no policy renders {object}, and anyone with access to its namespace can have set its labels. The object "
        "stays until a person allows the deletion (reconciler approve --prune {object})."
    )
    by_person = True


class NodePoolPruned(OfObject, frozen=True):
    template = (
        "no policy declares {object} any more, and {by} allows the deletion: the NodePool is deleted with {nodes} "
        "nodes, {gpus} GPUs and {pods} pods, ignoring all budgets."
    )

    by: str  # the ChangeApproval, or the option of the planning command
    nodes: int
    gpus: int
    pods: int


class ObjectPruned(OfObject, frozen=True):
    template = "no policy renders {object} any more, and {by} allows the deletion: the object is deleted."

    by: str  # the ChangeApproval, or the option of the planning command


class PruneUnread(OfObject, frozen=True):
    template = (
        "no policy renders {object} any more, and the effect of its deletion is unknown ({why}): the object stays "
        "until the effect is known."
    )

    why: str


class NothingDeclared(OfObject, frozen=True):
    template = (
        "the policies declare no GpuPool, probably because of a wrong folder: {object} stays, even if its deletion is "
        "approved. Declare at least one pool; or, to remove everything, delete {object} manually."
    )
    hold = "blocked"


# --- Texts of facts about manifests.


def _and_its_nodes(facts: NotOurs | OwnedByOther) -> str:
    """Effect on nodes if their NodePool is not ours."""
    return ", and its nodes are only observed" if facts.object.kind == "NodePool" else ""


def _label(label: NodeLabel) -> str:
    return f"{label.key}={label.value}"


WORDS: Mapping[type, Callable[[Any], str]] = {NodeLabel: _label}

PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    NotOurs: {"observed": _and_its_nodes},
    OwnedByOther: {"observed": _and_its_nodes},
}
