"""What is made of NodePools that somebody else wrote: cases with the files, notes and omissions that are expected."""

import difflib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reconciler.controller.policies import check_bundle
from reconciler.importer.imported import TEMPLATES, Imported, Skipped, differences, imported
from reconciler.importer.policy_text import template_text
from reconciler.importer.portion import UnmappedFields
from reconciler.kube.cluster_file import read_cluster
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.sources.input_file import default_template
from tests import folders

TEMPLATE = default_template("node_pool.yaml.j2")
DEFAULT = TEMPLATE[TEMPLATE.index("apiVersion:") :]
FOLDER = folders.CASES / "importing"
CASES = sorted(FOLDER.glob("*.yaml"))
Plain = dict[str, Any]


class Literal(str):
    """A text of several lines, written as such."""


class Dumper(yaml.SafeDumper):
    """Writes cases as people would."""


Dumper.add_representer(
    Literal, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)


def observed(case: Plain) -> Observed:
    listed = {"apiVersion": "v1", "kind": "List", "items": case["given"]}
    return read_cluster("case", json.dumps(listed).encode(), complete=True).observed


def shown(text: Text) -> str:
    """A policy as it is; a template by the lines in which it differs from the default one."""
    content = text.content.decode()
    if not text.path.startswith(TEMPLATES):
        return content
    compared = difflib.ndiff(DEFAULT.splitlines(), content[content.index("apiVersion:") :].splitlines())
    return "".join(f"{line}\n" for line in compared if line[0] in "+-")


def expectation(found: Imported) -> Plain:
    return {
        "files": {text.path: Literal(shown(text)) for text in found.files},
        "notes": [f"{note.file}: {note.sentence}; {note.remedy}" for note in found.notes],
        "skipped": {each.name: each.why for each in found.skipped},
    }


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text()
    case: Plain = yaml.safe_load(text)
    found = expectation(imported(observed(case), TEMPLATE, case.get("names", ())))
    if pytestconfig.getoption("--record"):
        given, _, _ = text.partition("\nexpect:")
        told = yaml.dump({"expect": found}, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1_000)
        path.write_text(f"{given.rstrip()}\n\n{told}")
    assert found == yaml.safe_load(path.read_text())["expect"]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_a_case_yields_is_valid_and_says_what_was_there_unless_a_note_says_that_something_is_not_known(
    path: Path,
) -> None:
    case: Plain = yaml.safe_load(path.read_text())
    cluster = observed(case)
    found = imported(cluster, TEMPLATE, case.get("names", ()))
    checkup = check_bundle(found.bundle)
    refused = {problem.file for problem in checkup.resolved.problems}
    assert refused == {
        note.file
        for note in found.notes
        if "RC307" in note.sentence or ("unknown" in note.sentence and "unknown without" not in note.sentence)
    }
    live = {pool.name: pool for pool in cluster.node_pools}
    for manifest in (each for wish in checkup.resolved.wishes for each in wish.manifests):
        assert differences(json.loads(manifest.body), live[manifest.name]) == ()


def test_a_template_that_adds_nothing_is_the_default_template() -> None:
    assert template_text(UnmappedFields(), TEMPLATE) == DEFAULT


SPEC: Plain = {
    "template": {
        "metadata": {"labels": {"team": "research"}, "annotations": {"example.com/note": "{{ pool.name }}"}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]}],
            "startupTaints": [{"key": "example.com/cni", "effect": "NoExecute"}],
            "expireAfter": "720h",
        },
    },
    "weight": 10,
}
NODE: Plain = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "a",
        "labels": {
            "karpenter.sh/nodepool": "a100",
            "karpenter.sh/capacity-type": "spot",
            "node.kubernetes.io/instance-type": "p4d.24xlarge",
            "karpenter.k8s.aws/instance-gpu-memory": "40960",
        },
    },
}


def pool(**changes: Any) -> Plain:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "a100"},
        "spec": SPEC | changes,
    }


def edited(bundle: Bundle, before: str, after: str) -> Plain:
    """The NodePool that the policies yield once a person has edited them."""
    policies = tuple(Text(each.path, each.content.replace(before.encode(), after.encode())) for each in bundle.policies)
    assert policies != bundle.policies
    checkup = check_bundle(msgspec.structs.replace(bundle, policies=policies))
    assert checkup.resolved.problems == ()
    ((manifest,),) = (wish.manifests for wish in checkup.resolved.wishes)
    spec: Plain = json.loads(manifest.body)["spec"]
    return spec


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("team: research", "team: serving", "spec.template.metadata.labels.team"),
        ("expireAfter: 720h", "expireAfter: 48h", "spec.template.spec.expireAfter"),
        ("name: gpu}", "name: gpu}\n  limits: {nodes: 8}", "spec.limits.nodes"),
        ("name: gpu}", "name: gpu}\n  terminationGracePeriod: 1h", "spec.template.spec.terminationGracePeriod"),
        ("name: gpu}", "name: gpu}\n  taints: [{key: a, effect: NoSchedule}]", "spec.template.spec.taints"),
        ("{name: p4d.24xlarge}", "{name: p4de.24xlarge}", "spec.template.spec.requirements"),
        ("consolidateAfter: 0s", "consolidateAfter: 1h", "spec.disruption.consolidateAfter"),
        ("consolidateAfter: 0s", "consolidateAfter: 0s, budgets: [{nodes: '3'}]", "spec.disruption.budgets"),
    ],
)
def test_what_stays_in_the_policy_still_has_effect_beside_what_its_own_template_keeps(
    before: str, after: str, field: str
) -> None:
    cluster = observed({"given": [pool(), NODE]})
    spec = edited(imported(cluster, TEMPLATE).bundle, before, after)
    assert differences({"spec": spec}, cluster.node_pools[0]) == (field,)


def test_where_the_node_pool_asks_for_no_capacity_type_none_is_asked_for_and_those_alive_are_written_down() -> None:
    found = imported(observed({"given": [pool(), NODE]}), TEMPLATE)
    (policy,) = (text.content.decode() for text in found.files)
    assert "  capacityTypes: [spot] " in policy
    assert "- {key: karpenter.sh/capacity-type, operator: Exists}" in policy or (
        "requirements: [{key: karpenter.sh/capacity-type, operator: Exists}]" in policy
    )
    (manifest,) = check_bundle(found.bundle).resolved.wishes[0].manifests
    assert "capacity-type" not in manifest.body


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("spec.weight", {"weight": 11}),
        ("spec.limits.cpu", {"limits": {"cpu": "8"}}),
        ("spec.disruption.budgets", {"disruption": {"consolidateAfter": "0s", "budgets": []}}),
        ("spec.disruption.consolidateAfter", {"disruption": {"consolidateAfter": "1s"}}),
        ("spec.template.metadata.annotations.example.com/note", {"template": {"spec": SPEC["template"]["spec"]}}),
        ("spec.template.metadata.labels.team", {"template": {"spec": SPEC["template"]["spec"]}}),
        ("spec.other", {"other": {"of": "a later version"}}),
    ],
)
def test_a_difference_is_named_by_its_field(field: str, change: Plain) -> None:
    (live,) = observed({"given": [pool()]}).node_pools
    assert field in differences({"spec": SPEC | change}, live)


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {}},
        {"disruption": {"consolidateAfter": "0m", "budgets": [{"nodes": "10%"}]}},
        {"template": SPEC["template"] | {"spec": SPEC["template"]["spec"] | {"expireAfter": "30h690h", "taints": []}}},
    ],
)
def test_what_means_the_same_is_no_difference(change: Plain) -> None:
    (live,) = observed({"given": [pool()]}).node_pools
    assert differences({"spec": SPEC | change}, live) == ()


def test_labels_of_ours_count_only_where_the_live_node_pool_has_them() -> None:
    ours = {"labels": {"team": "research", "gpu.scheduling/managed": "true"}}
    labelled = SPEC | {"template": SPEC["template"] | {"metadata": SPEC["template"]["metadata"] | ours}}
    (without, having) = observed({"given": [pool(), {**pool(**labelled), "metadata": {"name": "b"}}]}).node_pools
    assert differences({"spec": labelled}, without) == ()
    assert differences({"spec": SPEC}, having) == ("spec.template.metadata.labels.gpu.scheduling/managed",)


def test_names_as_long_as_a_gpu_pool_s_are_imported_and_longer_ones_left_alone() -> None:
    names = ["a" * 63, "a" * 63 + ".b"]
    found = imported(observed({"given": [{**pool(), "metadata": {"name": name}} for name in names]}), TEMPLATE)
    assert {text.path.partition("/")[2].removeprefix("base/").partition(".")[0] for text in found.files} == {names[0]}
    assert found.skipped == (Skipped(names[1], "its name exceeds the 63 characters of a GpuPool name"),)
    assert {problem.code for problem in check_bundle(found.bundle).resolved.problems} == {"RC106"}  # UNKNOWN memory


def test_labels_that_contradict_what_is_known_of_a_type_are_told() -> None:
    node = {**NODE, "metadata": {"name": "a", "labels": {**NODE["metadata"]["labels"], "nvidia.com/gpu.count": "4"}}}
    found = imported(observed({"given": [pool(), node]}), TEMPLATE)
    assert "GPU labels of its nodes contradict p4d.24xlarge" in found.notes[0].sentence
    assert {problem.code for problem in check_bundle(found.bundle).resolved.problems} == {"RC307"}


def sized(name: str, capacity: Plain, allocatable: Plain) -> Plain:
    """A node of its own size."""
    labels = {**NODE["metadata"]["labels"], "nvidia.com/gpu.memory": "40960"}
    status = {"capacity": capacity, "allocatable": allocatable}
    return {**NODE, "metadata": {"name": name, "labels": labels}, "status": status}


def test_what_a_node_has_is_the_larger_of_its_capacity_and_of_what_is_allocatable() -> None:
    """A provider may tell as capacity only what the pods asked for."""
    poor = sized("a", {"cpu": "8", "nvidia.com/gpu": "8"}, {"cpu": "95900m", "memory": "1151Gi", "nvidia.com/gpu": "8"})
    policy = imported(observed({"given": [pool(), poor]}), TEMPLATE).files[0].content.decode()
    assert "capacity: {cpu: 95, memory: 1151Gi}" in policy
    rich = sized("a", {"cpu": "96", "memory": "1152Gi"}, {"cpu": "95900m", "memory": "1100Gi"})
    policy = imported(observed({"given": [pool(), rich]}), TEMPLATE).files[0].content.decode()
    assert "capacity: {cpu: 96, memory: 1152Gi}" in policy


def test_of_several_nodes_of_a_type_the_least_counts() -> None:
    """A pod that is planned onto a node to come must fit whichever machine comes."""
    sizes = [{"cpu": "96", "memory": "1100Gi"}, {"cpu": "90", "memory": "1152Gi"}]
    nodes = [sized(f"n{number}", each, {}) for number, each in enumerate(sizes)]
    policy = imported(observed({"given": [pool(), *nodes]}), TEMPLATE).files[0].content.decode()
    assert "capacity: {cpu: 90, memory: 1100Gi}" in policy


@pytest.mark.parametrize(
    ("disruption", "told"),
    [
        ({"consolidateAfter": "0s"}, "# Karpenter alone decides which nodes are removed, until"),
        ({"consolidateAfter": "Never"}, "# Empty nodes stay, until"),
        ({"consolidateAfter": "0s", "budgets": [{"nodes": "0"}]}, "# Empty nodes stay, until"),
    ],
)
def test_who_decides_which_nodes_go_follows_from_its_budgets(disruption: Plain, told: str) -> None:
    made = pool()
    made["spec"] = {**made["spec"], "disruption": {"consolidationPolicy": "WhenEmpty", **disruption}}
    policy = imported(observed({"given": [made, NODE]}), TEMPLATE).files[0].content.decode()
    assert policy.splitlines()[-1].startswith(told)


def test_our_startup_taint_counts_only_where_the_live_node_pool_has_it() -> None:
    ours, theirs = {"key": "gpu.scheduling/arriving", "effect": "NoSchedule"}, {"key": "cni", "effect": "NoExecute"}

    def held(*taints: Plain) -> Plain:
        node = SPEC["template"]["spec"] | {"startupTaints": list(taints)}
        return SPEC | {"template": SPEC["template"] | {"spec": node}}

    without, having = (observed({"given": [pool(**held(*each))]}).node_pools[0] for each in ([theirs], [theirs, ours]))
    assert differences({"spec": held(ours, theirs)}, without) == ()
    assert differences({"spec": held(ours)}, without) == ("spec.template.spec.startupTaints",)
    assert differences({"spec": held(theirs)}, having) == ("spec.template.spec.startupTaints",)
