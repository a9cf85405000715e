"""Why a manifest is applied, an object pruned, a label put on a node; or why not."""

from reconciler.plan.reasons import Because

PLANNER = "manifests"

# Something is wished.
MISSING = Because("Missing", "{object} is not in the cluster yet: it is made.")
IN_PLACE = Because("EditedInPlace", "{object} differs in {fields}; that changes in place, and no node is touched.")
OPENS = Because(
    "EditedOpening",
    "{object} differs in {fields}; that changes in place, and lets Karpenter begin with nodes that had drifted before: "
    "{nodes}, with {gpus} GPUs.",
)
NEW_NODES_ONLY = Because(
    "EditedForNewNodes",
    "{object} differs in {fields}; that counts for nodes still to come, and none of {nodes} drifts.",
)
NO_NODES_YET = Because(
    "EditedBeforeNodes", "{object} differs in {fields}; that counts for nodes still to come: it has no nodes yet."
)
DRIFTS_SOME = Because(
    "EditDriftsSome",
    "{object} differs in {fields}; that drifts {drifted} of {nodes} nodes, with {gpus} GPUs: "
    "Karpenter replaces the busy ones and deletes the empty.",
)
DRIFTS_ALL = Because(
    "EditDriftsAll",
    "{object} differs in {fields}; that drifts all {nodes} nodes, with {gpus} GPUs: "
    "Karpenter replaces the busy ones and deletes the empty.",
)
UNDRIFTS = Because(
    "EditEndsDrift",
    "{object} differs in {fields}; that ends the drift of {undrifted} of {nodes} nodes, and drifts none.",
)

# Something is wished, and something is in the way.
UNREAD = Because("KindUnread", "{object} could not be looked at ({why}): nothing is written blindly.")
ABSENT = Because(
    "KindAbsent",
    "the cluster serves no {kind}: install what defines it (Karpenter, for a NodePool), and {object} follows.",
    by_person=True,
)
LEAVING = Because("BeingDeleted", "{object} is being deleted: what becomes of it is waited for.")
NOT_OURS = Because(
    "NotOurs",
    "{object} was made by someone else{observed}; adopt: true in GpuPool/{pool} takes it over without drifting a node.",
    hold="blocked",
)
NOT_OURS_FOR_ALL = Because(
    "NotOursForAll",
    "{object} was made by someone else, and smart pods of all pools need it as ours: delete it, and it is made anew.",
    hold="blocked",
)
OF_ANOTHER = Because(
    "OwnedByOther",
    "{object} is kept by environment {environment}{observed}: take it out there first. "
    "If there is no such environment any more, take the annotation gpu.scheduling/environment off {object}.",
    hold="blocked",
)
NAME_TAKEN = Because(
    "NameTaken",
    "someone else made {object}, and it is left alone: give ours another name in its template, or delete theirs.",
    hold="blocked",
)
CONFLICT = Because(
    "FieldConflict",
    "{object}: the field manager {manager} (whoever wrote it with that tool) set {fields} otherwise, and the API "
    "server would refuse to change that; to take the field over, delete it from their manifest and apply that once, "
    "or write their value into the policy.",
    hold="blocked",
)
FIXED = Because(
    "FieldFixed",
    "{object} differs in {fields}, which can't be changed once it is there; "
    "take that back, or give the object another name.",
    hold="blocked",
)
IMPACT_UNREAD = Because(
    "ImpactUnread",
    "{object} differs in {fields}, which may drift nodes, and how many can't be told ({why}): held until it can.",
)

# Someone else's object is taken over.
ADOPTED = Because("Adopted", "{object} is taken over, as adopt: true says; no node of it drifts.")
ADOPTED_BY_FORCE = Because(
    "AdoptedByForce",
    "{object} is taken over, as adopt: true says; no node of it drifts. "
    "It takes force: {manager} set {fields} otherwise, and loses them.",
)
ADOPTION_DRIFTS = Because(
    "AdoptionWouldDrift",
    "{object} is not taken over: {drifted} of {nodes} nodes would drift, because the policy differs in {fields}. "
    "Write the policy as the NodePool is (reconciler import does), adopt it, then change it.",
    hold="blocked",
)
NODE_LABELS = Because(
    "NodeLacksLabels",
    "{node} lacks {labels}: in the template of {object}, which was made by someone else, that would drift every node.",
)

# Something of ours is wished no longer.
NODE_POOL_GONE = Because(
    "NodePoolNotDeclared",
    "no policy declares {object} any more. Deleting it takes {nodes} nodes, {gpus} GPUs and {pods} pods at once, "
    "outside all budgets: it stays until somebody agrees to lose it (reconciler approve --prune {object}).",
    hold="blocked",
)
OBJECT_GONE = Because(
    "ObjectNotDeclared",
    "no policy yields {object} any more: it stays until somebody agrees to lose it "
    "(reconciler approve --prune {object}).",
    hold="blocked",
)
NODE_POOL_UNCLAIMED = Because(
    "NodePoolUnclaimed",
    "no policy of environment {environment} declares {object}, and it does not say whose it is: another environment "
    "may. Deleting it takes {nodes} nodes, {gpus} GPUs and {pods} pods at once, outside all budgets: "
    "it stays until somebody agrees to lose it (reconciler approve --prune {object}).",
    hold="blocked",
)
OBJECT_UNCLAIMED = Because(
    "ObjectUnclaimed",
    "no policy of environment {environment} yields {object}, and it does not say whose it is: another environment may. "
    "It stays until somebody agrees to lose it (reconciler approve --prune {object}).",
    hold="blocked",
)
OBJECT_ONLY_LABELLED = Because(
    "ObjectOnlyLabelled",
    "no policy yields {object}, and whoever may write to its namespace could have given it our labels. It stays until "
    "somebody agrees to lose it (reconciler approve --prune {object}).",
    by_person=True,
)
PRUNED_NODE_POOL = Because(
    "NodePoolPruned",
    "no policy declares {object} any more, and {by} agrees to lose it: it is deleted, and with it {nodes} nodes, "
    "{gpus} GPUs and {pods} pods, outside all budgets.",
)
PRUNED_OBJECT = Because(
    "ObjectPruned", "no policy yields {object} any more, and {by} agrees to lose it: it is deleted."
)
PRUNE_UNREAD = Because(
    "PruneUnread",
    "no policy yields {object} any more, and what would go with it can't be told ({why}): it stays until it can.",
)
NOTHING_DECLARED = Because(
    "NothingDeclared",
    "the policies declare no GpuPool at all, which is more likely a wrong folder than a wish: {object} stays, "
    "agreed to or not. Declare at least one pool; or, if all shall go, delete {object} by hand.",
    hold="blocked",
)

REASONS: tuple[Because, ...] = (
    MISSING,
    IN_PLACE,
    OPENS,
    NEW_NODES_ONLY,
    NO_NODES_YET,
    DRIFTS_SOME,
    DRIFTS_ALL,
    UNDRIFTS,
    UNREAD,
    ABSENT,
    LEAVING,
    NOT_OURS,
    NOT_OURS_FOR_ALL,
    OF_ANOTHER,
    NAME_TAKEN,
    CONFLICT,
    FIXED,
    IMPACT_UNREAD,
    ADOPTED,
    ADOPTED_BY_FORCE,
    ADOPTION_DRIFTS,
    NODE_LABELS,
    NODE_POOL_GONE,
    OBJECT_GONE,
    NODE_POOL_UNCLAIMED,
    OBJECT_UNCLAIMED,
    OBJECT_ONLY_LABELLED,
    PRUNED_NODE_POOL,
    PRUNED_OBJECT,
    PRUNE_UNREAD,
    NOTHING_DECLARED,
)
