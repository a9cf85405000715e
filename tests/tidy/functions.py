"""Functions and methods, with the names people call them by."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.tree import Tree

Def = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """One function or method, wherever it is defined."""

    path: str
    name: str
    node: Def
    in_class: bool

    @property
    def line(self) -> int:
        """Where `def` stands, below the decorators."""
        return self.node.lineno

    @property
    def length(self) -> int:
        """Lines from `def` to the end."""
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1


def functions(tree: Tree, *folders: str) -> Iterator[Function]:
    """All functions of the Python files below the folders."""
    for path in tree.python(*folders):
        yield from _within(path, "", tree.module(path))


def _within(path: str, prefix: str, node: ast.AST) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, Def | ast.ClassDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
        if isinstance(child, Def):
            yield Function(path, name, child, isinstance(node, ast.ClassDef))
        # Expressions hold no definitions, and are most of a tree.
        if not isinstance(child, ast.expr):
            yield from _within(path, name, child)
