"""`reconciler rbac` prints the rights that some policies need, or any, or people."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.main import main
from reconciler.schema.generated import RIGHTS
from reconciler.schema.rights.page import reading_page
from tests.lab.places import REPOSITORY
from tests.unit.schema.rights.stage import (
    NODE_POOLS,
    POOL,
    STATUSES,
    WISHED,
    Rules,
    acted,
    granted,
    kept,
    looked_at,
    told_where,
    written,
)


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


# The PriorityClass of smart pods is for all pools that are acted on.
OF_A_POOL = NODE_POOLS | written(("", "scheduling.k8s.io", "priorityclasses"))


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
    assert acted(told(capsys, "policies", "--write").out) == OF_A_POOL
    assert acted(told(capsys, "policies", "--write", "-e", "prod").out) == OF_A_POOL
    base = told(capsys, "policies", "--write", "-e", "base")
    assert acted(base.out) == set()
    assert base.err == "note: no pool is in mode Enforce: these rights only cover the controller's own objects\n"


def test_the_command_asks_for_statuses_where_policies_will_be_custom_resources(
    policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = granted(told(capsys, "policies", "--write", "--resources").out)
    assert there == kept() | OF_A_POOL | STATUSES
    assert granted(told(capsys, "--write").out) >= STATUSES | told_where()


@pytest.mark.parametrize(
    ("person", "may"),
    [
        ("approver", {("", "gpu.scheduling", "changeapprovals", "create")}),
        ("freezer", {("", "", "nodes", "patch"), ("", "karpenter.sh", "nodepools", "patch")}),
        ("releaser", {("", "", "pods", "delete"), ("gpu-system", "coordination.k8s.io", "leases", "create")}),
    ],
)
def test_people_have_roles_of_their_own_which_are_bound_to_nobody(
    person: str, may: Rules, capsys: pytest.CaptureFixture[str]
) -> None:
    page = told(capsys, "--person", person).out
    documents = list(yaml.safe_load_all(page))
    assert {each["kind"] for each in documents} <= {"Role", "ClusterRole"}
    assert {each["metadata"]["name"] for each in documents} == {f"reconciler-{person}"}
    rules = {
        (each["metadata"].get("namespace", ""), group, resource, verb)
        for each in documents
        for rule in each["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert may <= rules


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("policies", "-e", "stage"), "found: base, prod"),
        (("-e", "prod"), "name their PATHS, or --repo"),
        (("policies", "--person", "freezer"), "--person cannot be combined with --write, --resources"),
        (("policies", "--resources"), "--resources requires --write"),
        (("--namespace", "Gpu_System"), '"Gpu_System" is not a namespace: write at most 63 lower case letters'),
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
