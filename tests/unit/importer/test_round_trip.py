"""Whatever NodePools a cluster has: imported and rendered, they say what they said, and no node of theirs drifts."""

import json
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as some

from reconciler.controller.policies import check_bundle
from reconciler.importer.imported import differences, imported
from reconciler.importer.portion import instance_type_requirement, live_spec
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.plan.karpenter.template_hash import template_hash
from reconciler.plan.manifests.compare import compare
from reconciler.plan.manifests.wanted_manifest import wish_of
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.rules.hardware import gpus_of
from reconciler.sources.input_file import default_template
from tests import builders
from tests.unit.policy.manifests.karpenter_schema import structural  # noqa: F401  a fixture
from tests.unit.policy.manifests.node_pool_specs import live_specs

Plain = dict[str, Any]

LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "40960",
}


def node_pool(name: str, spec: Plain) -> Unstructured:
    return Unstructured("karpenter.sh/v1", "NodePool", UnstructuredMetadata(name), {"spec": spec})


def node(pool: Unstructured) -> Node:
    """One of the first type that the NodePool names, with labels that tell its GPUs."""
    asked = instance_type_requirement(live_spec(pool))
    instance_type = asked["values"][0] if asked else "p4d.24xlarge"
    model, count = gpus_of(instance_type) or ("a100", 8)
    told = {"instance-gpu-name": model, "instance-gpu-count": str(count), "instance-gpu-memory": "40960"}
    labels = {f"karpenter.k8s.aws/{key}": value for key, value in told.items()}
    labels |= {names.KARPENTER_POOL: pool.name, names.INSTANCE_TYPE: instance_type}
    has = {"cpu": "96", "memory": "1176329748Ki", "pods": "250"}
    return builders.node(f"node-of-{pool.name}", gpus=count, has=has, labels=labels)


# Ten at a time, as rendering starts a process; and each step of shrinking a failure would start one too.
@settings(max_examples=15, phases=[Phase.generate])
@given(some.lists(live_specs(), min_size=10, max_size=10))
def test_what_is_imported_renders_what_was_there(structural: Structural, drawn: list[Plain]) -> None:  # noqa: F811
    specs = [spec for spec in drawn if not structural.violations({"spec": spec})]
    pools = {f"pool-{number}": node_pool(f"pool-{number}", spec) for number, spec in enumerate(specs)}
    observed = Observed(node_pools=tuple(pools.values()), nodes=tuple(map(node, pools.values())))
    found = imported(observed, default_template("node_pool.yaml.j2"))
    assert not found.skipped
    checkup = check_bundle(found.bundle)
    assert checkup.resolved.problems == ()
    (wish,) = checkup.resolved.wishes
    assert [each.name for each in wish.manifests] == sorted(pools)
    for manifest in wish.manifests:
        live = pools[manifest.name]
        assert differences(json.loads(manifest.body), live) == ()
        adopted = compare(live, wish_of(manifest, live, "prod", adopting=True).body)
        assert [each.path for each in adopted.changes if not each.path.startswith("metadata.")] == []
        assert template_hash(adopted.spec["template"]) == template_hash(live.spec["template"])


def test_most_of_what_is_made_up_is_allowed(structural: Structural) -> None:  # noqa: F811
    made: list[Plain] = []

    @settings(max_examples=50, phases=[Phase.generate])
    @given(live_specs())
    def make(spec: Plain) -> None:
        made.append(spec)

    make()
    refused = [spec for spec in made if structural.violations({"spec": spec})]
    assert len(refused) < len(made) / 10
    assert any("replicas" in spec for spec in made)
