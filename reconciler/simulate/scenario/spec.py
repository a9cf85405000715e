"""A Scenario: policies over time, a cluster, what runs on it, what goes wrong, and what is expected of it all."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, KeyPattern, MergeKey, Says, Shaped, Unit, Within
from reconciler.model.policy.gpu import CapacityType, PoolTaint
from reconciler.model.quantity import Duration
from reconciler.policy.tree import plain
from reconciler.policy.yaml import read
from reconciler.protocol.preconditions import Object
from reconciler.simulate.scenario.cluster import InitialCluster, Labels, ScenarioMarket, ScenarioWorkload

# --- An Edit: what a person, or a tool other than ours, does to an object of the cluster.

EditedKind = Literal["Node", "NodePool", "NodeClaim", "Pod", "PodDisruptionBudget", "Namespace"]

Annotations = Annotated[dict[str, Annotated[str, Within(most=4_096)]], LABEL_KEY]


class ScenarioEdit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Some objects, and what is done to them: a cordon, a freeze, a mark of a driver upgrade, a budget that comes."""

    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("After which it is taken back; absent, never.")] = None
    every: Annotated[Duration | None, Says("How often it is done again; absent, once.")] = None
    kind: Annotated[EditedKind, Says("Kind of the objects.")]
    name: Annotated[
        str, Says("Name of the object; of a PodDisruptionBudget, that of its workload."), Within(1, 253), NAME
    ] = ""
    pool: Annotated[str, Says("Where there is no name: of which NodePool they are."), Within(1, 253), NAME] = ""
    count: Annotated[int, Says("Where there is no name: how many."), Within(1, 10_000), Unit("objects")] = 1
    having: Annotated[Labels, Says("Where there is no name: labels that they have.")] = msgspec.field(
        default_factory=dict
    )
    order: Annotated[
        Literal["ByChance", "Oldest", "Youngest"], Says("Where there is no name: who comes first, if not all of them.")
    ] = "ByChance"
    labels: Annotated[Labels, Says("Labels that it sets.")] = msgspec.field(default_factory=dict)
    annotations: Annotated[Annotations, Says("Annotations that it sets.")] = msgspec.field(default_factory=dict)
    taints: Annotated[
        list[PoolTaint], Says("Taints that it adds to a node."), Within(most=50), MergeKey(("key", "effect"))
    ] = msgspec.field(default_factory=list)
    unschedulable: Annotated[bool | None, Says("Whether a node is cordoned.")] = None
    max_unavailable: Annotated[
        int | None,
        Says("Of a PodDisruptionBudget, which is made where there is none."),
        Within(0, 100_000),
        Unit("pods"),
    ] = None
    lifts: Annotated[
        str, Says("A scheduling gate that it lifts from a pod."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)
    ] = ""
    deleted: Annotated[bool, Says("Whether it is deleted.")] = False


# --- An Expectation: a figure, and what it must be.

Measure = Literal[
    "evictions",
    "disruptedGPUs",
    "lostPods",
    "pendingGPUMinutes",
    "gpuUtilizationPercent",
    "gpuHoursPaid",
    "dollars",
    "nodesBought",
    "nodesRemoved",
    "finishedPods",
    "actions",
    "nodes",
    "targetNodes",
    "taintedNodes",
    "pendingPods",
    "heldByGuards",
]
# Known of each pool by itself.
POOLED = frozenset({"nodes", "targetNodes", "taintedNodes", "gpuUtilizationPercent", "gpuHoursPaid", "dollars"})


class Expectation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A figure, and the least and the most that it may be."""

    measure: Annotated[Measure, Says("Which figure.")]
    pool: Annotated[str, Says("Of which pool; absent, of all that there is."), Within(1, 253), NAME] = ""
    at: Annotated[Duration | None, Says("When; absent, at the end.")] = None
    at_least: Annotated[int | None, Says("The least it may be."), Within(0, 10**15)] = None
    at_most: Annotated[int | None, Says("The most it may be."), Within(0, 10**15)] = None


# --- A Fault: something that goes wrong, once or again and again.

FaultKind = Literal[
    "NodeDeath",
    "NodeNotReady",
    "KubeletDown",
    "StockOut",
    "NotOffered",
    "SlowApi",
    "LateWatch",
    "EvictionsFail",
    "SlowKubelets",
    "SlowWorkloads",
    "ControllerCrash",
    "ControllerAbsent",
]


class ScenarioFault(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Something that goes wrong."""

    fault: Annotated[FaultKind, Says("What goes wrong.")]
    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("For how long; absent, until the end.")] = None
    every: Annotated[Duration | None, Says("How often it happens again; absent, once.")] = None
    pool: Annotated[
        str, Says("NodeDeath, NodeNotReady and KubeletDown: of which NodePool; absent, of any."), Within(1, 253), NAME
    ] = ""
    count: Annotated[
        int, Says("NodeDeath, NodeNotReady and KubeletDown: how many at once."), Within(1, 10_000), Unit("nodes")
    ] = 1
    instance_type: Annotated[
        str,
        Says("StockOut and NotOffered: which instance type is not to be had; absent, any."),
        Within(1, 63),
        LABEL_VALUE,
    ] = ""
    zone: Annotated[
        str, Says("StockOut and NotOffered: in which zone; absent, in any."), Within(1, 63), LABEL_VALUE
    ] = ""
    capacity_type: Annotated[CapacityType | None, Says("StockOut and NotOffered: bought how; absent, in any way.")] = (
        None
    )
    after_writes: Annotated[
        int, Says("ControllerCrash: after how many more writes; absent, at once."), Within(0, 10_000), Unit("writes")
    ] = 0
    delay: Annotated[Duration, Says("SlowApi, LateWatch, SlowKubelets and SlowWorkloads: by how much.")] = Duration(
        5_000
    )


# --- Objects that a scenario writes out, each the YAML that somebody would have applied.


def why_unreadable(text: str) -> str:
    """Nothing where it is one object."""
    nodes, problems = read("", text.encode())
    if problems:
        return problems[0].sentence
    if len(nodes) != 1:
        return f"one object is expected, and here are {len(nodes)}"
    body = plain(nodes[0])
    metadata = body.get("metadata") if isinstance(body, dict) else None
    is_named = isinstance(metadata, dict) and metadata.get("name")
    return "" if is_named and body.get("kind") and body.get("apiVersion") else "this is no object of a cluster"


def object_of(text: str) -> Object:
    """One of which it is known that it can be read."""
    (node,), _ = read("", text.encode())
    body: Object = plain(node)
    if body["kind"] == "Pod":
        body.setdefault("status", {"phase": "Pending"})
    return body


# --- A Revision: the policies from some moment on.

_FILE = KeyPattern(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.(ya?ml|json|j2)$", "a file such as base/a100.yaml")

MOST_REVISION = 64  # letters of a name


class ScenarioRevision(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The policies from some moment on: a folder, or files written out here."""

    at: Annotated[Duration, Says("When they are merged.")] = Duration(0)
    revision: Annotated[str, Says("What the revision is called in reports."), Within(most=MOST_REVISION)] = ""
    folder: Annotated[str, Says("Where they are, from the folder of the scenario."), Within(1, 1024)] = ""
    files: Annotated[
        dict[str, Annotated[str, Within(most=200_000)]], Says("What each file says, where there is no folder."), _FILE
    ] = msgspec.field(default_factory=dict)


_TIME = Shaped(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$", 'a time such as "2026-11-16T08:00:00Z"')


class Scenario(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A story to be simulated: what is wished for, what there is, what comes, and what is expected."""

    description: Annotated[str, Says("What the story is about, in a sentence or two."), Within(most=2000)] = ""
    start: Annotated[str, Says("When it begins; all other times are counted from here."), _TIME] = (
        "2026-11-16T08:00:00Z"
    )
    duration: Annotated[Duration, Says("How long it lasts.")]
    warm_up: Annotated[
        Duration,
        Says("So long it all goes on before, with no controller there; what always runs from the beginning runs then."),
    ] = Duration(0)
    seed: Annotated[int, Says("From which all chance follows."), Within(0, 2**53)] = 1
    cycle_every: Annotated[Duration, Says("How far apart cycles of the controller are at least.")] = Duration(1_000)
    environment: Annotated[
        str | None, Says("Environment of the policies: base, or the name of an overlay."), Within(1, 253)
    ] = None
    policies: Annotated[list[ScenarioRevision], Says("The policies, and what becomes of them."), Within(1, 100)]
    cluster: Annotated[InitialCluster, Says("What there is at first.")] = InitialCluster()
    market: Annotated[ScenarioMarket, Says("What Karpenter can buy, and how long that takes.")] = ScenarioMarket()
    workloads: Annotated[list[ScenarioWorkload], Says("What runs."), Within(most=1_000), MergeKey(("name",))] = (
        msgspec.field(default_factory=list)
    )
    faults: Annotated[list[ScenarioFault], Says("What goes wrong."), Within(most=1_000)] = msgspec.field(
        default_factory=list
    )
    edits: Annotated[list[ScenarioEdit], Says("What people and other tools do to objects."), Within(most=1_000)] = (
        msgspec.field(default_factory=list)
    )
    expect: Annotated[
        list[Expectation], Says("What must come of it; where it does not, the simulation fails."), Within(most=100)
    ] = msgspec.field(default_factory=list)
