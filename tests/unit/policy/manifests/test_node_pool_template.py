"""The template that pools use by default yields every field of a NodePool, with safe defaults, whatever the values."""

from functools import cache
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.bundle import Rendering, RenderRequest
from reconciler.model.policy.gpu import (
    Budget,
    Devices,
    Disruption,
    GpuPool,
    InstanceType,
    NodeClassRef,
    PoolTaint,
    Requirement,
)
from reconciler.model.quantity import Duration, Quantity
from reconciler.policy.manifests.check import manifests_of
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.pool_values import values_of
from reconciler.sources import renderer
from reconciler.sources.input_file import default_templates
from tests.unit.policy.manifests.karpenter_schema import structural  # noqa: F401  a fixture

TEMPLATE = "node_pool.yaml.j2"
PLAIN = GpuPool(
    devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
    instance_types=[InstanceType(name="p4d.24xlarge"), InstanceType(name="p5.48xlarge")],
    node_class_ref=NodeClassRef(group="karpenter.k8s.aws", kind="EC2NodeClass", name="gpu-a100-nodeclass"),
)
# What the design shows, as a policy.
BY_DAY = Budget(nodes="0", schedule="0 9 * * 1-5", duration=Duration.parse("8h"))
FULL = msgspec.structs.replace(
    PLAIN,
    mode="Enforce",
    capacity_types=["reserved", "on-demand"],
    labels={"team": "training", "example.com/zone": "a"},
    annotations={"example.com/note": "{{ a }}", "owner": "ml"},
    startup_taints=[PoolTaint(key="node.cilium.io/agent-not-ready", value="true", effect="NoExecute")],
    taints=[
        PoolTaint(key="nvidia.com/gpu", value="true", effect="NoSchedule"),
        PoolTaint(key="example.com/slow", effect="PreferNoSchedule"),
    ],
    requirements=[
        Requirement(key="karpenter.k8s.aws/instance-gpu-name", operator="In", values=["a100"]),
        Requirement(key="karpenter.k8s.aws/instance-category", operator="In", values=["p"]),
        Requirement(key="topology.kubernetes.io/zone", operator="Exists", min_values=2),
    ],
    limits={"nodes": Quantity.parse("128"), "nvidia.com/gpu": Quantity.parse("1k"), "memory": Quantity.parse("9Ti")},
    weight=7,
    expire_after=Duration.parse("720h"),
    termination_grace_period=Duration.parse("90m"),
    disruption=Disruption(
        consolidation_policy="WhenEmptyOrUnderutilized",
        consolidate_after=Duration.parse("30s"),
        budgets=[Budget(nodes="5"), Budget(nodes="20%", reasons=["Drifted", "Empty"]), BY_DAY],
    ),
)
SAFE = [{"nodes": "0", "reasons": ["Empty", "Underutilized"]}, {"nodes": "10%", "reasons": ["Drifted"]}]


def render(spec: GpuPool, covered: bool = False) -> Rendering:
    (rendering,) = renderer.render(
        default_templates(), [RenderRequest(TEMPLATE, values_of("gpu-a100-pool", spec, covered))]
    )
    assert rendering.problem is None, rendering.problem
    return rendering


def load(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def node_pool(spec: GpuPool, covered: bool = False) -> Any:
    return load(render(spec, covered).text)


def test_every_field_of_the_design_s_node_pool_can_be_had() -> None:
    assert node_pool(FULL) == load("""
        apiVersion: karpenter.sh/v1
        kind: NodePool
        metadata: {name: gpu-a100-pool}
        spec:
          template:
            metadata:
              labels:
                gpu.scheduling/gpu-type: a100
                gpu.scheduling/managed: "true"
                team: training
                example.com/zone: a
              annotations: {example.com/note: "{{ a }}", owner: ml}
            spec:
              nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100-nodeclass}
              requirements:
                - {key: node.kubernetes.io/instance-type, operator: In, values: [p4d.24xlarge, p5.48xlarge]}
                - {key: karpenter.sh/capacity-type, operator: In, values: [reserved, on-demand]}
                - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [a100]}
                - {key: karpenter.k8s.aws/instance-category, operator: In, values: [p]}
                - {key: topology.kubernetes.io/zone, operator: Exists, minValues: 2}
              taints:
                - {key: nvidia.com/gpu, value: "true", effect: NoSchedule}
                - {key: example.com/slow, effect: PreferNoSchedule}
              startupTaints:
                - {key: gpu.scheduling/arriving, effect: NoSchedule}
                - {key: node.cilium.io/agent-not-ready, value: "true", effect: NoExecute}
              expireAfter: 720h
              terminationGracePeriod: 1h30m
          limits: {nodes: "128", nvidia.com/gpu: "1000", memory: 9Ti}
          weight: 7
          disruption:
            consolidationPolicy: WhenEmptyOrUnderutilized
            consolidateAfter: 30s
            budgets:
              - {nodes: "5"}
              - {nodes: 20%, reasons: [Drifted, Empty]}
              - {nodes: "0", schedule: 0 9 * * 1-5, duration: 8h}
    """)


@pytest.mark.parametrize("covered", [True, False])
def test_what_a_policy_leaves_out_is_safe(covered: bool) -> None:
    spec = node_pool(PLAIN, covered)["spec"]
    assert spec["disruption"] == {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": "Never",
        "budgets": SAFE,
    }
    assert spec["template"]["spec"]["expireAfter"] == "Never"
    assert set(spec) == {"template", "disruption"}
    assert set(spec["template"]["spec"]) == {"nodeClassRef", "requirements", "expireAfter"}


@pytest.mark.parametrize(
    ("covered", "budgets"),
    [pytest.param(True, SAFE, id="a covered pool stays quiet"), pytest.param(False, [{"nodes": "10%"}], id="else not")],
)
def test_consolidation_that_a_policy_asks_for_is_blocked_only_where_the_pool_is_covered(
    covered: bool, budgets: list[dict[str, Any]]
) -> None:
    spec = msgspec.structs.replace(PLAIN, disruption=Disruption(consolidate_after=Duration.parse("30s")))
    assert node_pool(spec, covered)["spec"]["disruption"]["budgets"] == budgets


def test_budgets_that_a_policy_declares_are_taken_as_they_are_even_where_the_pool_is_covered() -> None:
    spec = msgspec.structs.replace(PLAIN, disruption=Disruption(budgets=[Budget(nodes="0")]))
    assert node_pool(spec, covered=True)["spec"]["disruption"]["budgets"] == [{"nodes": "0"}]


CILIUM = PoolTaint(key="node.cilium.io/agent-not-ready", effect="NoExecute")
OURS = PoolTaint(key="gpu.scheduling/arriving", effect="NoSchedule")


@pytest.mark.parametrize(
    ("mode", "declared", "expected"),
    [
        ("Observe", [], None),
        ("Observe", [CILIUM], [CILIUM]),
        ("Observe", [OURS], [OURS]),
        ("Enforce", [], [OURS]),
        ("Enforce", [CILIUM], [OURS, CILIUM]),
        ("Enforce", [CILIUM, OURS], [OURS, CILIUM]),
    ],
)
def test_startup_taints_of_a_policy_stand_beside_ours(
    mode: Any, declared: list[PoolTaint], expected: list[PoolTaint] | None
) -> None:
    spec = msgspec.structs.replace(PLAIN, mode=mode, startup_taints=declared)
    found = node_pool(spec)["spec"]["template"]["spec"].get("startupTaints")
    wanted = [{"key": each.key, "effect": each.effect} for each in expected or ()]
    assert found == (wanted or None)


TYPE, CAPACITY = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"


@pytest.mark.parametrize(
    ("further", "demanded"),
    [
        ([], [(TYPE, "In"), (CAPACITY, "In")]),
        ([Requirement(key=TYPE, operator="Exists")], [(CAPACITY, "In")]),
        ([Requirement(key=TYPE, operator="Exists"), Requirement(key=CAPACITY, operator="Exists")], []),
        ([Requirement(key=TYPE, operator="Exists", min_values=3)], [(CAPACITY, "In"), (TYPE, "Exists")]),
        # Without Exists it is one more demand.
        (
            [Requirement(key=CAPACITY, operator="NotIn", values=["spot"])],
            [(TYPE, "In"), (CAPACITY, "In"), (CAPACITY, "NotIn")],
        ),
        ([Requirement(key="other", operator="Exists")], [(TYPE, "In"), (CAPACITY, "In"), ("other", "Exists")]),
    ],
)
def test_exists_leaves_the_instance_type_or_the_capacity_type_open(
    further: list[Requirement], demanded: list[tuple[str, str]]
) -> None:
    spec = msgspec.structs.replace(PLAIN, requirements=further)
    found = node_pool(spec)["spec"]["template"]["spec"]["requirements"]
    assert [(each["key"], each["operator"]) for each in found] == demanded


def test_the_provisioner_s_label_is_not_in_the_template_where_it_would_drift_the_pool() -> None:
    assert "gpu.scheduling/provisioner" not in render(FULL, covered=True).text


def test_our_own_labels_win_over_a_policy_s() -> None:
    spec = msgspec.structs.replace(PLAIN, labels={"gpu.scheduling/managed": "false", "gpu.scheduling/gpu-type": "x"})
    labels = node_pool(spec)["spec"]["template"]["metadata"]["labels"]
    assert labels == {"gpu.scheduling/managed": "true", "gpu.scheduling/gpu-type": "a100"}


def test_a_label_that_is_called_like_a_method_is_a_label() -> None:
    spec = msgspec.structs.replace(PLAIN, labels={"items": "a", "keys": "b", "values": "c"})
    labels = node_pool(spec)["spec"]["template"]["metadata"]["labels"]
    assert {"items": "a", "keys": "b", "values": "c"}.items() <= labels.items()


@pytest.mark.parametrize("spec", [PLAIN, FULL], ids=["plain", "full"])
@pytest.mark.parametrize("covered", [True, False])
def test_karpenter_takes_what_it_yields(spec: GpuPool, covered: bool, structural: Structural) -> None:  # noqa: F811
    (document,), problems = manifests_of(render(spec, covered), structural)
    assert problems == []
    assert document.data == node_pool(spec, covered)


def test_each_line_comes_from_the_line_of_the_template_that_says_so() -> None:
    (template,) = (text for text in default_templates() if text.path == TEMPLATE)
    source = template.content.decode().splitlines()
    rendering = render(FULL)
    for text, (file, line) in zip(rendering.text.splitlines(), rendering.lines, strict=True):
        key, template_key = (one.strip().removeprefix("- ").partition(":")[0] for one in (text, source[line - 1]))
        assert file == f"templates/{TEMPLATE}"
        assert key == template_key or template_key.startswith("{{"), text


def test_the_values_are_the_policy_s_own_words_with_defaults_filled_in() -> None:
    values = values_of("p", FULL, covered=True)
    assert set(values) == {"pool", "requirements", "covered"}
    pool = values["pool"]
    assert pool["name"] == "p"
    assert pool["limits"] == {"memory": "9Ti", "nodes": "128", "nvidia.com/gpu": "1000"}
    assert pool["devices"] == {"model": "a100", "count": 8, "memory": "40Gi"}
    assert pool["instanceTypes"][0] == {"name": "p4d.24xlarge", "capacity": {}, "pricePerHour": {}}
    assert (pool["expireAfter"], pool["mode"], pool["suspend"]) == ("720h", "Enforce", False)
    assert pool["smartPods"]["cleanupInterval"] == "30s"
    assert values_of("p", PLAIN, covered=False)["pool"]["terminationGracePeriod"] is None
    written = {field.encode_name for field in msgspec.structs.fields(GpuPool)}
    assert set(pool) == {"name"} | written


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(some.characters(exclude_categories=["Cs"])),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text("a:,{}#'\"\n", max_size=4), inner),
    max_leaves=5,
)
# Where a field is printed, and where it then stands.
PRINTED = {
    "devices.model": "spec.template.metadata.labels.gpu/type",
    "nodeClassRef.group": "spec.template.spec.nodeClassRef.group",
    "nodeClassRef.kind": "spec.template.spec.nodeClassRef.kind",
    "nodeClassRef.name": "spec.template.spec.nodeClassRef.name",
    "requirements.1.values": "spec.template.spec.requirements.1.values",
    "expireAfter": "spec.template.spec.expireAfter",
    "disruption.consolidationPolicy": "spec.disruption.consolidationPolicy",
    "disruption.consolidateAfter": "spec.disruption.consolidateAfter",
    "disruption.budgets.0.nodes": "spec.disruption.budgets.0.nodes",
    "limits.nodes": "spec.limits.nodes",
    "requirements.2.key": "spec.template.spec.requirements.2.key",
    "requirements.2.operator": "spec.template.spec.requirements.2.operator",
    "requirements.4.minValues": "spec.template.spec.requirements.4.minValues",
    "annotations.owner": "spec.template.metadata.annotations.owner",
    "startupTaints.0.key": "spec.template.spec.startupTaints.1.key",
    "disruption.budgets.2.schedule": "spec.disruption.budgets.2.schedule",
    "taints.0.key": "spec.template.spec.taints.0.key",
    "taints.0.effect": "spec.template.spec.taints.0.effect",
    "name": "metadata.name",
}
# Not printed at all where there is none.
OPTIONAL = {"weight", "requirements.4.minValues", "disruption.budgets.2.schedule"}


@given(drawn=some.lists(some.tuples(some.sampled_from(sorted(PRINTED)), JSON), min_size=20, max_size=60))
@settings(max_examples=6)
def test_a_field_can_hold_anything_and_changes_nothing_but_its_place(drawn: list[tuple[str, Any]]) -> None:
    asked, expected = [], []
    for field, value in drawn:
        if value is None and field in OPTIONAL:
            continue
        values, document = values_of("gpu-a100-pool", FULL, covered=True), load(text_of_full())
        _put(values if field.startswith("requirements.") else values["pool"], field.split("."), value)
        place = [part.replace("gpu/type", "gpu.scheduling/gpu-type") for part in PRINTED[field].split(".")]
        _put(document, place, value)
        asked.append(RenderRequest(TEMPLATE, values))
        expected.append(document)
    done = renderer.render(default_templates(), asked)
    assert [each.problem for each in done] == [None] * len(done)
    assert [load(each.text) for each in done] == expected


@cache
def text_of_full() -> str:
    return render(FULL, covered=True).text


def _put(document: Any, path: list[str], value: Any) -> None:
    for part in path[:-1]:
        document = document[int(part) if part.isdigit() else part]
    document[path[-1]] = value
