"""Knowledge points one way, and every folder has its place in the order."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import PurePosixPath
from typing import Any

from tests.tidy.finding import Finding
from tests.tidy.imports import dotted, imports, reaches
from tests.tidy.rules.purity import PURE
from tests.tidy.tree import Tree

SETTINGS = "pyproject.toml"
PURITY_CONTRACT = "Pure folders touch nothing outside"

# Folders of reconciler/plan/ that are no planners: what all of them may ask, and what may ask all of them.
COMMON_GROUND = frozenset({"feature", "guards", "karpenter", "capacity", "nodes", "sums"})
SPEAKS_FOR_ALL = frozenset({"release", "explain", "holds", "impact"})

ORDER = (
    "__main__ > cli > controller > simulate > loop | kube | sources | serve | agent > ports > report > "
    "schema | importer > policy | plan | protocol > fleet > model"
)
ONE_WAY = f"knowledge points one way: move what is shared down, or take it as an argument; the order is {ORDER}"

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
REFUSED = re.compile(r"^(\S+ is not allowed to import \S+):\n\n-\s+(\S+) -> (\S+) \(l\.(\d+)", re.MULTILINE)


def imports_keep_their_contracts(tree: Tree) -> list[Finding]:
    """What import-linter refuses in this very tree, whatever package of the name is installed."""
    # -c puts the folder it runs in first on the path; the wide terminal keeps a chain of imports on one line.
    environment = {**os.environ, "PYTHONPATH": str(tree.root), "COLUMNS": "10000", "NO_COLOR": "1"}
    command = [sys.executable, "-c", LINT, "--no-cache", "--no-logo", "--config", SETTINGS]
    done = subprocess.run(command, cwd=tree.root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    said = done.stdout + done.stderr
    paths = {dotted(path): path for path in tree.python()}
    links = [
        Finding(paths.get(importer, SETTINGS), int(line), f"{rule}: {importer} imports {imported}", ONE_WAY)
        for rule, importer, imported, line in REFUSED.findall(said)
    ]
    return links or [Finding(SETTINGS, 1, f"import-linter refuses:\n{said.strip()}\n", ONE_WAY)]


def every_folder_has_a_place(tree: Tree) -> list[Finding]:
    """Modules and packages right under reconciler/ that the layers do not name."""
    named = {
        name.strip("() ")
        for contract in _contracts(tree)
        for layer in contract.get("layers", ())
        for name in re.split(r"[|:]", layer)
    }
    tops = {"/".join(path.split("/")[:2]) for path in tree.python("reconciler")} - {"reconciler/__init__.py"}
    return [
        Finding(
            top,
            1,
            f"{PurePosixPath(top).stem} has no place among the layers of {SETTINGS}",
            f"give it one; the order is {ORDER}",
        )
        for top in sorted(tops)
        if PurePosixPath(top).stem not in named
    ]


def pure_folders_are_under_contract(tree: Tree) -> list[Finding]:
    """Pure folders that exist and that the contract about them leaves out."""
    sources = {
        module
        for contract in _contracts(tree)
        if contract.get("type") == "forbidden" and contract.get("name") == PURITY_CONTRACT
        for module in contract.get("source_modules", ())
    }
    return [
        Finding(
            SETTINGS,
            _line(tree, PURITY_CONTRACT),
            f"The contract '{PURITY_CONTRACT}' leaves out {dotted(folder)}",
            "add it to source_modules of that contract (type forbidden)",
        )
        for folder in PURE
        if folder in tree.folders and dotted(folder) not in sources
    ]


def planners_do_not_know_one_another(tree: Tree) -> list[Finding]:
    """Imports from one folder of reconciler/plan/ into another."""
    folders = {path.split("/")[2] for path in tree.python("reconciler/plan") if path.count("/") > 2}
    planners = sorted(folders - SPEAKS_FOR_ALL)
    return [
        Finding(
            path,
            one.line,
            f"The planner {planner} imports the planner {other}",
            "move what both need up into reconciler/plan/, as eviction.py is, or hand it on in the draft",
        )
        for planner in planners
        for path in tree.python(f"reconciler/plan/{planner}")
        for one in imports(tree, path)
        for other in planners
        if other not in {planner, *COMMON_GROUND} and reaches(one.target, f"reconciler.plan.{other}")
    ]


def _contracts(tree: Tree) -> list[dict[str, Any]]:
    settings = tomllib.loads(tree.text(SETTINGS))
    contracts: list[dict[str, Any]] = settings.get("tool", {}).get("importlinter", {}).get("contracts", [])
    return contracts


def _line(tree: Tree, words: str) -> int:
    return next((number for number, line in tree.lines(SETTINGS) if words in line), 1)
