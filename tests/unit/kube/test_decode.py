"""What the API server says, decoded: each kind, what is written unusually, what is broken, and what is never read."""

import json
from typing import Any

import pytest

from reconciler.kube.decode import Undecodable, WatchEvent, event, one, page, refused_words
from reconciler.kube.placeholders import StandIn
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.pod import Pod
from tests.unit.kube.real_objects import OBJECTS, SECRET, TIME, Object, an, kept_pod, metadata, seen


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def as_listed(value: Object) -> Object:
    """The API server leaves kind and version out of what stands in a list."""
    return {key: each for key, each in value.items() if key not in {"kind", "apiVersion"}}


def decoded(value: Object, field: str = "") -> Any:
    return one(seen(value["kind"], field), raw(value))


def test_there_is_a_real_object_of_every_kind_that_is_looked_at() -> None:
    assert {each["kind"] for each in OBJECTS} == {each.kind for each in RESOURCE_KINDS}


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: str(value["kind"]))
def test_an_object_reads_the_same_alone_in_a_list_and_in_a_watch(value: Object) -> None:
    alone = decoded(value)
    heading = {"kind": f"{value['kind']}List", "apiVersion": value["apiVersion"], "metadata": {}}
    (from_list,) = page(seen(value["kind"]), raw({**heading, "items": [as_listed(value)]})).items
    told = event(seen(value["kind"]), raw({"type": "MODIFIED", "object": value}))
    assert alone == from_list == told.object
    assert alone.metadata.name == value["metadata"]["name"]
    assert told.resource_version == "412"


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: str(value["kind"]))
def test_null_is_the_same_as_nothing(value: Object) -> None:
    emptied = {**value, "metadata": {**value["metadata"], "labels": None, "ownerReferences": None, "finalizers": None}}
    absent = {**value, "metadata": {**value["metadata"], "labels": {}}}
    absent["metadata"].pop("ownerReferences", None)
    assert decoded(emptied) == decoded(absent)


def test_the_lists_of_a_pod_may_be_null() -> None:
    value = an("Pod")
    value["spec"] |= {"tolerations": None, "initContainers": None, "nodeSelector": None}
    value["spec"]["containers"][0]["ports"] = None
    value["status"] = None
    found = decoded(value)
    assert found.spec.tolerations == ()
    assert found.spec.containers[0].ports == ()
    assert found.gpus == 2
    assert found.status == Pod(found.metadata).status


def test_amounts_may_be_numbers() -> None:
    node, pod = an("Node"), an("Pod")
    node["status"]["allocatable"] = {"cpu": 96, "memory": 1.5, "nvidia.com/gpu": 8}
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1, "nvidia.com/gpu": 4}}
    assert decoded(node).status.allocatable == {"cpu": "96", "memory": "1.5", "nvidia.com/gpu": "8"}
    assert decoded(pod).gpus == 4


def test_an_object_says_what_is_used_of_it() -> None:
    node, pod, claim = decoded(an("Node")), decoded(an("Pod")), decoded(an("NodeClaim"))
    assert (node.pool, node.gpus, node.is_ready) == ("a100", 8, True)
    assert (pod.title, pod.node, pod.gpus, pod.counts) == ("team-a/train-0", "gpu-1", 2, True)
    assert pod.metadata.annotations.do_not_disrupt == "true"
    assert claim.says("Drifted")
    assert decoded(an("PodDisruptionBudget")).status.disrupted_pods == {"train-1": TIME}
    assert decoded(an("Job")).spec.parallelism == 2
    allocation = decoded(an("ResourceClaim")).status.allocation
    assert allocation.devices.results[0].binding_conditions == ("Attached",)
    assert allocation.node_selector.node_selector_terms[0].match_fields[0].values == ("gpu-1",)


def test_a_volume_says_where_it_is_and_whose() -> None:
    claim, volume = decoded(an("PersistentVolumeClaim")), decoded(an("PersistentVolume"))
    assert (claim.is_bound, claim.spec.volume_name, claim.storage_class) == (True, volume.metadata.name, "gp3")
    assert claim.metadata.annotations.selected_node == "gpu-1"
    assert claim.spec.resources.requests == volume.spec.capacity == {"storage": "100Gi"}
    assert (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name) == ("team-a", "data")
    assert volume.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].values == ("eu-1a",)
    assert (volume.spec.csi.driver, volume.spec.csi.volume_handle) == ("ebs.csi.aws.com", "vol-1")
    assert not volume.is_stood_in_for
    older = {**an("PersistentVolume"), "spec": {"awsElasticBlockStore": {"volumeID": "vol-1"}}}
    assert decoded(older).is_stood_in_for


def test_a_storage_class_says_when_volumes_are_made_and_where() -> None:
    made, chosen = an("StorageClass"), an("StorageClass")
    chosen |= {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"}
    assert (decoded(made).waits, decoded(made).provisions) == (True, True)
    assert (decoded(chosen).waits, decoded(chosen).provisions) == (False, False)
    assert decoded(made).allowed_topologies[0].match_label_expressions[0].values == ("eu-1a", "eu-1b")


def test_a_node_says_how_many_volumes_each_driver_bears_on_it() -> None:
    drivers = decoded(an("CSINode")).spec.drivers
    assert [(each.name, each.allocatable.count) for each in drivers] == [
        ("ebs.csi.aws.com", 25),
        ("efs.csi.aws.com", None),
    ]
    attachment = decoded(an("VolumeAttachment")).spec
    assert (attachment.attacher, attachment.node_name) == ("ebs.csi.aws.com", "gpu-1")
    assert attachment.source.persistent_volume_name == "pvc-1"
    assert decoded({**an("CSIDriver"), "spec": {"storageCapacity": True}}).spec.storage_capacity


def test_only_volumes_that_tie_a_pod_to_a_place_are_kept() -> None:
    volumes = decoded(an("Pod")).spec.volumes
    assert [each.name for each in volumes] == ["scratch", "claim"]
    assert volumes[0].empty_dir.medium == "Memory"
    assert volumes[1].persistent_volume_claim.claim_name == "data"
    for kind in ("gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "iscsi", "portworxVolume", "rbd"):
        value = an("Pod")
        value["spec"]["volumes"] = [{"name": "disk", kind: {"password": SECRET}}, {"name": "more", "nfs": {}}]
        (found,) = decoded(value).spec.volumes
        assert (found.name, found.is_inline) == ("disk", True), kind


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job"])
def test_a_workload_of_a_list_knows_its_kind(kind: str) -> None:
    (found,) = page(seen(kind), raw({"items": [as_listed(an(kind))]})).items
    assert found.kind == kind


def test_what_is_kept_whole_has_everything_beside_its_heading() -> None:
    pool = decoded(an("NodePool"))
    assert (pool.api_version, pool.kind, pool.name) == ("karpenter.sh/v1", "NodePool", "a100")
    assert pool.rest == {key: an("NodePool")[key] for key in ("spec", "status")}
    assert decoded(an("PriorityClass")).rest == {"value": -10, "globalDefault": False, "description": "gives way"}
    assert pool.metadata.managed_fields[0].manager == "kubectl"


def test_what_is_kept_whole_takes_its_version_from_its_list_or_else_from_its_kind() -> None:
    bare = as_listed(an("NodePool"))
    assert (
        page(seen("NodePool"), raw({"apiVersion": "karpenter.sh/v7", "items": [bare]})).items[0].api_version[-2:]
        == "v7"
    )
    assert page(seen("NodePool"), raw({"items": [bare]})).items[0].api_version == "karpenter.sh/v1"
    assert page(seen("Pod", "kept"), raw({"items": [as_listed(kept_pod())]})).items[0].api_version == "v1"


@pytest.mark.parametrize(
    ("status", "images"),
    [
        ({"amis": [{"id": "b"}, {"id": "a"}, {"id": "b"}]}, ("a", "b")),
        ({"images": ["y", "x"]}, ("x", "y")),
        ({"images": [{"id": "z", "requirements": []}]}, ("z",)),
        ({"imageID": "i"}, ("i",)),
        ({"amis": None, "images": "none", "imageID": None}, ()),
        ({}, ()),
    ],
)
def test_a_node_class_knows_its_images_whatever_its_cloud_calls_them(status: Object, images: tuple[str, ...]) -> None:
    assert decoded({**an("EC2NodeClass"), "status": status}).images == images


def test_a_page_knows_how_to_go_on() -> None:
    heading = {"resourceVersion": "77", "continue": "abc", "remainingItemCount": 3}
    found = page(seen("Node"), raw({"kind": "NodeList", "metadata": heading, "items": []}))
    assert (found.items, found.resource_version, found.continue_token) == ((), "77", "abc")
    assert page(seen("Node"), raw({"metadata": {"resourceVersion": "78"}, "items": None})).resource_version == "78"


def test_one_unusual_object_does_not_spoil_its_page() -> None:
    nodes = [as_listed(an("Node")) for _ in range(3)]
    nodes[1]["metadata"]["labels"] = None
    found = page(seen("Node"), raw({"items": nodes})).items
    assert [each.pool for each in found] == ["a100", "", "a100"]


def test_a_bookmark_has_a_version_and_no_object() -> None:
    mark = {"kind": "Node", "apiVersion": "v1", "metadata": {"resourceVersion": "99", "creationTimestamp": None}}
    assert event(seen("Node"), raw({"type": "BOOKMARK", "object": mark})) == WatchEvent(
        "BOOKMARK", resource_version="99"
    )


def test_an_error_has_a_code_and_a_sentence() -> None:
    status = {
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": "too old",
        "reason": "Gone",
        "code": 410,
    }
    assert event(seen("Pod"), raw({"type": "ERROR", "object": status})) == WatchEvent(
        "ERROR", code=410, message="too old"
    )


BROKEN_PAGES = {
    b"": "nodes",
    b"<html>": "nodes",
    b"\xff\xfe": "nodes",
    b"[" * 100_000: "nodes",
    b'{"kind": "NodeList"}': "items",
    b'{"kind": "Status", "items": []}': "Status",
    b'{"kind": "PodList", "items": []}': "PodList",
    b'{"items": [{"metadata": {"name": "a"}}]': "truncated",
}


@pytest.mark.parametrize(("content", "named"), BROKEN_PAGES.items(), ids=lambda each: str(each)[:40])
def test_a_broken_page_is_refused_with_a_sentence_that_names_what_is_broken(content: bytes, named: str) -> None:
    with pytest.raises(Undecodable, match=named):
        page(seen("Node"), content)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"metadata": {"name": "b"}, "status": 7}, "Node/b: Expected `object`"),
        ({"spec": {}}, "a Node without a name: Object missing"),
        (7, "a Node without a name: Expected `object`"),
    ],
)
def test_a_broken_object_of_a_page_is_set_aside_and_named(content: object, told: str) -> None:
    first, second = page(seen("Node"), json.dumps({"items": [{"metadata": {"name": "a"}}, content]}).encode()).items
    assert first.name == "a"
    assert isinstance(second, StandIn)
    assert refused_words(second).startswith(told)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"7",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": {"metadata": {}}}',
        b'{"type": "BOOKMARK", "object": 7}',
        b'{"type": "ADDED", "object": ' + b"[" * 100_000,
    ],
)
def test_a_broken_event_is_refused(line: bytes) -> None:
    with pytest.raises(Undecodable, match=r"[Nn]ode"):
        event(seen("Node"), line)


def test_metadata_of_the_wrong_shape_is_refused_in_what_is_kept_whole() -> None:
    with pytest.raises(Undecodable, match=r"NodePool/a100: .*labels"):
        decoded({**an("NodePool"), "metadata": metadata("a100", labels=[1])})
    with pytest.raises(Undecodable, match="a NodePool without a name"):
        decoded({"kind": "NodePool"})


@pytest.mark.parametrize("value", [*OBJECTS, kept_pod()], ids=lambda value: str(value["kind"]))
def test_where_people_put_secrets_nothing_is_read(value: Object) -> None:
    for each in RESOURCE_KINDS:
        if each.kind == value["kind"]:
            assert SECRET not in repr(one(each, raw(value)))


def test_annotations_are_kept_where_we_set_them_ourselves() -> None:
    fields: Object = {"f:metadata": {"f:annotations": {"f:example.com/team": {}}}}
    ours = {"manager": names.FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}
    about = metadata("a100", managedFields=[ours])
    about["annotations"]["example.com/team"] = "training"
    found = decoded({**an("NodePool"), "metadata": about}).metadata.annotations
    assert found == {"karpenter.sh/do-not-disrupt": "true", "example.com/team": "training"}
