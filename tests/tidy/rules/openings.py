"""A module opens with a sentence that says what it is for."""

import ast
import re

from tests.tidy.finding import Finding
from tests.tidy.tree import Tree

SENTENCE_END = re.compile(r"""([.!?])["'`)*]*(?:\s|$)""")


def modules_open_with_a_sentence(tree: Tree) -> list[Finding]:
    """Python files, packages included, without a docstring whose first sentence ends with a full stop."""
    found = []
    for path in tree.python():
        if not tree.text(path).strip():
            continue
        opening = (ast.get_docstring(tree.module(path)) or "").partition("\n\n")[0]
        end = SENTENCE_END.search(opening)
        if end is None or end[1] != ".":
            rule = "The docstring's first sentence has no full stop" if opening else "The module has no docstring"
            found.append(Finding(path, 1, rule, "open with one sentence that says what the module is for"))
    return found
