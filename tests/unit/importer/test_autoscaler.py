"""The flags of a Cluster Autoscaler become a DrainPolicy that says the same, and what it can't say is told."""

import json
from typing import Any

import pytest

from reconciler.controller.policies import check_bundle
from reconciler.importer.autoscaler import Flags, NoFlags, documents, drain_policy, flags_in
from reconciler.model.bundle import Bundle
from reconciler.model.policy.scaling import DrainPolicy

Json = dict[str, Any]


def deployment(*words: str, name: str = "cluster-autoscaler", **container: Any) -> Json:
    made = {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.32.0", "command": list(words), **container}
    spec = {"template": {"spec": {"containers": [{"image": "proxy:1", "args": ["--v=9"]}, made]}}}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def flags(*words: str) -> Flags:
    return flags_in([deployment("./cluster-autoscaler", *words)])


def written(*words: str) -> DrainPolicy:
    """As it is read again; nothing is wrong with it."""
    text, _ = drain_policy(flags(*words))
    checkup = check_bundle(Bundle("import", (text,)))
    assert checkup.resolved.problems == ()
    (declared,) = checkup.resolved.wishes[0].drains
    spec: DrainPolicy = declared.spec
    return spec


def said(*words: str) -> list[str]:
    return [f"{each.sentence}; {each.remedy}" for each in drain_policy(flags(*words))[1]]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ((), "max_drain_parallelism", "1"),
        ((), "max_scale_down_parallelism", "10"),
        ((), "utilization_threshold_percent", "50"),
        (("--max-empty-bulk-delete=25",), "max_scale_down_parallelism", "25"),
        (("--max-scale-down-parallelism=40",), "max_scale_down_parallelism", "40"),
        (("--max-empty-bulk-delete=25", "--max-scale-down-parallelism=40"), "max_scale_down_parallelism", "40"),
        (("--max-drain-parallelism=5",), "max_drain_parallelism", "5"),
        (("--max-drain-parallelism", "5"), "max_drain_parallelism", "5"),
        (("-max-drain-parallelism=3", "--max-drain-parallelism=5"), "max_drain_parallelism", "5"),
        (("--max-drain-parallelism=50",), "max_drain_parallelism", "10"),
        (("--max-drain-parallelism=many",), "max_drain_parallelism", "1"),
        (("--scale-down-unneeded-time=1h30m0s",), "scale_down_unneeded_time", "1h30m"),
        (("--scale-down-unneeded-time=0",), "scale_down_unneeded_time", "0s"),
        (("--scale-down-unready-time=90s",), "scale_down_unready_time", "1m30s"),
        (("--scale-down-unready-time=1.5m",), "scale_down_unready_time", "1m30s"),
        (("--scale-down-unready-time=soon",), "scale_down_unready_time", "20m"),
        (("--scale-down-gpu-utilization-threshold=0.655",), "utilization_threshold_percent", "65"),
        (("--scale-down-utilization-threshold=0.7",), "utilization_threshold_percent", "50"),
        ((), "system_pod_timeout", "1h"),
        (("--blocking-system-pod-distruption-timeout=90m",), "system_pod_timeout", "1h30m"),
        (("--skip-nodes-with-system-pods=true",), "system_pod_timeout", "1h"),
        (("--skip-nodes-with-system-pods=false",), "system_pod_timeout", "0s"),
        (
            ("--skip-nodes-with-system-pods=f", "--blocking-system-pod-distruption-timeout=90m"),
            "system_pod_timeout",
            "0s",
        ),
        (("--scale-down-unready-enabled=true",), "scale_down_unready_time", "20m"),
        (("--scale-down-unready-enabled",), "scale_down_unready_time", "20m"),
        (
            ("--scale-down-unready-enabled=false", "--scale-down-unready-time=5m"),
            "scale_down_unready_time",
            "8760h",
        ),
        (("--skip-nodes-with-system-pods", "false"), "system_pod_timeout", "1h"),
        (
            ("--scale-down-utilization-threshold=0.7", "--scale-down-gpu-utilization-threshold=0.3"),
            "utilization_threshold_percent",
            "30",
        ),
        (("--max-graceful-termination-sec=60",), "max_graceful_termination_seconds", "60"),
        (("--scale-down-simulation-timeout=5s",), "simulation_time_bound", "5s"),
    ],
)
def test_a_field_says_what_the_flag_says_or_what_is_done_without_it(
    words: tuple[str, ...], field: str, value: str
) -> None:
    assert str(getattr(written(*words), field)) == value


def test_what_the_cluster_keeps_is_added_up() -> None:
    kept = written("--cores-total=96:4000", "--memory-total=512:99999", "--gpu-total=a100:8:64", "--gpu-total=l4:4:64")
    assert {name: str(amount) for name, amount in kept.cluster_min.items()} == {
        "cpu": "96",
        "memory": "512Gi",
        "nvidia.com/gpu": "12",
    }
    assert written("--cores-total=0:4000").cluster_min == {}


def test_it_does_nothing_before_somebody_says_so() -> None:
    assert written().suspend
    text, _ = drain_policy(flags("--scale-down-enabled=false"))
    assert "--scale-down-enabled=false" in text.content.decode()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--max-drain-parallelism=many",), "--max-drain-parallelism=many is not a number from 1 to 10000"),
        (("--max-drain-parallelism=0",), "--max-drain-parallelism=0 is not from 1 to 10000"),
        (("--scale-down-unneeded-time=$(DELAY)",), "--scale-down-unneeded-time=$(DELAY) is not a duration such as 10m"),
        (("--cores-total=many",), "--cores-total=many cannot be parsed"),
        (
            ("--max-empty-bulk-delete=25", "--max-scale-down-parallelism=40"),
            "--max-empty-bulk-delete=25 is ignored, because --max-scale-down-parallelism=40 sets",
        ),
        (
            ("--scale-down-delay-after-failure=3m",),
            "--scale-down-delay-after-failure=3m has no counterpart; after a failed drain",
        ),
        (
            ("--scale-down-unready-enabled=false",),
            "--scale-down-unready-enabled=false has no counterpart: a node that is not ready for 8760h is removed",
        ),
        (
            ("--nodes=2:10:https://zones/a/groups/train", "--nodes=0:4:b"),
            "--nodes=2:10:https://zones/a/groups/train keeps 2 to 10 nodes of https://zones/a/groups/train",
        ),
        (
            ("--nodes=2:10:a", "--nodes=0:4:b"),
            "set minSize: 0 and maxSize: 4 in the NodeProvisioner of the pool that replaces it",
        ),
        (("--nodes=many",), "--nodes=many cannot be parsed"),
        (
            ("--scale-down-utilization-threshold=0.7",),
            "--scale-down-utilization-threshold=0.7 is not converted: Cluster Autoscaler uses it only for nodes",
        ),
        (("--expendable-pods-priority-cutoff=-10",), "pods of every priority are evicted only if they fit elsewhere"),
        (("--drain-priority-config=100:20,0:60",), "set this to the longest one"),
        (("--skip-nodes-with-local-storage=false",), "--skip-nodes-with-local-storage=false has no counterpart"),
        (("--v=4", "--expander=priority"), "--expander, --v: no counterpart in a DrainPolicy"),
    ],
)
def test_what_it_can_t_say_is_told(words: tuple[str, ...], told: str) -> None:
    assert any(told in each for each in said(*words)), said(*words)


def test_flags_with_a_counterpart_need_no_word() -> None:
    assert said("--max-empty-bulk-delete=25", "--scale-down-unneeded-time=5m", "--cores-total=0:10") == []
    assert said("--skip-nodes-with-local-storage=true", "--skip-nodes-with-system-pods=false") == []
    assert said("--blocking-system-pod-distruption-timeout=1h", "--scale-down-unready-enabled") == []


def test_it_is_found_among_other_things_in_yaml_or_json() -> None:
    yaml = f"kind: ServiceAccount\n---\n{json.dumps(deployment('--max-drain-parallelism=5'))}\n"
    listed = {"kind": "List", "items": [{"kind": "Pod"}, deployment("--max-drain-parallelism=5")]}
    for content in (yaml, json.dumps(listed)):
        assert flags_in(documents(content.encode())).value("max-drain-parallelism") == "5"


def test_where_there_are_several_one_has_to_be_named() -> None:
    both = [deployment("--v=1", name="a"), deployment("--v=2", name="b")]
    with pytest.raises(NoFlags, match="kube-system/a, kube-system/b"):
        flags_in(both)
    assert flags_in(both, "kube-system/b").value("v") == "2"


@pytest.mark.parametrize("content", [b"{}", b"kind: Deployment", b"[1, {}]", b"", b"a: [b", b'{"a": ', b"\xff\xfe\x00"])
def test_where_there_is_none_a_sentence_says_so(content: bytes) -> None:
    with pytest.raises(NoFlags, match=r"no .* runs|neither JSON nor YAML"):
        flags_in(documents(content))
