"""A Scenario: policies over time, a cluster, workloads, faults, edits and expectations."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, KeyPattern, MergeKey, Says, Shaped, Unit, Within
from reconciler.model.plan.inputs import ClaimScheduler
from reconciler.model.policy.gpu import CapacityType, PoolTaint
from reconciler.model.quantity import Duration
from reconciler.policy.tree import plain
from reconciler.policy.yaml import read
from reconciler.protocol.preconditions import Object
from reconciler.simulate.scenario.cluster import (
    File,
    InitialCluster,
    LabelKey,
    Labels,
    LabelValue,
    Name,
    ScenarioMarket,
    ScenarioWorkload,
)

# --- An edit: a change of a cluster object by a person, or by a tool other than reconciler.

EditedKind = Literal["Node", "NodePool", "NodeClaim", "Pod", "PodDisruptionBudget", "Namespace"]

Annotations = Annotated[dict[str, Annotated[str, Within(most=4_096)]], LABEL_KEY]


class ScenarioEdit(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Objects and their changes: for example a cordon, a freeze, a driver upgrade, or a new budget."""

    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("Time until the edit is undone; absent: never.")] = None
    every: Annotated[Duration | None, Says("Interval of repetition; absent: once.")] = None
    kind: Annotated[EditedKind, Says("Kind of the objects.")]
    name: Annotated[Name, Says("Name of the object; for a PodDisruptionBudget, its workload.")] = ""
    pool: Annotated[Name, Says("Without a name: NodePool of the objects.")] = ""
    count: Annotated[int, Says("Without a name: number of objects."), Within(1, 10_000), Unit("objects")] = 1
    having: Annotated[Labels, Says("Without a name: labels of the objects.")] = {}
    order: Annotated[Literal["ByChance", "Oldest", "Youngest"], Says("Without a name: order of selection.")] = (
        "ByChance"
    )
    labels: Annotated[Labels, Says("Labels to set.")] = {}
    annotations: Annotated[Annotations, Says("Annotations to set.")] = {}
    taints: Annotated[
        list[PoolTaint], Says("Taints to add to a node."), Within(most=50), MergeKey(("key", "effect"))
    ] = []
    unschedulable: Annotated[bool | None, Says("Whether a node is cordoned.")] = None
    max_unavailable: Annotated[
        int | None,
        Says("maxUnavailable of a PodDisruptionBudget, created if missing."),
        Within(0, 100_000),
        Unit("pods"),
    ] = None
    lifts: Annotated[LabelKey, Says("Scheduling gate to remove from a pod.")] = ""
    deleted: Annotated[bool, Says("Whether the object is deleted.")] = False


# --- An expectation: a metric with its bounds.

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
# Available for each pool.
POOLED = frozenset({"nodes", "targetNodes", "taintedNodes", "gpuUtilizationPercent", "gpuHoursPaid", "dollars"})


class Expectation(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A metric with its minimum and maximum."""

    measure: Annotated[Measure, Says("The metric.")]
    pool: Annotated[Name, Says("Pool of the metric; absent: the whole cluster.")] = ""
    at: Annotated[Duration | None, Says("Time of the evaluation; absent: the end.")] = None
    at_least: Annotated[int | None, Says("Minimum."), Within(0, 10**15)] = None
    at_most: Annotated[int | None, Says("Maximum."), Within(0, 10**15)] = None


# --- A fault, once or repeated.

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
    """A fault."""

    fault: Annotated[FaultKind, Says("Kind of the fault.")]
    at: Annotated[Duration, Says("When.")]
    lasts: Annotated[Duration | None, Says("Duration; absent: until the end.")] = None
    every: Annotated[Duration | None, Says("Interval of repetition; absent: once.")] = None
    pool: Annotated[Name, Says("NodeDeath, NodeNotReady and KubeletDown: NodePool; absent: any.")] = ""
    count: Annotated[
        int, Says("NodeDeath, NodeNotReady and KubeletDown: number of nodes."), Within(1, 10_000), Unit("nodes")
    ] = 1
    instance_type: Annotated[LabelValue, Says("StockOut and NotOffered: unavailable instance type; absent: any.")] = ""
    zone: Annotated[LabelValue, Says("StockOut and NotOffered: zone; absent: any.")] = ""
    capacity_type: Annotated[CapacityType | None, Says("StockOut and NotOffered: capacity type; absent: any.")] = None
    after_writes: Annotated[
        int, Says("ControllerCrash: number of further writes; absent: at once."), Within(0, 10_000), Unit("writes")
    ] = 0
    delay: Annotated[Duration, Says("SlowApi, LateWatch, SlowKubelets and SlowWorkloads: the delay.")] = Duration(5_000)


# --- Objects in a scenario, each as YAML.


def why_unreadable(text: str) -> str:
    """The error; empty if the text is one object."""
    nodes, problems = read("", text.encode())
    if problems:
        return problems[0].sentence
    if len(nodes) != 1:
        return f"expected one object, got {len(nodes)}"
    body = plain(nodes[0])
    metadata = body.get("metadata") if isinstance(body, dict) else None
    is_named = isinstance(metadata, dict) and metadata.get("name")
    return "" if is_named and body.get("kind") and body.get("apiVersion") else "this is not a Kubernetes object"


def object_of(text: str) -> Object:
    """Parses a validated object."""
    (node,), _ = read("", text.encode())
    body: Object = plain(node)
    if body["kind"] == "Pod":
        body.setdefault("status", {"phase": "Pending"})
    return body


# --- A revision: the policies from some time on.

_FILE = KeyPattern(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.(ya?ml|json|j2)$", "a file such as base/a100.yaml")

MOST_REVISION = 64  # characters of a name


class ScenarioRevision(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The policies from some time on: a folder, or inline files."""

    at: Annotated[Duration, Says("Time at which the policies take effect.")] = Duration(0)
    revision: Annotated[str, Says("Name of the revision in reports."), Within(most=MOST_REVISION)] = ""
    folder: Annotated[File, Says("Folder of the policies, relative to the scenario.")] = ""
    files: Annotated[
        dict[str, Annotated[str, Within(most=200_000)]], Says("Content of each file, without a folder."), _FILE
    ] = {}


_TIME = Shaped(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$", 'a time such as "2026-11-16T08:00:00Z"')


class Scenario(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A simulation scenario: policies, cluster, workloads, faults and expectations."""

    description: Annotated[str, Says("Description of the scenario."), Within(most=2000)] = ""
    start: Annotated[str, Says("Start time; all other times are relative to this."), _TIME] = "2026-11-16T08:00:00Z"
    duration: Annotated[Duration, Says("Duration of the scenario.")]
    warm_up: Annotated[
        Duration,
        Says("Time before the start without a controller, in which permanent workloads already run."),
    ] = Duration(0)
    seed: Annotated[int, Says("Seed of the random numbers."), Within(0, 2**53)] = 1
    cycle_every: Annotated[Duration, Says("Minimum interval between controller cycles.")] = Duration(1_000)
    scheduler: Annotated[
        ClaimScheduler,
        Says(
            "What binds pods with a GpuClaim. external: a second kube-scheduler with the extender of the controller. "
            "builtin: the controller itself."
        ),
    ] = "external"
    environment: Annotated[
        str | None, Says("Environment of the policies: base, or the name of an overlay."), Within(1, 253)
    ] = None
    policies: Annotated[list[ScenarioRevision], Says("Revisions of the policies."), Within(1, 100)]
    cluster: Annotated[InitialCluster, Says("Initial cluster.")] = InitialCluster()
    market: Annotated[ScenarioMarket, Says("Machines that Karpenter can launch, with delays.")] = ScenarioMarket()
    workloads: Annotated[list[ScenarioWorkload], Says("Workloads."), Within(most=1_000), MergeKey(("name",))] = []
    faults: Annotated[list[ScenarioFault], Says("Faults."), Within(most=1_000)] = []
    edits: Annotated[list[ScenarioEdit], Says("Edits of objects by people and other tools."), Within(most=1_000)] = []
    expect: Annotated[
        list[Expectation], Says("Expected results; otherwise the simulation fails."), Within(most=100)
    ] = []
