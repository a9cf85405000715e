"""Data never travels in prose: programs read the facts of reasons, and sentences are made where a person reads them."""

import ast
from collections.abc import Iterator

from tests.tidy.finding import Finding
from tests.tidy.imports import imports
from tests.tidy.tree import Tree

SENTENCES = "reconciler.report.sentences"
OBSTACLES = "reconciler.plan.capacity.words"
MADE = frozenset(
    {
        *(f"{SENTENCES}.{name}" for name in ("sentence", "guarded_sentence", "words_of", "fact_words")),
        *(f"{OBSTACLES}.{name}" for name in ("obstacle_words", "obstacles_words")),
    }
)
READS = frozenset({"startswith", "endswith", "find", "index", "partition", "rpartition", "split", "removeprefix"})
READS |= {"removesuffix", "replace", "strip", "rstrip", "lstrip"}
SAY_LATE = "keep the Reason, and let reconciler/report make its sentence"
BY_FACTS = "match the class of reason.facts, and read its fields"
BY_DATA = "decide by the class of the facts, or by a code or a field of the problem"
BY_CLASS = "compare the class: isinstance(reason.facts, ...)"


def programs_read_facts_and_no_prose(tree: Tree) -> list[Finding]:
    """Sentences that are made off the edges, facts that are read by a name, sentences and codes that are compared."""
    return [
        finding
        for path in tree.python("reconciler")
        for finding in (*_made(tree, path), *_facts(tree, path), *_compared(tree, path))
    ]


def _is_edge(path: str) -> bool:
    """Where sentences are made for people: reports, the demo, and the words of facts that sentences are made of."""
    is_words = path.startswith("reconciler/plan/") and path.endswith("words.py")
    return is_words or path.startswith(("reconciler/report/", "reconciler/cli/demo.py")) or _is_own(path)


def _is_own(path: str) -> bool:
    return path == f"{SENTENCES.replace('.', '/')}.py"


def _made(tree: Tree, path: str) -> Iterator[Finding]:
    """Whoever imports what makes sentences makes some."""
    if _is_edge(path):
        return
    for each in imports(tree, path):
        if each.target in {*MADE, SENTENCES, OBSTACLES}:
            yield Finding(path, each.line, "A sentence is made away from the edge", SAY_LATE)


def _facts(tree: Tree, path: str) -> Iterator[Finding]:
    for node in tree.nodes(path, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fact" and node.args:
            yield Finding(path, node.lineno, "A fact is read by a name", BY_FACTS)


def _compared(tree: Tree, path: str) -> Iterator[Finding]:
    words = frozenset(each.bound for each in imports(tree, path) if each.target in MADE)
    for node in tree.nodes(path, ast.Compare):
        sides = (node.left, *node.comparators)
        if any(_is_sentence(side, words) for side in sides):
            yield Finding(path, node.lineno, "A sentence is compared", BY_DATA)
        if any(_is_code(side) for side in sides):
            yield Finding(path, node.lineno, "The code of a reason is compared", BY_CLASS)
    for call in tree.nodes(path, ast.Call):
        # Where sentences are made, one becomes a part of another.
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in READS or _is_own(path):
            continue
        if _is_sentence(call.func.value, words):
            yield Finding(path, call.lineno, "A sentence is read", BY_DATA)


def _is_sentence(node: ast.expr, words: frozenset[str]) -> bool:
    is_made = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in words
    return is_made or (isinstance(node, ast.Attribute) and node.attr == "sentence")


def _is_code(node: ast.expr) -> bool:
    """reason.code, decision.reason.code, old_reason.code."""
    if not (isinstance(node, ast.Attribute) and node.attr == "code"):
        return False
    of = node.value
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return name.endswith("reason")
