"""The pod that asks Karpenter for a machine: what the default template yields, and what any template must."""

import json
from typing import Any

import msgspec
import pytest
import yaml

from reconciler.cli.main import main
from reconciler.controller.policies import check_bundle
from reconciler.model.bundle import Bundle, Text
from reconciler.model.desired import Desired
from reconciler.model.problem import PolicyRef, Problem
from reconciler.sources.input_file import default_templates

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: gpus}
spec:
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4de.24xlarge}, {name: p4d.24xlarge, capacity: {cpu: 96}}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100}
  taints: [{key: nvidia.com/gpu, value: "true", effect: NoSchedule}, {key: slow, effect: PreferNoSchedule}]
  smartPods: {namespace: scaling, image: "mirror/pause:1", activeDeadlineSeconds: 300}
"""
DEFAULT = next(each.content.decode() for each in default_templates() if each.path == "smart_pod.yaml.j2")
EXPECTED = """\
apiVersion: v1
kind: Pod
metadata:
  name: smart-gpu-scheduler-a100
  namespace: scaling
  labels:
    gpu.scheduling/component: smart-scheduler
    gpu.scheduling/gpu-model: a100
    gpu.scheduling/pool: gpus
    gpu.scheduling/trigger-type: gpu-scaling
    gpu.scheduling/managed: "true"
  annotations:
    gpu.scheduling/created-by: reconciler
    gpu.scheduling/purpose: trigger-karpenter-scaling
    gpu.scheduling/cleanup-after: node-ready
spec:
  restartPolicy: Never
  schedulerName: default-scheduler
  priorityClassName: gpu-scheduling-smart-pods
  activeDeadlineSeconds: 300
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
  nodeSelector: {karpenter.sh/nodepool: gpus, node.kubernetes.io/instance-type: p4de.24xlarge}
  tolerations:
    - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
    - {key: gpu.scheduling/arriving, operator: Exists, effect: NoSchedule}
    - {key: nvidia.com/gpu, operator: Equal, value: "true", effect: NoSchedule}
    - {key: slow, operator: Equal, value: "", effect: PreferNoSchedule}
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector: {matchLabels: {gpu.scheduling/component: smart-scheduler}}
  securityContext: {runAsNonRoot: true, runAsUser: 65535, runAsGroup: 65535, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: gpu-trigger
      image: mirror/pause:1
      securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
      resources:
        requests: {cpu: 100m, memory: 64Mi, nvidia.com/gpu: 8}
        limits: {cpu: 100m, memory: 64Mi, nvidia.com/gpu: 8}
"""


def checked(template: str = "", policy: str = POOL) -> tuple[Desired, tuple[Problem, ...]]:
    """The wish of a pool, perhaps with a smart_pod.yaml.j2 of its own."""
    own = (Text("smart_pod.yaml.j2", template.encode(), "own.j2"),) if template else ()
    resolved = check_bundle(Bundle("r", (Text("pool.yaml", policy.encode()),), own)).resolved
    (wish,) = resolved.wishes
    return wish, resolved.problems


def bodies(wish: Desired) -> list[Any]:
    return [json.loads(each.body) for each in wish.smart_pods]


def test_the_default_template_yields_a_pod_a_type_first_choice_first() -> None:
    wish, problems = checked()
    assert problems == ()
    assert [(each.pool, each.instance_type) for each in wish.smart_pods] == [
        ("gpus", "p4de.24xlarge"),
        ("gpus", "p4d.24xlarge"),
    ]
    first, second = bodies(wish)
    assert first == yaml.safe_load(EXPECTED)
    first["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] = "p4d.24xlarge"
    assert second == first
    line = DEFAULT.splitlines().index("apiVersion: v1") + 1
    assert {(each.template.file, each.template.line) for each in wish.smart_pods} == {
        ("templates/smart_pod.yaml.j2", line)
    }


def test_smart_pods_are_no_manifests() -> None:
    wish, _ = checked()
    assert "Pod" not in {each.kind for each in wish.manifests}


def test_policies_that_bring_other_templates_still_find_the_default_one() -> None:
    texts = (Text("pool.yaml", POOL.encode()),)
    other = (Text("other.yaml.j2", b"{}"), Text("smart/pod.yaml.j2", b"nothing"))
    resolved = check_bundle(Bundle("r", texts, other)).resolved
    assert resolved.problems == ()
    assert [each.template.file for each in resolved.wishes[0].smart_pods] == ["templates/smart_pod.yaml.j2"] * 2


def test_a_template_knows_the_machine_and_may_change_the_rest() -> None:
    wish, problems = checked(DEFAULT.replace("cpu: 100m", "cpu: {{ instance.capacity.cpu | default(1) }}", 1))
    assert problems == ()
    assert [each["spec"]["containers"][0]["resources"]["requests"]["cpu"] for each in bodies(wish)] == [1, "96"]
    assert wish.smart_pods[0].template.file == "own.j2"


SECOND = "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {}\n"


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (DEFAULT + SECOND, "smart_pod.yaml.j2 renders Pod, Pod, but must render one Pod"),
        ("{# nothing #}", "smart_pod.yaml.j2 renders nothing, but must render one Pod"),
        (DEFAULT.replace("  containers:", "  initContainers:"), "spec.containers must be a list of containers"),
        (DEFAULT.replace("    gpu.scheduling/managed:", "    managed:"), "labels.gpu.scheduling/managed is missing"),
        (DEFAULT.replace("smart-scheduler\n    gpu", "x\n    gpu"), 'component is "x", must be "smart-scheduler"'),
        (DEFAULT.replace("  namespace: {{", "  generateName: {{"), "metadata.generateName may not be set"),
        (DEFAULT.replace("nodeSelector:", "nodeSelector: {}\n  others:"), "karpenter.sh/nodepool is missing"),
        (DEFAULT.replace("instance.name", "pool.name"), 'instance-type is "gpus", must be "p4d.24xlarge"'),
    ],
)
def test_what_no_smart_pod_can_be_made_of_is_told_with_its_place(template: str, sentence: str) -> None:
    wish, problems = checked(template)
    assert wish.smart_pods == ()
    assert any(sentence in each.sentence for each in problems), problems
    assert all(each.file in {"own.j2", "pool.yaml"} and each.line and each.remedy for each in problems)
    assert all("(for GpuPool/gpus, pool.yaml:3)" in each.sentence for each in problems)
    assert {each.subject for each in problems} == {PolicyRef("GpuPool", "gpus")}


def test_what_is_wrong_for_each_type_is_told_once() -> None:
    _, problems = checked(DEFAULT.replace("    gpu.scheduling/managed:", "    managed:"))
    assert len(problems) == 1


def test_a_template_that_is_not_there_is_told_where_it_is_named() -> None:
    _, problems = checked(policy=POOL.replace("{namespace: scaling", "{template: none.j2, namespace: scaling"))
    (problem,) = problems
    line = next(number for number, text in enumerate(POOL.splitlines(), 1) if "{namespace: scaling" in text)
    assert (problem.code, problem.file, problem.line) == ("RC405", "pool.yaml", line)
    assert problem.subject == PolicyRef("GpuPool", "gpus")


@pytest.mark.parametrize("name", ["none.j2", "parts/../none.j2"])
def test_so_is_one_of_the_node_pool_that_is_not_there_or_outside(name: str) -> None:
    _, problems = checked(policy=POOL.replace("spec:\n", f"spec:\n  template: {name}\n"))
    assert {(each.file, each.line) for each in problems} == {("pool.yaml", 5)}
    assert {each.code for each in problems} == {"RC403" if ".." in name else "RC405"}


def test_a_template_of_their_own_can_t_come_with_custom_resources(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name, text in (("policies", "a.yaml", POOL), ("templates", "smart_pod.yaml.j2", DEFAULT + "\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    assert main(["render", "--as-resources"]) == 1
    assert "GpuPool/gpus: custom resources cannot include their own templates" in capsys.readouterr().err
    assert main(["render", "--as-resources", "--smart-pods"]) == 64
    capsys.readouterr()
    assert main(["render", "--smart-pods"]) == 0
    told = [each["kind"] for each in yaml.safe_load_all(capsys.readouterr().out)]
    assert told == ["NodePool", "Pod", "Pod"]


def test_a_namespace_that_the_template_leaves_open_is_not_guessed() -> None:
    wish, problems = checked(DEFAULT.replace("  namespace: {{ pool.smartPods.namespace }}\n", ""))
    assert not wish.smart_pods
    assert 'metadata.namespace is missing, must be "scaling"' in problems[0].sentence


def test_a_wish_keeps_them_through_a_copy() -> None:
    wish, _ = checked()
    assert msgspec.json.decode(msgspec.json.encode(wish), type=Desired) == wish
