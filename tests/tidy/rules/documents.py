"""Documents point only at what is there: links, anchors, paths and make targets."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tests.tidy.document import Document, documents
from tests.tidy.finding import Finding
from tests.tidy.makefile import targets
from tests.tidy.tree import Tree, is_ignored

REMEDY = "mend it, or take it out"

OUR_PATH = re.compile(r"(?:reconciler|tests|deploy|docs|examples|templates|policies|schemas)/\S*")
# What stands for many paths, or for one the reader makes up, cannot be looked up.
PATTERN = re.compile(r"[*?<>{}\[\]$|…]|\.\.\.|\b[A-Z][A-Z_]+\b(?!\.md)")
# `path:12`, `path::test` and `path#anchor` are places within a file.
PLACE_WITHIN = re.compile(r"(?:::|:\d|#).*$")

MAKE = re.compile(r"(?:^|[;&|$(])\s*make((?:\s+[\w=.-]+)+)")
PROMISING = ("README.md", "CONTRIBUTING.md")

# A list of what changed names what is no longer there.
LOOKS_BACK = frozenset({"CHANGELOG.md"})


def links_lead_somewhere(tree: Tree) -> list[Finding]:
    """Relative links, and anchors here and in other documents."""
    anchors = {document.path: document.anchors for document in documents(tree)}
    return [
        Finding(document.path, line, f"The link {target} leads to {gap}", REMEDY)
        for document in documents(tree)
        for line, target in document.links
        if (gap := _gap(tree, document, target, anchors))
    ]


def paths_in_documents_exist(tree: Tree) -> list[Finding]:
    """Paths of this repository in backticks; what git ignores may be absent."""
    return [
        Finding(document.path, line, f"There is no {path}", REMEDY)
        for document in documents(tree)
        if document.path not in LOOKS_BACK
        for line, code in document.spans
        if OUR_PATH.fullmatch(code) and not PATTERN.search(code)
        if not tree.holds(path := PLACE_WITHIN.sub("", code).rstrip("/"))
        if not any(is_ignored(parent, tree.ignored_folders) for parent in _with_parents(path))
    ]


def make_targets_in_documents_exist(tree: Tree) -> list[Finding]:
    """Targets that the README or CONTRIBUTING tells people to make."""
    known = targets(tree)
    return [
        Finding(document.path, line, f"The Makefile has no target {name}", REMEDY)
        for document in documents(tree)
        if document.path in PROMISING
        for line, code in (*document.spans, *document.fenced)
        for name in _made(code)
        if name not in known
    ]


def _gap(tree: Tree, document: Document, target: str, anchors: dict[str, frozenset[str]]) -> str:
    """What is missing where a link leads; empty when nothing is, or when it leads out of the repository."""
    link = urlsplit(target)
    if link.scheme or link.netloc:
        return ""
    path = document.path
    if link.path:
        start = "" if link.path.startswith("/") else posixpath.dirname(document.path)
        path = posixpath.normpath(posixpath.join(start, unquote(link.path).lstrip("/")))
    if not tree.holds(path):
        return f"{path}, which does not exist"
    if link.fragment and path in anchors and link.fragment.lower() not in anchors[path]:
        return f"a heading that {path} does not have"
    return ""


def _with_parents(path: str) -> list[str]:
    return [path, *(str(parent) for parent in PurePosixPath(path).parents)]


def _made(code: str) -> Iterator[str]:
    for command in MAKE.finditer(code.partition("#")[0]):
        yield from (word for word in command[1].split() if "=" not in word and not word.startswith("-"))
