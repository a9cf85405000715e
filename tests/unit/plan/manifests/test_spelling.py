"""What means the same is sent as it stands: the API server compares texts."""

from typing import Any

import pytest

from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.plan.manifests.wanted_manifest import as_it_stands

ZONES = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]}
TYPES = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]}


def sent(live: dict[str, Any], wished: dict[str, Any]) -> Any:
    node_pool = Unstructured("karpenter.sh/v1", "NodePool", UnstructuredMetadata("a100"), {"spec": live})
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a100"}, "spec": wished}
    return as_it_stands(body, node_pool)["spec"]


@pytest.mark.parametrize(
    ("live", "wished"),
    [
        ({"limits": {"cpu": "1000000m"}}, {"limits": {"cpu": "1000"}}),
        ({"template": {"spec": {"expireAfter": "43200m"}}}, {"template": {"spec": {"expireAfter": "720h"}}}),
        (
            {"template": {"spec": {"requirements": [TYPES, {**ZONES, "values": ["b", "a"]}]}}},
            {"template": {"spec": {"requirements": [ZONES, TYPES]}}},
        ),
    ],
)
def test_the_same_is_written_as_it_stands(live: dict[str, Any], wished: dict[str, Any]) -> None:
    assert sent(live, wished) == live


@pytest.mark.parametrize(
    ("live", "wished"),
    [
        ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1000"}}),
        ({"template": {"spec": {"taints": []}}}, {"template": {"spec": {"taints": None}}}),
        ({"weight": 10}, {"limits": {"cpu": "1"}}),
        ({"template": {"metadata": {"labels": {"a": "60m"}}}}, {"template": {"metadata": {"labels": {"a": "1h"}}}}),
    ],
)
def test_what_differs_is_written_as_it_is_wished(live: dict[str, Any], wished: dict[str, Any]) -> None:
    assert sent(live, wished) == wished
