"""Input files besides policies: files that a person or a scenario names, and built-in defaults."""

import json
import os
import stat
import sys
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from operator import attrgetter
from pathlib import Path
from typing import Any

import reconciler
from reconciler.model.bundle import Text
from reconciler.sources.directory import CALLED

# --- Reads a named file: a regular file or standard input, up to a limit.
#
# Reading a FIFO could block forever, and a device never ends. Limits are far above the needs of real fleets: a cluster
# of 20,000 nodes and 400,000 pods takes 3 GB as kubectl prints it.

MOST_CLUSTER_BYTES = 8 << 30
MOST_PLAN_BYTES = 1 << 30  # a saved plan, or its report
MOST_TRACE_BYTES = 1 << 30
MOST_SCENARIO_BYTES = 16 << 20
MOST_MANIFEST_BYTES = 64 << 20

STDIN = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_OPENING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK_BYTES = 1 << 20


class UnfitFile(OSError):
    """A file that cannot be read, with a sentence and a remedy."""

    def __init__(self, name: str, sentence: str, remedy: str) -> None:
        super().__init__(0, sentence, name)
        self.sentence = sentence
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.filename}: {self.sentence}\n  remedy: {self.remedy}"


def read_file(path: Path, most_bytes: int) -> bytes:
    """The complete content. Raises UnfitFile, or another OSError."""
    name = path.as_posix()
    if name in STDIN:
        return _read_stdin(most_bytes)
    descriptor = os.open(path, _OPENING)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            called = next((word for is_kind, word in _CALLED if is_kind(status.st_mode)), "not a regular file")
            remedy = "name a regular file; --cluster - reads standard input"
            raise UnfitFile(name, f"it is {called}; only regular files are read", remedy)
        if status.st_size > most_bytes:
            raise _too_large(name, most_bytes)
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(status.st_size)  # in one buffer: the file may have gigabytes
        more = _read_up_to(descriptor, name, most_bytes - len(content))
        return content + more if more else content
    finally:
        os.close(descriptor)


_CALLED = ((stat.S_ISDIR, "a folder"), *CALLED)


def _read_stdin(most_bytes: int) -> bytes:
    """Content of a pipe or a redirected file. A device such as /dev/zero or a terminal has no end."""
    name = "standard input"
    try:
        descriptor = sys.stdin.fileno()
        status = os.fstat(descriptor)
    except (AttributeError, ValueError, OSError):
        raise UnfitFile(name, "it is closed", "pipe data in, or name a file") from None
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise UnfitFile(name, "it is a device, not a pipe or a file", "pipe data in, or name a file")
    return _read_up_to(descriptor, name, most_bytes)


def _read_up_to(descriptor: int, name: str, most_bytes: int) -> bytes:
    """Reads to the end: a file may grow during the read, and a pipe has no size."""
    content = bytearray()
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        content += chunk
        if len(content) > most_bytes:
            raise _too_large(name, most_bytes)
    return bytes(content)


def _too_large(name: str, most_bytes: int) -> UnfitFile:
    most = f"{most_bytes >> 30} GiB" if most_bytes >= 1 << 30 else f"{most_bytes >> 20} MiB"
    return UnfitFile(name, f"it is larger than the limit of {most}", "check that this is the intended file")


# --- Built-in files: default templates of pools, Karpenter's schema of a NodePool, and the demo.
#
# A wheel has them in its package; a checkout has them at its root, and the schema where the build wrote it.

SCHEMA = "karpenter.sh_nodepools.json"
NOT_CHECKED = (
    "NodePools were not checked against Karpenter's schema, which this installation does not include; "
    "in a checkout, run `python build_karpenter_schema.py`"
)


@cache
def default_templates() -> tuple[Text, ...]:
    """The templates, sorted by path."""
    return tuple(sorted(_texts(_folder("templates"), "", ".j2"), key=attrgetter("path")))


def default_template(path: str) -> str:
    return next(text.content.decode() for text in default_templates() if text.path == path)


@cache
def example_policies() -> tuple[Text, ...]:
    """The example fleet, sorted by path: policies/base/guard.yaml."""
    return tuple(sorted(_texts(_folder("policies"), "policies/", ".yaml"), key=attrgetter("path")))


def demo_scenario(name: str = "scenario.yaml") -> Text:
    return Text(name, (_folder("examples") / "demo" / name).read_bytes())


@cache
def karpenter_schema() -> Any | None:
    """The OpenAPI schema of Karpenter's NodePool; if None, print NOT_CHECKED once."""
    file = _package() / SCHEMA
    return json.loads(file.read_bytes())["schema"] if file.is_file() else None


def _package() -> Traversable:
    return resources.files(reconciler) / "defaults"


def _folder(name: str) -> Traversable:
    packaged = _package() / name
    return packaged if packaged.is_dir() else Path(reconciler.__file__).parents[1] / name


def _texts(folder: Traversable, prefix: str, ending: str) -> list[Text]:
    texts = []
    for entry in folder.iterdir():
        if entry.is_dir():
            texts += _texts(entry, f"{prefix}{entry.name}/", ending)
        elif entry.name.endswith(ending):
            texts.append(Text(prefix + entry.name, entry.read_bytes()))
    return texts
