"""Names say what a thing is; a name that fits anything gathers everything."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

# Singular; a plural is refused with it.
SAYS_NOTHING = frozenset({"manager", "helper", "util", "common", "base", "data", "info", "handler"})
SAYS_NOTHING_ALONE = frozenset({"state"})

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def names_say_what_a_thing_is(tree: Tree) -> list[Finding]:
    """Files, folders and classes named by a word that fits anything."""
    return [
        Finding(
            path,
            line,
            f"The {kind} {name} is named {word}, which fits anything",
            "name it by what it is or decides, in the words of the project",
        )
        for path, line, kind, name in _named(tree)
        if (word := _empty_word(name))
    ]


def _named(tree: Tree) -> Iterator[tuple[str, int, str, str]]:
    """What has a name, with its place."""
    named = {
        str(place): "file" if str(place) == path else "folder"
        for path in tree.under("reconciler", "tests")
        # There, names are those that users write: `base` is what the folder of all environments is called.
        if not path.startswith("tests/policies/")
        for place in (PurePosixPath(path), *PurePosixPath(path).parents)
    }
    for place, kind in sorted(named.items()):
        yield place, 1, kind, PurePosixPath(place).name.partition(".")[0]
    for path in tree.python("reconciler", "tests"):
        for node in tree.nodes(path, ast.ClassDef):
            yield path, node.lineno, "class", node.name


def _empty_word(name: str) -> str:
    words = [match[0].lower() for match in WORD.finditer(name)]
    if len(words) == 1 and words[0] in SAYS_NOTHING_ALONE:
        return words[0]
    return next((word for word in words if {word, word.removesuffix("s")} & SAYS_NOTHING), "")
