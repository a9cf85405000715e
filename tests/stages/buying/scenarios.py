"""Small scenarios for Karpenter: pods in, limits, taints, drift; the first two are tried each time."""

from collections.abc import Sequence
from typing import Any

from tests.lab.capacity import CPU_ONLY, G5, G6, P4D, P5, ZONES, InstanceType, NodePool
from tests.lab.fleet import Pod
from tests.stages.buying.purchases import Scenario

_TAINT = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
_SOFT = {"key": "spare", "value": "true", "effect": "PreferNoSchedule"}
_DRIFTS = {"spec": {"template": {"metadata": {"labels": {"team": "other"}}}}}
_ALL_AT_ONCE = {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": []}}
_EMPTY_GO = {"disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s", "budgets": []}}

_UNDERUSED_GO = {
    "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1s", "budgets": []}
}


def _pods(count: int, prefix: str = "pod", **wanted: Any) -> Sequence[Pod]:
    return [Pod(f"{prefix}-{number}", **wanted) for number in range(count)]


def _zonal(count: int) -> Sequence[Pod]:
    selector = {"matchLabels": {"app": "web"}}
    rule = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**rule, "labelSelector": selector}]
    return [
        Pod(f"web-{n}", gpus=8, labels={"app": "web"}).with_spec(topologySpreadConstraints=spread) for n in range(count)
    ]


def _alone(count: int) -> Sequence[Pod]:
    selector = {"matchLabels": {"app": "one"}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(selector)]}
    return [
        Pod(f"one-{n}", gpus=1, labels={"app": "one"}).with_spec(affinity={"podAntiAffinity": apart})
        for n in range(count)
    ]


def _requiring(machine: InstanceType) -> dict[str, Any]:
    template = NodePool("", [machine]).manifest()["spec"]["template"]["spec"]
    return {"spec": {"template": {"spec": {"requirements": template["requirements"]}}}}


def _varied(name: str, machines: Sequence[InstanceType], least: int) -> NodePool:
    """Of which a purchase must leave open so many instance types."""
    first, *others = NodePool("", machines).manifest()["spec"]["template"]["spec"]["requirements"]
    return NodePool(name, machines, template={"requirements": [{**first, "minValues": least}, *others]})


def _term(selector: dict[str, Any]) -> dict[str, Any]:
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}


def _tolerant(pods: Sequence[Pod]) -> Sequence[Pod]:
    return [each.tolerating("dedicated") for each in pods]


SCENARIOS: Sequence[Scenario] = (
    Scenario(
        "limits end a purchase, and raised they let it go on",
        [NodePool("a100", [P4D], more={"limits": {"nvidia.com/gpu": "16"}})],
        _pods(4, gpus=8),
        patches={"a100": {"spec": {"limits": {"nvidia.com/gpu": "24"}}}},
    ),
    Scenario(
        "a drifted node is replaced, an empty one is not",
        [NodePool("a100", [P4D], more=_ALL_AT_ONCE)],
        _pods(2, gpus=8),
        patches={"a100": _DRIFTS},
        gone=["pod-0"],
    ),
    Scenario("pods of eight GPUs get a node each", [NodePool("a100", [P4D])], _pods(3, gpus=8)),
    Scenario(
        "taints keep pods off that do not bear them",
        [NodePool("tainted", [P4D], taints=[_TAINT])],
        [*_pods(2, gpus=8), *_tolerant(_pods(1, "bears", gpus=8))],
    ),
    Scenario("pods share a node as long as there is room", [NodePool("a100", [P4D])], _pods(5, gpus=4)),
    Scenario("small pods get the cheapest machine", [NodePool("any", [P5, G6, G5])], _pods(1, gpus=1, cpu="1")),
    Scenario("several small pods share a larger machine", [NodePool("any", [P5, G6, G5])], _pods(3, gpus=1, cpu="1")),
    Scenario(
        "spot where it is allowed", [NodePool("any", [G5, G6], capacity_types=["spot", "on-demand"])], _pods(2, gpus=4)
    ),
    Scenario(
        "the heavier NodePool comes first",
        [NodePool("light", [G6]), NodePool("heavy", [P5], more={"weight": 10})],
        _pods(2, gpus=4),
    ),
    Scenario(
        "of equal weight the last by name comes first", [NodePool("a", [G6]), NodePool("b", [P4D])], _pods(1, gpus=4)
    ),
    Scenario(
        "what the heavier can't hold goes to the lighter",
        [NodePool("light", [P4D]), NodePool("heavy", [G6], more={"weight": 10})],
        [*_pods(1, gpus=8), *_pods(1, "small", gpus=2)],
    ),
    Scenario(
        "limits of one NodePool send pods to the next",
        [NodePool("first", [P4D], more={"weight": 10, "limits": {"nvidia.com/gpu": "8"}}), NodePool("next", [P5])],
        _pods(3, gpus=8),
    ),
    Scenario("pods that are spread over zones", [NodePool("a100", [P4D])], _zonal(4)),
    Scenario("pods that want a node alone", [NodePool("l4", [G6])], _alone(3)),
    Scenario(
        "selected zones and types",
        [NodePool("any", [P4D, P5, G6])],
        [
            Pod("there", gpus=4).with_spec(nodeSelector={"topology.kubernetes.io/zone": ZONES[1]}),
            Pod("that", gpus=4).with_spec(nodeSelector={"node.kubernetes.io/instance-type": P5.name}),
        ],
    ),
    Scenario("a label that nobody offers buys nothing", [NodePool("a100", [P4D])], [Pod("x", gpus=1).nowhere()]),
    Scenario("gated pods are not seen", [NodePool("a100", [P4D])], [Pod("gated", gpus=8).gated("example.com/wait")]),
    Scenario(
        "a node that no longer meets a requirement is replaced by one that does",
        [NodePool("any", [P4D, P5], more=_ALL_AT_ONCE)],
        _pods(1, gpus=8),
        patches={"any": _requiring(P5)},
    ),
    Scenario(
        "shut budgets keep drifted nodes",
        [NodePool("a100", [P4D], more={"disruption": {**_ALL_AT_ONCE["disruption"], "budgets": [{"nodes": "0"}]}})],
        _pods(2, gpus=8),
        patches={"a100": _DRIFTS},
    ),
    Scenario(
        "empty nodes go where that is allowed",
        [NodePool("cpu", [CPU_ONLY], more=_EMPTY_GO)],
        _pods(2, cpu="6"),
        gone=["pod-1"],
    ),
    Scenario(
        "of two nodes that are half empty one goes where that is allowed",
        [NodePool("a100", [P4D], more=_UNDERUSED_GO)],
        _pods(3, gpus=4),
        gone=["pod-0"],
    ),
    Scenario(
        "too few instance types to choose from buy nothing",
        [_varied("any", [P4D, P5, G6], 3)],
        [Pod("large", gpus=8), Pod("small", gpus=2)],
    ),
    Scenario("as many instance types as must be left are enough", [_varied("any", [P4D, P5, G6], 2)], _pods(1, gpus=8)),
    Scenario(
        "a more important pod displaces another and buys nothing",
        [NodePool("a100", [P4D])],
        _pods(1, gpus=8),
        later=[Pod("important", gpus=8).with_spec(priorityClassName="system-cluster-critical")],
    ),
    Scenario(
        "a node that a pod would rather avoid is the last resort while any NodePool prefers something",
        [NodePool("soft", [P4D], taints=[_SOFT]), NodePool("hard", [P4D], taints=[_TAINT])],
        _pods(1, gpus=8),
    ),
    Scenario(
        "nodes with startup taints are waited for, and another is bought for those that come later",
        [NodePool("a100", [P4D], template={"startupTaints": [_TAINT]})],
        _pods(1, gpus=8),
        later=_pods(1, "later", gpus=8),
    ),
)
