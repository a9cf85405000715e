"""What pods of one owner have in common is shared as pods are read, and each pod reads as it would alone."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.kube.decode import page
from reconciler.kube.watch.interning import Interning
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Pod
from tests.unit.kube.real_objects import Object, an, seen


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def test_sharing_changes_no_value() -> None:
    """Two pods of one workload, and one of another: each reads as it would alone."""
    first, second, other = an("Pod"), an("Pod"), an("Pod")
    second["metadata"] |= {"name": "train-1", "uid": "2"}
    second["spec"] |= {"nodeName": "gpu-2", "volumes": []}
    other["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "7"
    other["spec"]["affinity"] = {"nodeAffinity": {}}
    found = page(seen("Pod"), raw({"items": [first, second, other, first]})).items
    for value, pod in zip((first, second, other, first), found, strict=True):
        plain = msgspec.json.decode(raw(value), type=Pod)
        telling = tuple(each for each in plain.spec.volumes if each.empty_dir or each.persistent_volume_claim)
        assert pod == msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, volumes=telling))
    assert found[0].spec.containers is found[1].spec.containers
    assert found[0].spec.containers is not found[2].spec.containers


SAID = some.fixed_dictionaries(
    {
        "namespace": some.sampled_from(["team", "other"]),
        "app": some.sampled_from("ab"),
        "node": some.sampled_from(["", "n1", "n2"]),
        "owner": some.sampled_from(["Node", "ReplicaSet", ""]),
        "annotation": some.sampled_from(["", "true", "false"]),
        "phase": some.sampled_from(["Pending", "Running"]),
        "zone": some.sampled_from(["", "a", "b"]),
        "claim": some.sampled_from(["", "c1", "c2"]),
        "uid": some.sampled_from(["", "u1"]),
        "ready": some.booleans(),
    }
)


def a_pod(name: str, said: dict[str, Any]) -> Object:
    owner = {"kind": said["owner"], "name": "o", "uid": said["uid"], "controller": True}
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [said["zone"]]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {
        "metadata": {
            "name": name,
            "namespace": said["namespace"],
            "labels": {"app": said["app"]},
            "annotations": {names.SAFE_TO_EVICT: said["annotation"]} if said["annotation"] else {},
            "ownerReferences": [owner] if said["owner"] else [],
        },
        "spec": {
            "nodeName": said["node"],
            "containers": [{"name": "main"}],
            "affinity": {"nodeAffinity": required} if said["zone"] else None,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": said["claim"]}}] if said["claim"] else [],
        },
        "status": {"phase": said["phase"], "containerStatuses": [{"name": "main", "ready": said["ready"]}]},
    }


@settings(max_examples=40, deadline=None)
@given(some.lists(SAID, min_size=2, max_size=5))
def test_pods_of_one_owner_read_as_each_would_alone(said: list[dict[str, Any]]) -> None:
    """Whatever they differ in, their namespaces included: an owner without a namespace has pods in several."""
    bodies = [a_pod(f"p{number}", each) for number, each in enumerate(said)]
    sharing = Interning()
    together = [sharing.pod(msgspec.json.decode(raw(each), type=Pod)) for each in bodies]
    assert together == [Interning().pod(msgspec.json.decode(raw(each), type=Pod)) for each in bodies]
    assert [each.metadata.namespace for each in together] == [each["namespace"] for each in said]


def test_sharing_leaves_defaults_alone() -> None:
    default = msgspec.json.encode(Pod(metadata=msgspec.json.decode(b'{"name": "a"}', type=Metadata)))
    sharing = Interning()
    for content in (
        b'{"metadata": {"name": "a"}}',
        b'{"metadata": {"name": "b"}, "spec": {"nodeName": "n"}}',
        raw(an("Pod")),
    ):
        sharing.pod(msgspec.json.decode(content, type=Pod))
    assert msgspec.json.encode(msgspec.json.decode(b'{"metadata": {"name": "a"}}', type=Pod)) == default
