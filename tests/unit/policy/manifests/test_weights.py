"""Karpenter tries overlapping NodePools in the order in which their NodeProvisioners are asked."""

import json

from reconciler.model.bundle import Bundle, Text
from reconciler.policy.manifests.pool_values import weights_of
from reconciler.policy.manifests.render import orders
from reconciler.policy.resolve import Resolved, resolve

GPU = "nvidia.com/gpu"


def pool(name: str, *taints: str, order: int | None = 100, weight: int | None = None) -> list[dict[str, object]]:
    """A pool with taints of these keys, and its NodeProvisioner where it has an order."""
    spec: dict[str, object] = {
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [{"name": "p4d.24xlarge"}],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "taints": [{"key": key, "effect": "NoSchedule"} for key in taints],
        "labels": {"pool": name},
    }
    found = [("GpuPool", spec if weight is None else spec | {"weight": weight})]
    if order is not None:
        keep: dict[str, object] = {"poolName": name, "minSize": 0, "maxSize": 9, "order": order}
        found.append(("NodeProvisioner", keep | {"minGPUUtilizationPercent": 50}))
    return [
        {"apiVersion": "gpu.scheduling/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in found
    ]


def resolved(*pools: list[dict[str, object]]) -> Resolved:
    written = "---\n".join(json.dumps(each) + "\n" for one in pools for each in one)
    return resolve(Bundle("r1", (Text("base.yaml", written.encode()),)))


def weights(*pools: list[dict[str, object]]) -> dict[str, int]:
    found = resolved(*pools)
    assert found.problems == ()
    return weights_of(found.wishes[0])


def test_the_first_provisioner_in_order_has_the_largest_weight() -> None:
    found = weights(pool("a", GPU, order=30), pool("b", GPU, order=10), pool("c", GPU, order=20))
    assert found == {"b": 3, "c": 2, "a": 1}


def test_provisioners_of_one_order_are_ranked_by_name() -> None:
    assert weights(pool("b", GPU), pool("a", GPU)) == {"a": 2, "b": 1}


def test_pools_overlap_if_the_pods_of_one_tolerate_the_taints_of_the_other() -> None:
    assert weights(pool("a", GPU), pool("b", GPU, "team"), pool("c", "other")) == {"a": 2, "b": 1}


def test_pools_for_different_pods_have_no_weight() -> None:
    assert weights(pool("a", "team-a"), pool("b", "team-b")) == {}


def test_a_weight_of_the_policy_wins() -> None:
    pools = pool("a", GPU, order=1), pool("b", GPU, order=2), pool("c", GPU, order=3, weight=50)
    assert weights(*pools) == {"a": 2, "b": 1}
    rendered = {each.pool.name: each.request.values["pool"]["weight"] for each in orders(resolved(*pools).wishes[0])}
    assert rendered == {"a": 2, "b": 1, "c": 50}


def test_a_pool_without_taints_has_no_weight() -> None:
    assert weights(pool("a"), pool("b", GPU), pool("c", GPU)) == {"b": 2, "c": 1}


def test_a_pool_that_nobody_scales_has_no_weight() -> None:
    assert weights(pool("a", GPU), pool("b", GPU, order=None)) == {}


def test_more_than_100_overlapping_pools_are_a_problem() -> None:
    pools = [pool(f"p{number:03}", GPU, order=number) for number in range(101)]
    found = resolved(*pools)
    assert [each.code for each in found.problems] == ["RC311"]
    assert "101 pools overlap" in found.problems[0].sentence
    fine = weights(*pools[:100])
    assert (fine["p000"], fine["p099"], len(fine)) == (100, 1, 100)
