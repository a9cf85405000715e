"""Objects of the cluster that say more than they may: which are refused, and what stands in their place."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reconciler.kube.decode import event, page
from reconciler.kube.placeholders import parted
from reconciler.model.cluster import bounds
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload
from reconciler.model.instant import Instant
from reconciler.plan.nodes.eviction import MOST_COMPARED, PodBudgets, why_immovable

Words = dict[str, Any]
NOW = Instant(1_793_613_600_000)
KINDS = {each.kind: each for each in reversed(RESOURCE_KINDS) if not each.selector}


def expressions(many: int, values: int = 1) -> list[Words]:
    listed = [str(each) for each in range(values)]
    return [{"key": f"k{each}", "operator": "In", "values": listed} for each in range(many)]


def numbered(many: int, **words: Any) -> list[Words]:
    return [{"name": f"n{each}", **words} for each in range(many)]


def labels(many: int) -> dict[str, str]:
    return {f"k{each}": "v" for each in range(many)}


def required(**words: Any) -> Words:
    return {"requiredDuringSchedulingIgnoredDuringExecution": words}


def terms(many: int, **words: Any) -> list[Words]:
    return [{"topologyKey": "zone", "labelSelector": words} for _ in range(many)]


def near(listed: list[Words]) -> Words:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": listed}}}


def apart(listed: list[Words]) -> Words:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": listed}}}


def on_nodes(listed: list[Words]) -> Words:
    return {"affinity": {"nodeAffinity": required(nodeSelectorTerms=listed)}}


def spread(many: int) -> list[Words]:
    rule = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return [rule] * many


def asking(many: int) -> Words:
    return {"name": "main", "resources": {"requests": {f"example.com/{each}": "1" for each in range(many)}}}


# By what there is too much of: a spec with as much as may be, and one with one more.
OF_SPECS: dict[str, Callable[[int], Words]] = {
    "tolerations": lambda more: {"tolerations": [{"key": "a"}] * (bounds.MOST_TOLERATIONS + more)},
    "containers": lambda more: {"containers": numbered(bounds.MOST_CONTAINERS + more)},
    "init containers": lambda more: {
        "containers": numbered(1),
        "initContainers": numbered(bounds.MOST_CONTAINERS - 1 + more),
    },
    "ports": lambda more: {"containers": [{"name": "main", "ports": [{"hostPort": 1}] * (bounds.MOST_PORTS + more)}]},
    "resources": lambda more: {"containers": [asking(bounds.MOST_RESOURCES + more)]},
    "nodeSelector": lambda more: {"nodeSelector": labels(bounds.MOST_NODE_LABELS + more)},
    "spreads": lambda more: {"topologySpreadConstraints": spread(bounds.MOST_SPREADS + more)},
    "gates": lambda more: {"schedulingGates": numbered(bounds.MOST_GATES + more)},
    "volumes": lambda more: {"volumes": numbered(bounds.MOST_VOLUMES + more, persistentVolumeClaim={"claimName": "c"})},
    "claims": lambda more: {"resourceClaims": numbered(bounds.MOST_CLAIMS + more)},
    "affinity": lambda more: near(terms(bounds.MOST_POD_TERMS + more)),
    "anti-affinity": lambda more: apart(terms(bounds.MOST_POD_TERMS + more)),
    "expressions of pods": lambda more: apart(terms(1, matchExpressions=expressions(bounds.MOST_EXPRESSIONS + more))),
    "values of pods": lambda more: apart(terms(1, matchExpressions=expressions(1, bounds.MOST_VALUES + more))),
    "namespaces": lambda more: apart(
        [{"topologyKey": "zone", "namespaces": [str(each) for each in range(bounds.MOST_VALUES + more)]}]
    ),
    "node terms": lambda more: on_nodes([{"matchExpressions": expressions(1)}] * (bounds.MOST_NODE_TERMS + more)),
    "expressions of nodes": lambda more: on_nodes([{"matchExpressions": expressions(bounds.MOST_EXPRESSIONS + more)}]),
    "values of nodes": lambda more: on_nodes([{"matchExpressions": expressions(1, bounds.MOST_VALUES + more)}]),
}


def pod(spec: Words, **metadata: Any) -> Words:
    return {"metadata": {"name": "p", "namespace": "team", "uid": "u", **metadata}, "spec": spec}


@pytest.mark.parametrize("what", OF_SPECS)
def test_a_pod_may_say_so_much_and_no_more(what: str) -> None:
    within, beyond = (msgspec.convert(pod(OF_SPECS[what](more)), Pod) for more in (0, 1))
    assert bounds.why_refused(within) is None
    refusal = bounds.why_refused(beyond)
    assert refusal is not None
    field, count, most = refusal
    assert count == most + 1
    assert field.startswith("spec.")


@pytest.mark.parametrize("what", OF_SPECS)
def test_a_template_is_held_to_what_its_pods_are(what: str) -> None:
    for more, is_refused in ((0, False), (1, True)):
        template = {"spec": OF_SPECS[what](more)}
        workload = msgspec.convert({"metadata": {"name": "w"}, "spec": {"template": template}}, Workload)
        assert (bounds.why_refused(workload) is not None) == is_refused


def test_labels_and_owners_are_counted() -> None:
    owner = {"kind": "ReplicaSet", "name": "r"}
    for more, is_refused in ((0, False), (1, True)):
        for words in (
            {"labels": labels(bounds.MOST_LABELS + more)},
            {"ownerReferences": [owner] * (bounds.MOST_OWNERS + more)},
        ):
            for kind in (Pod, Node, PodDisruptionBudget, PersistentVolumeClaim, PersistentVolume, Workload):
                found = msgspec.convert({"metadata": {"name": "x", **words}}, kind)
                assert (bounds.why_refused(found) is not None) == is_refused, kind


def test_a_pod_that_is_refused_keeps_its_node_and_waits_for_nothing() -> None:
    gates = [{"name": "gpu.scheduling/capacity"}]
    gated = pod({**OF_SPECS["tolerations"](1), "schedulingGates": gates})
    bound = pod({**OF_SPECS["affinity"](1), "nodeName": "n", "containers": [asking(2)]})
    bound["metadata"]["name"] = "q"
    listed = {"items": [gated, bound], "metadata": {}}
    (running,), aside = parted(page(KINDS["Pod"], json.dumps(listed).encode()).items)
    assert [(each.name, each.code, each.field) for each in aside] == [
        ("p", "TooLarge", "spec.tolerations"),
        ("q", "TooLarge", "spec.affinity.podAffinity"),
    ]
    assert running.node == "n"
    assert running.counts
    assert running.spec.affinity is None
    assert running.spec.containers[0].resources.requests == {"example.com/0": "1", "example.com/1": "1"}
    assert why_immovable(running, PodBudgets(), NOW)
    assert bounds.why_refused(running) is None


def test_a_budget_that_is_refused_keeps_every_pod_of_its_namespace() -> None:
    selector = {"matchExpressions": expressions(bounds.MOST_EXPRESSIONS + 1)}
    raw = {"metadata": {"name": "b", "namespace": "team"}, "spec": {"selector": selector}}
    line = json.dumps({"type": "ADDED", "object": raw}).encode()
    found: Any = event(KINDS["PodDisruptionBudget"], line).object
    budgets = PodBudgets([found.object])
    mine = msgspec.convert(pod({}), Pod)
    others = msgspec.convert({"metadata": {"name": "p", "namespace": "other"}}, Pod)
    assert why_immovable(mine, budgets, NOW)
    assert not why_immovable(others, budgets, NOW)


def test_a_node_that_is_refused_counts_in_its_pool_and_takes_nothing() -> None:
    raw = {
        "metadata": {"name": "n", "labels": {"karpenter.sh/nodepool": "a100", **labels(bounds.MOST_LABELS)}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    (node,), _ = parted(page(KINDS["Node"], json.dumps({"items": [raw], "metadata": {}}).encode()).items)
    assert (node.pool, node.gpus, node.is_ready) == ("a100", 8, True)
    assert node.spec.unschedulable
    assert bounds.why_refused(node) is None


def test_a_namespace_has_so_many_gpu_claims() -> None:
    def claim(namespace: str, number: int) -> Unstructured:
        made = f"2026-10-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        return Unstructured(
            "gpu.scheduling/v1", "GpuClaim", UnstructuredMetadata(f"c{number}", namespace, creation_timestamp=made)
        )

    mine = [claim("team", each) for each in range(bounds.MOST_GPU_CLAIMS + 3)]
    found = bounds.gpu_claims([*reversed(mine), claim("other", 0)])
    assert {each.name for each in found if each.metadata.namespace == "other"} == {"c0"}
    assert [each for each in found if each.metadata.namespace == "team"] == mine[: bounds.MOST_GPU_CLAIMS]


@pytest.mark.parametrize("words", [{}, {"matchLabels": {"app": "x"}}])
def test_a_pod_is_kept_where_too_many_budgets_would_have_to_be_compared(words: Words) -> None:
    def budgets(many: int) -> PodBudgets:
        selector = {**words, "matchExpressions": [{"key": "no", "operator": "Exists"}]}
        return PodBudgets(
            msgspec.convert(
                {"metadata": {"name": f"b{each}", "namespace": "team"}, "spec": {"selector": selector}},
                PodDisruptionBudget,
            )
            for each in range(many)
        )

    asked = msgspec.convert(pod({}, labels={"app": "x"}), Pod)
    assert not why_immovable(asked, budgets(MOST_COMPARED), NOW)
    assert why_immovable(asked, budgets(MOST_COMPARED + 1), NOW)
