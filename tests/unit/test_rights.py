"""`reconciler rbac` prints what is looked at and written with some policies, all of it and nothing besides."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reconciler.cli.main import main
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.kinds import SEEN
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired, Manifest
from reconciler.model.origin import Origin
from reconciler.policy.manifests.check import KINDS
from reconciler.policy.published.generated import RIGHTS
from reconciler.policy.published.rights.page import reading_page, writing_page
from reconciler.policy.published.rights.reading import reading_rights
from reconciler.policy.resolve import resolve
from tests.lab.places import REPOSITORY

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: {name}}}
spec:
  mode: {mode}
  adopt: {adopt}
  suspend: {suspend}
  devices: {{model: a100, count: 8, memory: 40Gi}}
  instanceTypes: [{{name: p4d.24xlarge}}]
  nodeClassRef: {{group: {group}, kind: {kind}, name: gpu}}
"""
WISHED = {
    "name": "a100",
    "mode": "Enforce",
    "adopt": "false",
    "suspend": "false",
    "group": "karpenter.k8s.aws",
    "kind": "EC2NodeClass",
}
Rules = set[tuple[str, str, str, str]]  # namespace, group, resource, verb
YIELDS = (("NodePool", ""), ("Pod", "default"), ("PodDisruptionBudget", "team-a"), ("PriorityClass", ""))
LOOKS = ("get", "list", "watch")


def wish(yields: tuple[tuple[str, str], ...] = (("NodePool", ""),), **changed: str) -> Desired:
    """A pool, and the kinds and namespaces of what its template yields."""
    text = POOL.format_map(WISHED | changed)
    (found,) = resolve(Bundle("r", (Text("a.yaml", text.encode()),))).wishes
    assert found.pools
    here = Origin("t", 1)
    manifests = (Manifest(kind, namespace, "x", "{}", found.pools[0].name, here, here) for kind, namespace in yields)
    return msgspec.structs.replace(found, manifests=tuple(manifests))


def granted(page: str) -> Rules:
    """What a page's roles grant; each is bound to the reconciler in the same place."""
    documents = [each for each in yaml.safe_load_all(page) if each]
    roles = [each for each in documents if each["kind"] in {"Role", "ClusterRole"}]
    bound = [(each["kind"], each["metadata"]) for each in documents if each["kind"].endswith("Binding")]
    assert [(f"{each['kind']}Binding", each["metadata"]) for each in roles] == bound
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def looked_at(*node_classes: str, namespace: str = "gpu-system") -> Rules:
    """What an Observed takes; of node classes only these kinds."""
    kinds = [seen for seen in SEEN if seen.field != "node_classes" or seen.kind in node_classes]
    return {
        (namespace if seen.own_namespace else "", seen.group, seen.plural, verb) for seen in kinds for verb in LOOKS
    }


def test_without_policies_every_kind_that_is_looked_at_can_be_looked_at_and_none_besides() -> None:
    assert granted(reading_page(())) == looked_at("EC2NodeClass", "KWOKNodeClass")


def test_of_node_classes_only_those_that_pools_name() -> None:
    assert granted(reading_page([wish()])) == looked_at("EC2NodeClass")
    both = [wish(), wish(group="karpenter.kwok.sh", kind="KWOKNodeClass")]
    assert granted(reading_page(both)) == looked_at("EC2NodeClass", "KWOKNodeClass")
    assert granted(reading_page([Desired("r", "base")])) == looked_at(), "there are policies, and they name none"


def test_the_plural_of_a_node_class_that_is_not_known_is_a_guess_that_says_so() -> None:
    page = reading_page([wish(group="example.com", kind="MetalNodeClass")])
    extra = granted(page) - looked_at()
    assert extra == {("", "example.com", "metalnodeclasses", verb) for verb in LOOKS}
    assert "metalnodeclasses is guessed from MetalNodeClass" in page.replace("\n  # ", " ")


def test_no_right_to_look_is_granted_twice() -> None:
    rights = Counter(
        (right.namespace, right.group, each) for right in reading_rights((), "x") for each in right.resources
    )
    assert set(rights.values()) == {1}


def test_the_namespace_is_where_the_account_and_its_leases_are() -> None:
    page = reading_page([wish()], "elsewhere")
    assert granted(page) == looked_at("EC2NodeClass", namespace="elsewhere")
    assert "gpu-system" not in page


def test_all_namespaces_are_looked_at_since_pods_choose_among_them_by_label() -> None:
    rules = [rule for each in yaml.safe_load_all(reading_page(())) for rule in each.get("rules", ())]
    (namespaces,) = (rule for rule in rules if "namespaces" in rule["resources"])
    assert (namespaces["resources"], tuple(namespaces["verbs"])) == (["namespaces"], LOOKS)
    assert not any("resourceNames" in rule for rule in rules)


@pytest.mark.parametrize("page", [reading_page(()), writing_page(())], ids=["reading", "writing"])
def test_each_rule_says_why_it_is_needed(page: str) -> None:
    lines = page.splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    assert rules
    assert all(lines[number - 1].startswith("  # ") for number in rules)


def test_every_field_of_what_is_seen_has_its_reason() -> None:
    told = {seen.field for seen in SEEN}
    assert told <= {field.name for field in msgspec.structs.fields(Observed)}
    assert all(right.why for right in reading_rights((), "x"))


def written(*resources: tuple[str, str, str]) -> Rules:
    return {
        (namespace, group, resource, verb)
        for namespace, group, resource in resources
        for verb in ("create", "delete", "patch")
    }


def test_what_templates_yield_for_pools_that_are_enforced_may_be_written_where_it_goes() -> None:
    assert granted(writing_page([wish(YIELDS)])) == written(
        ("", "karpenter.sh", "nodepools"),
        ("", "scheduling.k8s.io", "priorityclasses"),
        ("team-a", "policy", "poddisruptionbudgets"),
        ("default", "", "pods"),
    )
    assert granted(writing_page([wish()])) == written(("", "karpenter.sh", "nodepools"))


def test_nodes_are_labelled_only_for_a_pool_that_adopts() -> None:
    assert granted(writing_page([wish(adopt="true")])) - granted(writing_page([wish()])) == {("", "", "nodes", "patch")}


@pytest.mark.parametrize("changed", [{"mode": "Observe"}, {"suspend": "true"}])
def test_a_pool_that_is_not_acted_on_asks_for_nothing_to_be_written(changed: dict[str, str]) -> None:
    asked = wish(YIELDS, **changed, adopt="true")
    assert writing_page([asked]) == ""
    assert granted(writing_page([asked, wish(name="l4")])) == written(("", "karpenter.sh", "nodepools"))


def test_without_policies_pods_are_written_in_the_reconciler_s_own_namespace_at_most() -> None:
    rules = granted(writing_page((), "here"))
    assert rules == {("", "", "nodes", "patch")} | written(
        ("", "karpenter.sh", "nodepools"),
        ("", "scheduling.k8s.io", "priorityclasses"),
        ("here", "policy", "poddisruptionbudgets"),
        ("here", "", "pods"),
    )


def test_every_kind_that_templates_may_yield_can_be_written() -> None:
    for kind in KINDS:
        rules = granted(writing_page([wish(((kind, "x" if KINDS[kind].namespaced else ""),))]))
        assert {verb for *_, verb in rules} == {"create", "delete", "patch"}, kind


def test_looking_grants_no_write_and_nothing_grants_secrets_or_everything() -> None:
    looking, writing = granted(reading_page(())), granted(writing_page(()))
    assert {verb for *_, verb in looking} <= set(LOOKS)
    assert not {"*", "secrets"} & {word for rule in looking | writing for word in rule}


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with policies/pool.yaml and an overlay, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    base = tmp_path / "policies" / "pool.yaml"
    base.parent.mkdir()
    base.write_text(POOL.format_map(WISHED | {"mode": "Observe"}))
    overlay = tmp_path / "policies" / "overlays" / "prod" / "pool.yaml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text("apiVersion: gpu.scheduling/v1\nkind: GpuPool\nmetadata: {name: a100}\nspec: {mode: Enforce}\n")
    return tmp_path / "policies"


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert main(["rbac", *arguments]) == code
    return capsys.readouterr()


def test_the_command_prints_for_paths_and_without_them_for_any_policies(
    policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert granted(told(capsys, "policies").out) == looked_at("EC2NodeClass")
    general = told(capsys).out
    assert general == reading_page(())
    assert (REPOSITORY / RIGHTS).read_text().endswith(general)


def test_an_environment_asks_for_its_own_rights_only(policies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodepools = written(("", "karpenter.sh", "nodepools"))
    assert granted(told(capsys, "policies", "--write").out) == nodepools
    assert granted(told(capsys, "policies", "--write", "-e", "prod").out) == nodepools
    base = told(capsys, "policies", "--write", "-e", "base")
    assert (base.out, base.err) == ("", "note: no pool is in mode Enforce, so that nothing needs to be written\n")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("policies", "-e", "stage"), "there are: base, prod"),
        (("-e", "prod"), "name their PATHS, or --repo"),
        (("--namespace", "Gpu_System"), '"Gpu_System" is no namespace: write at most 63 lower case letters'),
    ],
)
def test_wrong_usage_says_what_to_do(
    policies: Path, arguments: tuple[str, ...], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = told(capsys, *arguments, code=64)
    assert wrong.out == ""
    assert remedy in " ".join(wrong.err.split())


def test_policies_with_problems_get_no_rights(policies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (policies / "pool.yaml").write_text(POOL.format_map(WISHED | {"mode": "Sometimes"}))
    wrong = told(capsys, "policies", code=3)
    assert wrong.out == ""
    assert "error[RC" in wrong.err


def test_the_same_policies_give_the_same_bytes(policies: Path) -> None:
    pages = set()
    for seed in ("0", "1"):
        command = [sys.executable, "-m", "reconciler", "rbac", "policies"]
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        pages.add(done.stdout)
    assert len(pages) == 1
