"""The rules of thumb hold in this tree, and each of them finds what breaks it in a planted one."""

import ast
from pathlib import Path

import pytest

from tests.tidy.plant import Plant, write
from tests.tidy.plants import PLANTS
from tests.tidy.rules import RULES, Rule
from tests.tidy.tree import Tree

# One for all tests: each file is read and parsed once.
THIS = Tree(Path(__file__).parents[2])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_tree_keeps_the_rule(rule: Rule) -> None:
    findings = sorted(rule(THIS))
    if findings:
        pytest.fail("\n".join(map(str, findings)), pytrace=False)


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_the_rule_finds_what_is_planted_and_nothing_else(plant: Plant, tmp_path: Path) -> None:
    found = [str(finding) for finding in sorted(plant.rule(write(tmp_path, plant.files)))]
    beginnings = [said[: len(begins)] for said, begins in zip(found, plant.finds, strict=False)]
    assert (beginnings, len(found)) == (list(plant.finds), len(plant.finds)), "\n" + "\n".join(found)
    assert all(". Remedy: " in said for said in found)


def test_every_rule_that_is_written_is_in_force() -> None:
    written = {
        node.name
        for path in THIS.python("tests/tidy/rules")
        for node in THIS.nodes(path, ast.FunctionDef)
        if not node.name.startswith("_")
    }
    assert written == {rule.__name__ for rule in RULES}


def test_every_rule_is_shown_to_fail_and_to_pass() -> None:
    failing = {plant.rule for plant in PLANTS if plant.finds}
    passing = {plant.rule for plant in PLANTS if not plant.finds}
    assert [rule.__name__ for rule in RULES if rule not in failing & passing] == []


def test_the_tree_is_the_whole_repository() -> None:
    assert "tests/tidy/test_rules.py" in THIS.paths
    assert "pyproject.toml" in THIS.paths
    assert not any(path.startswith((".venv/", ".git/")) for path in THIS.paths)


def test_outside_git_folders_that_gitignore_names_are_left_out(tmp_path: Path) -> None:
    files = {".gitignore": "cache/\n*.eggs/\na/out/\n", "a/kept.py": "", "b/out/kept": "", "a/out/x": ""}
    tree = write(tmp_path, {**files, "a/cache/x": "", "my.eggs/x": ""})
    assert tree.paths == (".gitignore", "a/kept.py", "b/out/kept")
