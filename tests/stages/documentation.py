"""Command blocks of the documentation: ```sh blocks, as the lines that a reader types one after the other."""

import re
from collections.abc import Iterator

import msgspec

from tests.lab.places import REPOSITORY

PAGES = tuple(
    sorted(
        path.relative_to(REPOSITORY).as_posix()
        for pattern in ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/*/README.md")
        for path in REPOSITORY.glob(pattern)
    )
)
_FENCE = re.compile(r"^```(\w*)$")
_EXIT_CODE = re.compile(r"# exit code (\d+)\b")


class Block(msgspec.Struct, frozen=True):
    """A fenced block: where it is, what kind of text it is, and its lines."""

    page: str
    line: int
    language: str
    heading: str
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


class Command(msgspec.Struct, frozen=True):
    """A line to type, with the exit code that its comment names, or 0."""

    text: str
    exit_code: int


def blocks(page: str) -> Iterator[Block]:
    """All fenced blocks of a page, in order."""
    heading = ""
    opened: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate((REPOSITORY / page).read_text().splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and opened is None:
            opened, lines = (number, fence[1]), []
        elif fence and opened is not None:
            yield Block(page, opened[0], opened[1], heading, tuple(lines))
            opened = None
        elif opened is not None:
            lines.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    assert opened is None, f"{page}: the block in line {opened} does not end"


def commands(block: Block) -> Iterator[Command]:
    """A line that ends with a backslash goes on in the next one."""
    text = "\n".join(block.lines).replace("\\\n", " ")
    for line in filter(None, map(str.strip, text.splitlines())):
        if not line.startswith("#"):
            code = _EXIT_CODE.search(line)
            yield Command(line, int(code[1]) if code else 0)


def first_block(page: str, language: str, containing: str) -> str:
    """The text of the first block of that language with such a text in it."""
    found = (block for block in blocks(page) if block.language == language and containing in "\n".join(block.lines))
    return "\n".join(next(found).lines) + "\n"
