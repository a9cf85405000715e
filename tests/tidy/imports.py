"""An import is one dotted name that a module asks for, wherever in the module it asks."""

import ast
from dataclasses import dataclass

from tests.tidy.tree import Tree


@dataclass(frozen=True)
class Import:
    """One imported name: `from a import b as c` has the source `a`, the target `a.b` and is bound to `c`."""

    source: str
    target: str
    bound: str
    meaning: str
    line: int


def dotted(path: str) -> str:
    """The name by which a Python file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(tree: Tree, path: str) -> list[Import]:
    """All imports of a module, those inside functions too, in the order of their lines."""
    found = []
    for node in tree.nodes(path, ast.Import):
        for alias in node.names:
            top = alias.name.partition(".")[0]
            meaning = alias.name if alias.asname else top
            found.append(Import(alias.name, alias.name, alias.asname or top, meaning, node.lineno))
    for origin in tree.nodes(path, ast.ImportFrom):
        source = _source(path, origin)
        for alias in origin.names:
            target = f"{source}.{alias.name}"
            found.append(Import(source, target, alias.asname or alias.name, target, origin.lineno))
    return sorted(found, key=lambda one: (one.line, one.target))


def _source(path: str, node: ast.ImportFrom) -> str:
    """The absolute name that `from ... import` starts at: one dot is the package the module is in."""
    if not node.level:
        return node.module or ""
    package = path.split("/")[: -node.level]
    return ".".join([*package, *([node.module] if node.module else [])])


def reaches(name: str, banned: str) -> bool:
    """Whether a dotted name is the banned one, or lies beneath it."""
    return name == banned or name.startswith(f"{banned}.")
