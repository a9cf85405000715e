"""A file that nothing reaches is dead: nobody can tell whether it still holds."""

import ast
import re
import tomllib
from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.imports import dotted, imports
from tests.tidy.tree import Tree

COMMANDS = "reconciler/cli/commands"
REMEDY = "delete it, or use it"

# Read by a tool that finds them by these very names.
FOUND_BY_CONVENTION = frozenset({"__init__.py", "__main__.py", "conftest.py", "py.typed", ".gitignore"})

# Built and proven before the part that will call them; who builds that takes the line out.
AWAITED = {
    "reconciler/fleet/questions.py": "the drain planner",
}


def modules_of_the_product_are_imported(tree: Tree) -> list[Finding]:
    """Modules under reconciler/ that only tests import, or nothing; a package of one file is a module."""
    used = _used(tree, [path for path in tree.python() if not path.startswith("tests/")])
    found = []
    for path in tree.python("reconciler"):
        folder = str(PurePosixPath(path).parent)
        is_package = path.endswith("/__init__.py")
        # Where a package has modules, each answers for itself, and the package lives as long as they do.
        if path.endswith("/__main__.py") or (is_package and len(tree.python(folder)) > 1):
            continue
        if path in used or path in AWAITED or (folder == COMMANDS and _is_called_by_name(tree, path)):
            continue
        found.append(Finding(path, 1, f"Nothing outside the tests imports {dotted(path)}", REMEDY))
    return found


def modules_of_the_tests_are_used(tree: Tree) -> list[Finding]:
    """Modules under tests/ that pytest does not collect and no other file imports or names."""
    used = _used(tree, tree.python())
    return [
        Finding(path, 1, f"No test imports {dotted(path)}", f"{REMEDY}; tests stand in test_*.py")
        for path in tree.python("tests")
        if path not in used
        and (name := PurePosixPath(path).name) not in FOUND_BY_CONVENTION
        and not name.startswith("test_")
    ]


def other_files_are_named_somewhere(tree: Tree) -> list[Finding]:
    """Templates, cases, recordings: neither the file nor a folder of nothing but such files is named anywhere."""
    with_python = {str(parent) for path in tree.python() for parent in PurePosixPath(path).parents}
    found = []
    for path in tree.under("reconciler", "tests"):
        place = PurePosixPath(path)
        if place.suffix == ".py" or place.name in FOUND_BY_CONVENTION:
            continue
        # A folder that holds Python is named for its own sake; only one of like files is walked as a whole.
        walked = [parent.name for parent in place.parents if str(parent) not in with_python and parent.name]
        if not any(tree.mentions.get(name, set()) - {path} for name in (place.name, *walked)):
            found.append(Finding(path, 1, "No file names this one, nor a folder that it would be found in", REMEDY))
    return found


def _used(tree: Tree, users: list[str]) -> set[str]:
    """The modules that the users import, and those they name in a string or that the project's settings name."""
    modules = {dotted(path): path for path in tree.python()}
    by_word = {word: path for name, path in modules.items() for word in (name, path)}
    used = {by_word[word] for word in _called_by_tools(tree) if word in by_word}
    for user in users:
        asked = {name for one in imports(tree, user) for name in (one.source, one.target)}
        # A child process or a plugin is named in a string: `-m reconciler.x`, "tests/x.py", "module:function".
        named = {node.value.partition(":")[0] for node in tree.nodes(user, ast.Constant) if isinstance(node.value, str)}
        used |= {by_word[name] for name in asked | named if by_word.get(name, user) != user}
    return used


def _called_by_tools(tree: Tree) -> list[str]:
    """Words of the settings that name what is run: an entry point, a plugin of pytest, a recipe."""
    settings = tomllib.loads(tree.text("pyproject.toml"))
    # Not the contracts of import-linter: they name modules without using them.
    running = [settings.get("project"), settings.get("tool", {}).get("pytest"), tree.text("Makefile")]
    return [word.strip(".") for word in re.findall(r"[\w./]+", str(running))]


def _is_called_by_name(tree: Tree, path: str) -> bool:
    """Whether the command line names the command that stands in the file."""
    name = PurePosixPath(path).stem
    command = re.compile(rf"\b(?:{name}|{name.replace('_', '-')})\b")
    return any(command.search(tree.text(other)) for other in tree.python("reconciler/cli") if other != path)
