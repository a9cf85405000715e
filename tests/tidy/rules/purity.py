"""The pure folders take everything from their arguments: no clock, socket, file, thread, chance or talk."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.tidy.finding import Finding
from tests.tidy.imports import imports, reaches
from tests.tidy.tree import Tree

PURE = tuple(
    f"reconciler/{name}" for name in ("model", "policy", "schema", "importer", "fleet", "plan", "protocol", "report")
)


@dataclass(frozen=True)
class Ban:
    """Names that a pure folder may neither import nor reach, and what to do instead."""

    touches: str
    names: tuple[str, ...]
    builtins: tuple[str, ...]
    remedy: str


# First match wins. What is not here is judged by the layers: a pure folder can't reach our own impure ones.
BANS = (
    Ban(
        "the clock",
        (
            "time",
            "sched",
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
        ),
        (),
        "take `now: Instant` from inputs",
    ),
    Ban(
        "chance",
        ("random", "secrets", "numpy.random", "uuid.uuid1", "uuid.uuid4", "uuid.getnode"),
        (),
        "derive it from the inputs, the way uuid.uuid5 derives a name",
    ),
    Ban(
        "the network",
        ("socket", "socketserver", "ssl", "http", "urllib.request", "urllib3", "select", "selectors"),
        (),
        "let kube/, serve/ or sources/ ask, and take the answer as a value",
    ),
    Ban(
        "files",
        ("os", "io", "pathlib", "tempfile", "shutil", "glob", "mmap"),
        ("open",),
        "let sources/ or cli/ read and write, and take or return the text as a value",
    ),
    Ban(
        "threads and processes",
        ("threading", "_thread", "subprocess", "asyncio", "multiprocessing", "concurrent", "signal"),
        (),
        "stay a plain function; loop.py and controller.py own what runs beside it",
    ),
    Ban(
        "the terminal or a log",
        ("logging",),
        ("print", "input"),
        "return a Decision with its Reason, or a Problem, and let the shell say it",
    ),
    Ban(
        "the interpreter",
        ("sys", "importlib", "builtins", "ctypes"),
        ("__import__", "eval", "exec", "globals"),
        "import by name at the top of the module, and take what differs as an argument",
    ),
)


def pure_folders_import_nothing_of_the_world(tree: Tree) -> list[Finding]:
    """Imports, at the top or in a function, of what a pure folder may not know."""
    return [
        _finding(path, one.line, f"imports {one.target}", ban)
        for path in tree.python(*PURE)
        for one in imports(tree, path)
        if (ban := _ban(one.target))
    ]


def pure_folders_reach_for_nothing_of_the_world(tree: Tree) -> list[Finding]:
    """Names that an innocent import leads to, such as `datetime.now`, and builtins; called or only mentioned."""
    found = []
    for path in tree.python(*PURE):
        bound = {one.bound: one.meaning for one in imports(tree, path) if not _ban(one.target)}
        found += [
            _finding(path, line, f"reaches for {name}", ban)
            for line, name in _reached(tree, path, bound)
            if (ban := _ban(name))
        ]
        found += [
            _finding(path, node.lineno, f"reaches for {node.id}()", ban)
            for node in tree.nodes(path, ast.Name)
            for ban in BANS
            if node.id in ban.builtins and node.id not in bound
        ]
    return found


def _reached(tree: Tree, path: str, bound: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Dotted names, told by what their first part was imported as."""
    for node in tree.nodes(path, ast.Attribute):
        parts = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in bound:
            yield node.lineno, ".".join([bound[value.id], *reversed(parts)])


def _ban(name: str) -> Ban | None:
    return next((ban for ban in BANS if any(reaches(name, banned) for banned in ban.names)), None)


def _finding(path: str, line: int, deed: str, ban: Ban) -> Finding:
    return Finding(path, line, f"A pure folder touches {ban.touches}: it {deed}", ban.remedy)
