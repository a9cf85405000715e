"""Dumps: what goes in comes out, the same cluster gives the same bytes, and no secret is in them."""

import json
import os
import random
import subprocess
import sys
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.kube.cluster_file import read_cluster
from reconciler.model.cluster.metadata import LabelExpression, LabelSelector
from reconciler.model.cluster.observed import Observed, Quiet, Unread
from reconciler.model.cluster.pod import Affinity, Pod, PodSpec, PodTerm, PodTerms
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.cluster.unstructured import ManagedFields, Unstructured, UnstructuredMetadata
from reconciler.model.cluster.volumes import VolumeClaimSpec
from reconciler.model.desired import Declared, Desired, Manifest, SmartPod
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.pressure import Bounds, ElasticPod, NodePods, PressureState
from reconciler.model.problem import Origin
from reconciler.plan.files.dump import FORMAT, BadDump, read, redacted, write
from reconciler.policy.rules.kinds import KINDS
from tests import folders
from tests.policies.specimens import allowed
from tests.unit.kube.real_objects import OBJECTS, SECRET, Object, kept_pod, listed
from tests.unit.policy.test_json_schema import as_read

ROOT = folders.REPOSITORY
WISHES = {
    "GpuPool": "pools",
    "NodeProvisioner": "provisioners",
    "DrainPolicy": "drains",
    "PressurePolicy": "pressures",
    "ChangeGuard": "guards",
}
LABELS = some.dictionaries(some.sampled_from(("app", "b", "gpu.scheduling/managed")), some.sampled_from(("true", "x")))


@some.composite
def wishes(draw: some.DrawFn) -> Desired:
    """Policies of one kind, with any value that its fields allow."""
    kind = draw(some.sampled_from([each for each in KINDS if each.name in WISHES]))
    spec, problems = as_read(kind, draw(allowed(kind.shape)))
    assert not problems
    named = draw(some.lists(some.sampled_from("abc"), unique=True, max_size=2))
    origins = (("", Origin(draw(some.text(max_size=5)), 1)), ("spec.labels[é]", Origin("b", 2, "r")))
    found: Any = {WISHES[kind.name]: tuple(Declared(kind.name, name, spec, origins) for name in named)}
    body = '{"kind":"NodePool","metadata":{"name":"a"},"spec":{}}'
    manifest = Manifest("NodePool", "", "a", body, "a", Origin("a", 1), Origin("b", 2))
    pods = tuple(SmartPod(pool, kind, "{}", Origin("c", 3)) for pool in named for kind in ("z", "a"))
    manifests = (manifest,) * draw(some.integers(0, 1))
    return Desired("r", "production", manifests=manifests, smart_pods=pods, **found)


@some.composite
def clusters(draw: some.DrawFn) -> Observed:
    """Several of each kind, with other names and labels, in any order."""
    objects: list[Object] = []
    for value in draw(some.lists(some.sampled_from((*OBJECTS, kept_pod())), max_size=12)):
        about = {**value["metadata"], "name": draw(some.sampled_from("abcde")), "labels": draw(LABELS)}
        objects.append({**value, "metadata": about})
    observed = read_cluster("f", listed(*objects), complete=draw(some.booleans())).observed
    quiet = (Quiet("pods", Instant(2)), Quiet("nodes", Instant(1)))
    seen_at = Instant(draw(some.integers(0, 2**60)))
    return msgspec.structs.replace(observed, seen_at=seen_at, absent=("b", "a"), quiet=quiet)


@some.composite
def inputs(draw: some.DrawFn) -> Inputs:
    now, prune = Instant(draw(some.integers(0, 2**60))), draw(some.lists(some.sampled_from("xyz"), unique=True))
    return Inputs(draw(wishes()), draw(clusters()), now, prune=tuple(prune))


@given(inputs())
def test_what_is_dumped_comes_back(value: Inputs) -> None:
    content = write(value)
    assert read(content) == redacted(value)
    assert write(read(content)) == content


@given(clusters(), some.randoms(use_true_random=False))
def test_the_same_cluster_in_another_order_gives_the_same_bytes(observed: Observed, order: random.Random) -> None:
    shuffled = {}
    for field in Observed.__struct_fields__:
        value = getattr(observed, field)
        if isinstance(value, tuple):
            shuffled[field] = tuple(order.sample(value, len(value)))
    other = msgspec.structs.replace(observed, **shuffled)
    assert write(Inputs(Desired("", ""), other, Instant(0))) == write(Inputs(Desired("", ""), observed, Instant(0)))


OTHERS = [{**each, "metadata": {**each["metadata"], "name": "other"}} for each in OBJECTS]
FULL = Inputs(Desired("r", "production"), read_cluster("f", listed(*OBJECTS, *OTHERS, kept_pod())).observed, Instant(0))


def test_every_field_of_an_observed_is_dumped_in_order() -> None:
    """So that a field that is added later can't be forgotten."""
    for field in Observed.__struct_fields__:
        value = getattr(FULL.observed, field)
        if isinstance(value, tuple) and field not in {"unread", "quiet", "absent", "set_aside"}:
            assert len(value) > 1
            turned = msgspec.structs.replace(FULL.observed, **{field: value[::-1]})
            assert write(msgspec.structs.replace(FULL, observed=turned)) == write(FULL), field
    twice = msgspec.structs.replace(FULL.observed, unread=(Unread("b", "x"), Unread("a", "y")), absent=("d", "c"))
    twice = msgspec.structs.replace(twice, set_aside=(SetAside("Pod", "b", "p"), SetAside("Pod", "a", "p")))
    told = read(write(msgspec.structs.replace(FULL, observed=twice))).observed
    assert (told.unread, told.absent) == ((Unread("a", "y"), Unread("b", "x")), ("c", "d"))
    assert told.set_aside == (SetAside("Pod", "a", "p"), SetAside("Pod", "b", "p"))


def test_json_in_json_out_whatever_the_seed_of_hashing() -> None:
    program = "import sys; from tests.unit.plan.files import test_dump as t; sys.stdout.buffer.write(t.write(t.FULL))"
    written = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        written.add(
            subprocess.run(
                [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, check=True
            ).stdout
        )
    assert written == {write(FULL)}


def test_a_dump_says_what_it_is_and_its_keys_are_sorted() -> None:
    content = write(FULL)
    found = json.loads(content)
    assert found["format"] == FORMAT
    assert list(found) == ["digest", "format", "inputs"]
    assert content == json.dumps(found, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode() + b"\n"


def test_no_secret_is_in_a_dump() -> None:
    assert b"train-0" in write(FULL)
    assert SECRET.encode() not in write(FULL)


def test_what_was_not_read_from_a_cluster_is_redacted_too() -> None:
    """As an Observed would be that no decoder made."""
    annotations = {"example.com/note": SECRET, "gpu.scheduling/frozen-until": "2026-11-02T08:00:00Z"}
    whole = next(each for each in FULL.observed.kept if each.kind == "Pod")
    container = {"name": "main", "image": "train:1", "env": [{"name": "PASSWORD", "value": SECRET}]}
    written_by = (
        ManagedFields("someone", "Update", fields={"f:metadata": {"f:annotations": {"f:example.com/note": {}}}}),
    )
    planted = Unstructured(
        "v1",
        "Pod",
        UnstructuredMetadata("a", annotations=annotations, managed_fields=written_by),
        {"spec": {key: [container] for key in ("containers", "initContainers", "ephemeralContainers")}},
    )
    classes = tuple(
        msgspec.structs.replace(each, spec={"userData": SECRET, "role": "nodes"}) for each in FULL.observed.node_classes
    )
    observed = msgspec.structs.replace(FULL.observed, kept=(whole, planted), node_classes=classes)
    content = write(msgspec.structs.replace(FULL, observed=observed))
    assert SECRET.encode() not in content
    found = read(content).observed
    assert found.kept[0].metadata.annotations == {"gpu.scheduling/frozen-until": "2026-11-02T08:00:00Z"}
    assert found.kept[0].spec["containers"] == [{"name": "main"}]
    assert found.node_classes[0].spec == {"role": "nodes"}


def test_a_pod_that_is_labelled_managed_shows_no_more_than_any_other() -> None:
    """A tenant may put the label on a pod of its own."""
    whole = next(each for each in FULL.observed.kept if each.kind == "Pod")
    unknown = {"unknown": SECRET, "more": {"a": [SECRET]}}
    spec = (
        whole.spec
        | unknown
        | {
            "containers": [each | unknown | {"image": SECRET} for each in whole.spec["containers"]],
            "hostAliases": [{"ip": "10.0.0.1", "hostnames": [SECRET]}],
            "imagePullSecrets": [{"name": SECRET}],
            "serviceAccountName": SECRET,
            "hostname": SECRET,
            "volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"password": SECRET}}}],
        }
    )
    status = {
        "phase": "Running",
        "message": SECRET,
        "podIP": SECRET,
        "containerStatuses": [{"name": "m", "state": SECRET}],
    }
    planted = msgspec.structs.replace(whole, rest={"spec": spec, "status": status, "other": SECRET})
    content = write(msgspec.structs.replace(FULL, observed=msgspec.structs.replace(FULL.observed, kept=(planted,))))
    assert SECRET.encode() not in content
    (found,) = read(content).observed.kept
    metadata = {"name": whole.name}
    before = msgspec.convert({"metadata": metadata, "spec": spec, "status": {**status, "containerStatuses": []}}, Pod)
    after = msgspec.convert({"metadata": metadata, **found.rest}, Pod)
    assert after.spec == before.spec
    assert after.status.phase == "Running"


@pytest.mark.parametrize(
    "field",
    ["budgets", "workloads", "volume_claims", "volumes", "namespaces", "leases", "resource_claims", "node_classes"],
)
def test_labels_that_no_selector_names_are_not_in_a_dump(field: str) -> None:
    labels = {"team": SECRET, "gpu.scheduling/managed": "true"}
    (first, *_) = getattr(FULL.observed, field)
    labelled = msgspec.structs.replace(first, metadata=msgspec.structs.replace(first.metadata, labels=labels))
    content = write(
        msgspec.structs.replace(FULL, observed=msgspec.structs.replace(FULL.observed, **{field: (labelled,)}))
    )
    assert SECRET.encode() not in content
    assert getattr(read(content).observed, field)[0].metadata.labels == {"gpu.scheduling/managed": "true"}


def test_labels_that_a_selector_names_are_in_a_dump() -> None:
    selector = LabelSelector({"team": "a"}, (LabelExpression("tier", "Exists"),))
    near = PodTerm("zone", namespace_selector=selector)
    pod = msgspec.structs.replace(
        FULL.observed.pods[0], spec=PodSpec(affinity=Affinity(pod_affinity=PodTerms((near,))))
    )
    claim = msgspec.structs.replace(FULL.observed.volume_claims[0], spec=VolumeClaimSpec(selector=selector))
    labels = {"team": "a", "tier": "b", "other": SECRET}
    space, volume = (
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, labels=labels))
        for each in (FULL.observed.namespaces[0], FULL.observed.volumes[0])
    )
    observed = msgspec.structs.replace(
        FULL.observed, pods=(pod,), volume_claims=(claim,), namespaces=(space,), volumes=(volume,)
    )
    found = read(write(msgspec.structs.replace(FULL, observed=observed))).observed
    assert found.namespaces[0].metadata.labels == {"team": "a", "tier": "b"}
    assert found.volumes[0].metadata.labels == {"team": "a", "tier": "b"}


@pytest.mark.parametrize("field", ["context", "tags", "userData", "amiSelectorTerms", "subnetSelectorTerms", "any"])
def test_a_node_class_keeps_only_what_describes_machines(field: str) -> None:
    spec = {"role": "nodes", "kubelet": {"maxPods": 110}, field: {"a": SECRET}}
    classes = tuple(msgspec.structs.replace(each, spec=spec) for each in FULL.observed.node_classes)
    content = write(
        msgspec.structs.replace(FULL, observed=msgspec.structs.replace(FULL.observed, node_classes=classes))
    )
    assert SECRET.encode() not in content
    assert read(content).observed.node_classes[0].spec == {"role": "nodes", "kubelet": {"maxPods": 110}}


WHOLE = write(FULL)
BROKEN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not a dump"),
    "cut off": (WHOLE[:-100], "truncated"),
    "another list": (b'{"kind": "List", "items": []}', "not a dump"),
    "another format": (WHOLE.replace(b"reconciler-dump/2", b"reconciler-dump/12"), "format 12"),
    "another digest": (WHOLE.replace(b"sha256:", b"sha256:0", 1), "does not match its digest"),
    "another content": (WHOLE.replace(b'"a100"', b'"b100"', 1), "does not match its digest"),
    "no content": (b'{"format":"reconciler-dump/2"}', "does not match its digest"),
}


@pytest.mark.parametrize(("content", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_whole_dump_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(BadDump, match=sentence) as caught:
        read(content)
    assert caught.value.remedy


def test_a_dump_that_is_whole_and_says_what_this_version_does_not_know_is_refused() -> None:
    """As a program would write it that is newer and kept the format."""
    other = msgspec.json.encode({**json.loads(WHOLE)["inputs"], "now": "noon"}, order="sorted")
    digest = f"sha256:{sha256(other).hexdigest()}".encode()
    content = b'{"format":"reconciler-dump/2","digest":"%s","inputs":%s}' % (digest, other)
    with pytest.raises(BadDump, match="cannot read the dump"):
        read(content)


def test_a_dump_has_what_is_reserved_in_a_stable_order() -> None:
    """A dump of an older version has no such field."""
    pods = [ElasticPod(uid, "team/a", {"cpu": 1}, {"cpu": 9}, {"cpu": 3}, {"cpu": 4}) for uid in ("u1", "u2")]
    nodes = [NodePods(name, {"cpu": Bounds(100, 10, 8_000)}, tuple(pods)) for name in ("a", "b")]
    state = PressureState(tuple(nodes), {"u2": 5, "u1": 7})
    backwards = [NodePods(each.node, each.bounds, tuple(reversed(pods))) for each in reversed(nodes)]
    inputs = Inputs(
        Desired("r", "e"), Observed(), Instant(5), pressure=PressureState(tuple(backwards), {"u1": 7, "u2": 5})
    )
    written = write(inputs)
    assert read(written).pressure == state
    assert written == write(msgspec.structs.replace(inputs, pressure=state))
    older = json.loads(written)
    del older["inputs"]["pressure"]
    content = json.dumps(older["inputs"]).encode()
    older["digest"] = f"sha256:{sha256(content).hexdigest()}"
    assert read(json.dumps(older).encode()).pressure is None


def test_a_dump_with_an_impossible_name_in_what_is_reserved_is_refused() -> None:
    state = PressureState((NodePods("not a name", {}),))
    with pytest.raises(BadDump, match="not a valid Node name"):
        read(write(Inputs(Desired("r", "e"), Observed(), Instant(5), pressure=state)))
