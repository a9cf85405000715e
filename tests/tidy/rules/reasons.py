"""Data never travels in prose: programs read the facts of reasons, and sentences are made where a person reads them."""

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator

from tests.tidy.finding import Finding
from tests.tidy.imports import imports
from tests.tidy.tree import Tree

# What is left of before, by kind and file, with how often: the figures may only go down.
LISTED = "tests/tidy/facts_in_prose.toml"
EXPLAIN = "reconciler.report.sentences"
WORDS = frozenset({f"{EXPLAIN}.sentence", f"{EXPLAIN}.words_of"})
# Where sentences are made for people.
EDGES = ("reconciler/report/",)
READS = frozenset({"startswith", "endswith", "find", "index", "partition", "rpartition", "split", "removeprefix"})
READS |= {"removesuffix", "replace", "strip", "rstrip", "lstrip"}
REMEDIES = {
    "sentences": "keep the Reason, and let reconciler/report make its sentence",
    "facts": "match the class of reason.facts, and read its fields",
    "comparisons": "decide by the class of the facts, or by a code or a field of the problem",
    "codes": "compare the class: isinstance(reason.facts, ...)",
}
Found = Iterator[tuple[str, int, str]]  # kind, line, what


def programs_read_facts_and_no_prose(tree: Tree) -> list[Finding]:
    """Sentences that are made off the edges, facts that are read by a name, sentences and codes that are compared."""
    listed: dict[str, dict[str, int]] = tomllib.loads(tree.text(LISTED))
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for path in tree.python("reconciler"):
        for kind, line, what in (*_sentences(tree, path), *_facts(tree, path), *_compared(tree, path)):
            found.setdefault((kind, path), []).append((line, what))
    allowed = Counter({(kind, path): times for kind, files in listed.items() for path, times in files.items()})
    more = [
        Finding(path, line, what, REMEDIES[kind])
        for (kind, path), several in found.items()
        if len(several) > allowed[kind, path]
        for line, what in several
    ]
    return more + [
        _stale(tree, kind, path, len(found.get((kind, path), ())))
        for (kind, path), times in allowed.items()
        if len(found.get((kind, path), ())) < times
    ]


def _sentences(tree: Tree, path: str) -> Found:
    if path.startswith(EDGES):
        return
    words = _words(tree, path)
    for node in tree.nodes(path, ast.Call):
        if _is_made(node, words):
            yield "sentences", node.lineno, "A sentence is made away from the edge"


def _facts(tree: Tree, path: str) -> Found:
    for node in tree.nodes(path, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fact" and node.args:
            yield "facts", node.lineno, "A fact is read by a name"


def _compared(tree: Tree, path: str) -> Found:
    words = _words(tree, path)
    for node in tree.nodes(path, ast.Compare):
        sides = (node.left, *node.comparators)
        if any(_is_sentence(side, words) for side in sides):
            yield "comparisons", node.lineno, "A sentence is compared"
        if any(_is_code(side) for side in sides):
            yield "codes", node.lineno, "The code of a reason is compared"
    for call in tree.nodes(path, ast.Call):
        is_read = isinstance(call.func, ast.Attribute) and call.func.attr in READS
        is_own = path == "reconciler/report/sentences.py"  # a sentence as a part of another
        if is_read and not is_own and isinstance(call.func, ast.Attribute) and _is_sentence(call.func.value, words):
            yield "comparisons", call.lineno, "A sentence is read"


def _words(tree: Tree, path: str) -> frozenset[str]:
    """The names by which a module makes sentences."""
    return frozenset(each.bound for each in imports(tree, path) if each.target in WORDS)


def _is_made(node: ast.expr, words: frozenset[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in words


def _is_sentence(node: ast.expr, words: frozenset[str]) -> bool:
    return _is_made(node, words) or (isinstance(node, ast.Attribute) and node.attr == "sentence")


def _is_code(node: ast.expr) -> bool:
    """reason.code, decision.reason.code, old_reason.code."""
    if not (isinstance(node, ast.Attribute) and node.attr == "code"):
        return False
    of = node.value
    name = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
    return name.endswith("reason")


def _stale(tree: Tree, kind: str, path: str, times: int) -> Finding:
    line = next((number for number, text in tree.lines(LISTED) if f'"{path}"' in text), 1)
    remedy = f"lower the figure to {times}" if times else "take the entry out"
    return Finding(LISTED, line, f"{path} has fewer {kind} than are listed", remedy)
