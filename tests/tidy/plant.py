"""A plant is a small tree with faults put in on purpose, and the findings that a rule must make of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.rules import Rule
from tests.tidy.tree import Tree


@dataclass(frozen=True)
class Plant:
    """Files by path, and how each finding begins, sorted; a tree without fault has none."""

    rule: Rule
    shows: str
    files: Mapping[str, str]
    finds: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule.__name__}: {self.shows}"


def write(root: Path, files: Mapping[str, str]) -> Tree:
    """Put the files under the root; one that opens as a script may be run."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        if text.startswith("#!"):
            place.chmod(0o755)
    return Tree(root)
