"""What a template yields is taken only if it is of a kind that it may yield, has a name, and suits Karpenter."""

import pytest

from reconciler.model.bundle import Bundle, Rendering, Text
from reconciler.model.manifest_rules import SMART_PODS, YIELDED
from reconciler.model.problem import Problem
from reconciler.policy.manifests.check import Kinds, Yielded, check, manifests_of, origin
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.policy.manifests.render import orders
from reconciler.policy.resolve import resolve

GOOD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: trigger\nspec: {}\n"
POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100}
"""
BODY = {"PriorityClass": "value: -1", "NodePool": "spec: {}"}
ANY = YIELDED | SMART_PODS
# Anything but a spec with more than a number in it.
STRICT = Structural(
    {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
)


def yielded(text: str, schema: Structural | None = None, kinds: Kinds = ANY) -> list[Problem]:
    """The problems of a text each of whose lines came from the line of the template with a hundred more."""
    lines = tuple(("templates/x.j2", 100 + number) for number, _ in enumerate(text.splitlines(), start=1))
    return manifests_of(Rendering(text, lines), schema, kinds)[1]


def test_all_kinds_that_a_template_may_yield_are_taken() -> None:
    manifests = (
        f"apiVersion: {each.api_version}\nkind: {kind}\nmetadata: {{name: x, labels: {{a: b}}, annotations: {{}}}}\n"
        f"{BODY.get(kind, 'spec: {}')}\n"
        for kind, each in YIELDED.items()
    )
    assert yielded("---\n".join(manifests), kinds=YIELDED) == []
    assert set(YIELDED) == {"NodePool", "PriorityClass"}
    assert set(SMART_PODS) == {"Pod"}


def test_only_the_template_of_smart_pods_yields_a_pod() -> None:
    (told,) = yielded(GOOD, kinds=YIELDED)
    assert (told.file, told.line, told.code) == ("templates/x.j2", 102, "RC411")
    assert told.sentence == 'Pod/trigger: kind is "Pod", which only the template of smart pods may render'
    assert "spec.smartPods.template" in told.remedy


@pytest.mark.parametrize(
    ("body", "line", "sentence", "remedy"),
    [
        ("value: 1", 105, "value is 1, must be at most 0", "write a number that is at most 0"),
        ("value: -1\nglobalDefault: true", 106, "globalDefault is true, must be false", "write false"),
        ("globalDefault: false", 101, "value is missing", "write value"),
        ("value: high", 105, "value must be an integer", "write an integer"),
        ("value: true", 105, "value must be an integer", "write an integer"),
        ("value: -1\npreemptionPolicy: Always", 106, "preemptionPolicy is Always, must be Never or", "write Never"),
    ],
)
def test_no_priority_class_is_above_workloads_or_the_default(body: str, line: int, sentence: str, remedy: str) -> None:
    head = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: x\n"
    (told,) = yielded(f"{head}{body}\n", kinds=YIELDED)
    assert (told.file, told.line, told.code) == ("templates/x.j2", line, "RC411")
    assert told.sentence.startswith(f"PriorityClass/x: {sentence}")
    assert told.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ("kind: Pod", "kind: ClusterRole", 102, 'ClusterRole/trigger: kind is "ClusterRole", which templates may not'),
        ("kind: Pod", "kind: [Pod]", 102, "kind is \"['Pod']\", which templates may not render"),
        ("kind: Pod\n", "", 101, "the manifest/trigger: kind is missing"),
        ("apiVersion: v1", "apiVersion: v2", 101, "Pod/trigger: apiVersion of a Pod is v1"),
        ("apiVersion: v1\n", "", 101, "Pod/trigger: apiVersion of a Pod is v1"),
        ("spec: {}", "spec: {}\nsepc: {}", 106, 'Pod/trigger: sepc is not a field of Pod; did you mean "spec"?'),
        ("spec: {}", "spec: {}\nstatus: {}", 106, "Pod/trigger: status is not a field of Pod"),
        ("spec: {}", "spec: []", 105, "Pod/trigger: spec must be a map"),
        ("spec: {}\n", "", 101, "Pod/trigger: spec must be a map"),
        ("name: trigger", "name: Trigger", 104, "Pod/Trigger: metadata.name must be lower case letters"),
        ("name: trigger", 'name: "trigger\\n"', 104, "metadata.name must be lower case letters"),
        ("name: trigger", "name: 7", 104, "metadata.name must be lower case letters"),
        ("name: trigger", f"name: {'x' * 254}", 104, "metadata.name must be at most 253 characters"),
        ("name: trigger", "name: trigger\n  labels: {team: a b}", 105, "metadata.labels.team must be a label value"),
        ("name: trigger", "labels: {}", 103, "Pod: metadata.name is missing"),
        ("metadata:\n  name: trigger", "metadata: trigger", 103, "Pod: metadata must be a map with a name"),
        ("metadata:\n  name: trigger\n", "", 101, "Pod: metadata must be a map with a name"),
        ("name: trigger", "name: trigger\n  lables: {}", 105, 'metadata.lables may not be set; did you mean "labels"?'),
        ("name: trigger", "name: trigger\n  ownerReferences: []", 105, "metadata.ownerReferences may not be set"),
        ("name: trigger", "name: trigger\n  namespace: 7", 105, "metadata.namespace must be at most 63 lower case"),
        ("name: trigger", "name: trigger\n  namespace: Team", 105, "metadata.namespace must be at most 63 lower case"),
        ("name: trigger", "name: trigger\n  labels: [a]", 105, "metadata.labels must be a map"),
        ("name: trigger", "name: trigger\n  labels:\n    a: 1", 106, "metadata.labels.a must be a string"),
        ("name: trigger", "name: trigger\n  labels:\n    a b: c", 106, "metadata.labels.a b must be a label key"),
    ],
)
def test_a_manifest_that_may_not_be_yielded_is_told_at_its_line(old: str, new: str, line: int, sentence: str) -> None:
    (told,) = yielded(GOOD.replace(old, new))
    assert (told.file, told.line, told.code) == ("templates/x.j2", line, "RC411")
    assert sentence in told.sentence


@pytest.mark.parametrize("kind", ["NodePool", "PriorityClass"])
def test_what_has_no_namespace_is_given_none(kind: str) -> None:
    api_version = YIELDED[kind].api_version
    (told,) = yielded(
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: x\n  namespace: other\n{BODY[kind]}\n"
    )
    assert (told.line, told.code) == (105, "RC411")
    assert f"{kind}/x: metadata.namespace may not be set: {kind} is cluster-scoped" in told.sentence


PROVISIONER = """---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 1, maxSize: 7, minGPUUtilizationPercent: 80, suspend: %s}
"""


@pytest.mark.parametrize(("suspend", "covered"), [("false", True), ("true", False)])
def test_karpenter_buys_no_more_than_the_largest_size_though_the_provisioner_is_suspended(
    suspend: str, covered: bool
) -> None:
    (wish,) = resolve(Bundle("r", (Text("a.yaml", (POOL + PROVISIONER % suspend).encode()),))).wishes
    (order,) = orders(wish)
    assert order.request.values["pool"]["limits"] == {"nodes": "7"}
    assert order.request.values["covered"] is covered


def test_a_text_that_is_no_map_or_no_yaml_is_told_at_the_line_of_the_template() -> None:
    (told,) = yielded("- a\n- b\n")
    assert (told.line, told.code, told.sentence) == (101, "RC411", "the manifest: must be a map")
    (told,) = yielded(GOOD + "  wrong: indented\n")
    assert (told.file, told.line, told.code) == ("templates/x.j2", 106, "RC001")
    (told,) = yielded(GOOD + "kind: Pod\n")
    assert (told.line, told.code) == (106, "RC002")


def test_only_a_node_pool_is_held_against_karpenter_s_schema() -> None:
    pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\nspec:\n  size: big\n"
    (told,) = yielded(pool, STRICT)
    assert (told.file, told.line, told.code) == ("templates/x.j2", 105, "RC412")
    assert told.sentence == 'NodePool/x: spec.size must be an integer, got "big"'
    assert yielded(pool, None) == []
    assert yielded(GOOD.replace("spec: {}", "spec: {size: big}"), STRICT) == []


def test_each_document_of_a_text_is_checked() -> None:
    told = yielded("---\n".join([GOOD, GOOD.replace("kind: Pod", "kind: Secret"), GOOD.replace("v1", "v2")]))
    assert [(each.line, each.code) for each in told] == [(108, "RC411"), (113, "RC411")]


def test_documents_of_any_reader_are_checked() -> None:
    rendering = Rendering("a\nb\n", (("templates/a.j2", 7), ("templates/b.j2", 9)))
    (told,) = check(rendering, [Yielded({"kind": "Nope"}, lambda path: 2 if path == ("kind",) else 1)], None)
    assert (told.file, told.line) == ("templates/b.j2", 9)


def test_a_line_beyond_the_text_belongs_to_its_last_one() -> None:
    rendering = Rendering("a\n", (("templates/a.j2", 7),))
    assert [origin(rendering, line) for line in (0, 1, 5)] == [("templates/a.j2", 7)] * 3
    assert origin(Rendering(), 1) == ("", 0)
