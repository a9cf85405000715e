"""A document is a Markdown file taken apart: its links, anchors and code, each with its line."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.tidy.tree import Tree

HTML_LINK = re.compile(r"""\b(?:href|src)=["']([^"']+)["']""")
HTML_ANCHOR = re.compile(r"""\b(?:id|name)=["']([^"']+)["']""")


@dataclass(frozen=True)
class Document:
    """One Markdown file: (line, text) pairs for links, code in backticks, and lines of fenced code."""

    path: str
    links: tuple[tuple[int, str], ...]
    anchors: frozenset[str]
    spans: tuple[tuple[int, str], ...]
    fenced: tuple[tuple[int, str], ...]


def documents(tree: Tree) -> list[Document]:
    """All Markdown files of a tree."""
    return [_document(path, tree.text(path)) for path in tree.paths if path.endswith(".md")]


@cache
def _document(path: str, text: str) -> Document:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    placed = [one for token in tokens for one in _placed(token)]
    return Document(
        path,
        links=tuple((line, link) for line, token in placed for link in _links(token)),
        anchors=frozenset(_headings(tokens)) | {name for _, token in placed for name in _names(token)},
        spans=tuple((line, token.content) for line, token in placed if token.type == "code_inline"),
        fenced=tuple(
            (line + number, content)
            for line, token in placed
            if token.type == "fence"
            for number, content in enumerate(token.content.splitlines(), start=1)
        ),
    )


def _placed(token: Token) -> Iterator[tuple[int, Token]]:
    """A block and what it holds, each with its line: within a block, a line ends where a break is."""
    line = token.map[0] + 1 if token.map else 1
    yield line, token
    for child in token.children or ():
        yield line, child
        line += child.type in {"softbreak", "hardbreak"}


def _links(token: Token) -> list[str]:
    if token.type in {"html_block", "html_inline"}:
        return HTML_LINK.findall(token.content)
    target = token.attrGet("href") or token.attrGet("src")
    return [str(target)] if target else []


def _names(token: Token) -> list[str]:
    return HTML_ANCHOR.findall(token.content) if token.type in {"html_block", "html_inline"} else []


def _headings(tokens: list[Token]) -> Iterator[str]:
    """The anchors that GitHub gives headings: a heading said again gets -1, -2 ..."""
    seen: Counter[str] = Counter()
    for opening, inline in pairwise(tokens):
        if opening.type != "heading_open":
            continue
        said = "".join(child.content for child in inline.children or () if child.type in {"text", "code_inline"})
        slug = re.sub(r"[^\w\- ]", "", said.lower()).replace(" ", "-")
        yield f"{slug}-{seen[slug]}" if seen[slug] else slug
        seen[slug] += 1
