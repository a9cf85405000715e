"""Clusters from files: what kubectl printed, a dump, and every file that is neither."""

import json
import re

import pytest
import yaml

from reconciler.kube.cluster_file import ClusterFileError, read_cluster
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files import dump
from tests.unit.kube.real_objects import OBJECTS, SECRET, an, kept_pod, listed, metadata

NAME = "cluster.json"


def written() -> bytes:
    return dump.write(Inputs(Desired("r1", "production"), read_cluster(NAME, listed(*OBJECTS)).observed, Instant(5)))


def unread(observed: Observed) -> set[str]:
    return {each.kind for each in observed.unread}


def test_a_list_of_mixed_kinds_is_a_cluster() -> None:
    found = read_cluster(NAME, listed(*OBJECTS, kept_pod()))
    observed = found.observed
    assert (len(observed.nodes), len(observed.pods), len(observed.workloads)) == (1, 1, 6)
    assert (len(observed.node_claims), len(observed.node_classes), len(observed.policies)) == (1, 2, 8)
    assert {each.kind for each in observed.workloads} >= {"Job", "Deployment"}
    assert {each.name for each in observed.kept} == {"train-0", "spare"}
    assert observed.unread == ()
    assert found.inputs is None


def test_order_in_the_file_changes_nothing_but_order() -> None:
    one, other = (read_cluster(NAME, listed(*each)).observed for each in (OBJECTS, OBJECTS[::-1]))
    assert {each.kind for each in one.policies} == {each.kind for each in other.policies}
    assert one.nodes == other.nodes


def test_a_kind_that_the_file_has_nothing_of_was_not_read() -> None:
    observed = read_cluster(NAME, listed(an("Node"), an("Pod"))).observed
    assert unread(observed) == {each.title for each in RESOURCE_KINDS if each.kind not in {"Node", "Pod"}}
    assert "--complete" in observed.why_unread("nodepools.karpenter.sh")
    assert observed.absent == ()


def test_a_complete_file_has_all_that_there_is() -> None:
    observed = read_cluster(NAME, listed(an("Node")), complete=True).observed
    assert observed.unread == ()


def test_an_empty_list_is_no_empty_cluster() -> None:
    assert len(read_cluster(NAME, listed()).observed.unread) == len(RESOURCE_KINDS)


def test_an_older_version_of_a_kind_is_not_read_even_when_the_file_is_complete() -> None:
    older = {**an("NodePool"), "apiVersion": "karpenter.sh/v1beta1"}
    observed = read_cluster(NAME, listed(older), complete=True).observed
    assert observed.node_pools == ()
    assert "karpenter.sh/v1beta1" in observed.why_unread("nodepools.karpenter.sh")


def test_only_what_we_made_is_kept_whole() -> None:
    observed = read_cluster(NAME, listed(an("Pod"), an("PodDisruptionBudget"), kept_pod())).observed
    assert [each.kind for each in observed.kept] == ["Pod"]
    assert "pods labelled gpu.scheduling/managed=true" not in unread(observed)


def test_leases_of_other_namespaces_are_left_out() -> None:
    elsewhere = {**an("Lease"), "metadata": metadata("gpu-1", "kube-node-lease")}
    observed = read_cluster(NAME, listed(elsewhere, an("Lease"))).observed
    assert [each.metadata.name for each in observed.leases] == ["leader"]
    assert read_cluster(NAME, listed(elsewhere)).observed.leases == ()
    assert "leases.coordination.k8s.io" not in unread(read_cluster(NAME, listed(elsewhere)).observed)


def test_a_cluster_is_told_by_its_namespace_kube_system() -> None:
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(each)} for each in ("a", "kube-system", "z")
    ]
    found = read_cluster(NAME, listed(*spaces))
    assert found.observed.cluster_uid == "uid-of-kube-system"
    assert [each.name for each in found.observed.namespaces] == ["a", "kube-system", "z"]
    assert "namespaces" not in unread(found.observed)
    assert read_cluster(NAME, listed(an("Node"))).observed.cluster_uid == ""


def test_kinds_that_are_not_looked_at_are_counted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("s", "a"), "data": {"password": SECRET}}
    widget = {"apiVersion": "example.com/v1", "kind": "Node", "metadata": metadata("w")}
    found = read_cluster(NAME, listed(secret, secret, widget))
    assert "ignored: 1 Node.example.com, 2 Secret" in found.notes
    assert any("2 Secret" in note for note in found.notes)
    assert SECRET not in repr(found)


def test_an_object_that_stands_in_the_file_twice_is_one() -> None:
    assert len(read_cluster(NAME, listed(an("Pod"), an("Pod"))).observed.pods) == 1


def test_a_file_of_kubectl_does_not_say_when_it_was_seen() -> None:
    found = read_cluster(NAME, listed(an("Node")))
    assert found.observed.seen_at == 0
    assert "time unknown" in found.notes[0]


def test_pods_of_one_namespace_make_one_ask_whether_the_others_are_missing() -> None:
    elsewhere = {**an("Pod"), "metadata": metadata("other", "team-b")}
    systems = {**an("Pod"), "metadata": metadata("proxy", "kube-system")}
    budget = {**an("PodDisruptionBudget"), "metadata": metadata("other", "team-b")}
    assert any("-A" in note for note in read_cluster(NAME, listed(an("Node"), an("Pod"))).notes)
    for fine in ([an("Pod"), elsewhere], [an("Pod"), budget], [systems], [an("Node")]):
        assert not any("-A" in note for note in read_cluster(NAME, listed(*fine)).notes), fine


def test_the_answer_of_an_api_server_is_a_list_too() -> None:
    bare = {key: value for key, value in an("NodePool").items() if key not in {"kind", "apiVersion"}}
    observed = read_cluster(NAME, listed(bare, kind="NodePoolList", version="karpenter.sh/v1")).observed
    assert [each.api_version for each in observed.node_pools] == ["karpenter.sh/v1"]


@pytest.mark.parametrize("how", ["yaml", "utf-16", "utf-8-sig", "one line"])
def test_it_does_not_matter_how_the_list_was_written(how: str) -> None:
    content = listed(*OBJECTS)
    text = content.decode()
    other = {
        "yaml": lambda: yaml.safe_dump(json.loads(text)).encode(),
        "utf-16": lambda: text.encode("utf-16"),
        "utf-8-sig": lambda: text.encode("utf-8-sig"),
        "one line": lambda: json.dumps(json.loads(text)).encode(),
    }[how]()
    assert read_cluster(NAME, other) == read_cluster(NAME, content)


def test_a_dump_is_the_inputs_that_were_dumped() -> None:
    content = written()
    found = read_cluster(NAME, content)
    assert found.inputs == dump.read(content)
    assert found.inputs is not None
    assert (found.observed, found.inputs.now) == (found.inputs.observed, Instant(5))
    assert found.notes == ()


def test_a_dump_that_jq_laid_out_anew_is_still_whole() -> None:
    content = written()
    assert read_cluster(NAME, json.dumps(json.loads(content), indent=2).encode()) == read_cluster(NAME, content)


BROKEN_NODE = b"""{"kind": "List", "items": [
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": ["b"]}, "status": 7}
]}"""

BROKEN: dict[str, tuple[bytes, str, str, int]] = {
    "nothing": (b" \n", "empty", "dump --kubectl", 0),
    "cut off": (b'{"kind": "List",\n "items": [\n  {"kind": ', "the JSON is truncated", "write it again", 3),
    "a list and a word": (listed() + b"\n7", "not a list", "dump --kubectl", 0),
    "a list and half of one": (listed() + b'\n{"kind": "List",\n', "the JSON is truncated", "write it again", 9),
    "no json": (listed(an("Node")).replace(b'"items"', b"items", 1), "malformed", "kubectl", 3),
    "no text": (b'{"kind": "\xff\xfe"}', "UTF-8", "UTF-8", 0),
    "no yaml": (b"a: b\nc: [\n", "neither JSON nor YAML", "kubectl", 3),
    "words": (b"Error from server (Forbidden): pods is forbidden", "no list of objects", "kubectl", 0),
    "a page": (b"<html></html>", "not a list", "kubectl", 0),
    "aliases": (b"a: &a [1]\nb: *a\n", "aliases", "kubectl", 2),
    "a depth": (b"[" * 100_000, "not a list", "kubectl", 0),
    "one object": (json.dumps(an("Node")).encode(), "one Node", "kubectl", 0),
    "something else": (b'{"a": 1}', "no list", "kubectl", 0),
    "an array": (b"[]", "not a list", "kubectl", 0),
    "a broken node without a name": (BROKEN_NODE, "a Node without a name: Expected", "kubectl", 3),
    "an item that is none": (b'{"kind": "List", "items": [\n7]}', "not a Kubernetes object", "kubectl", 2),
    "an older program": (b'{"format": "reconciler-dump/3"}', "format 3", "version of reconciler that wrote", 0),
    "a foreign format": (b'{"format": "other/1"}', "other/1", "reconciler dump", 0),
    "no digest": (b'{"format": "reconciler-dump/1", "inputs": {}}', "digest", "use the original file", 0),
}


@pytest.mark.parametrize(("content", "sentence", "remedy", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_one_clear_error(content: bytes, sentence: str, remedy: str, line: int) -> None:
    with pytest.raises(ClusterFileError, match=re.escape(sentence)) as caught:
        read_cluster(NAME, content)
    assert str(caught.value).startswith(f"{NAME}:")
    assert remedy in caught.value.remedy
    assert (caught.value.file, caught.value.line) == (NAME, line)


def test_a_dump_that_was_changed_is_refused() -> None:
    changed = written().replace(b'"production"', b'"staging"')
    with pytest.raises(ClusterFileError, match="does not match its digest") as caught:
        read_cluster(NAME, changed)
    assert "use the original file" in caught.value.remedy
