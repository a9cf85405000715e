"""A tree is the files that git knows of under one root, each read and parsed once."""

import ast
import fnmatch
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

# What `git ls-files` calls everything that a commit of the tree as it stands would hold.
GIT_LISTING = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")

MENTIONED = re.compile(r"[\w.-]+")


class Tree:
    """The files under a root; a planted copy is looked at just as the repository is."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._texts: dict[str, str] = {}
        self._modules: dict[str, ast.Module] = {}
        self._nodes: dict[str, dict[type[ast.AST], list[ast.AST]]] = {}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every file, sorted, relative to the root, with forward slashes."""
        listed = _listed_by_git(self.root)
        found = _walked(self.root, self.ignored_folders) if listed is None else listed
        return tuple(sorted(path for path in found if (self.root / path).is_file()))

    def holds(self, path: str) -> bool:
        """Whether there is such a file or folder, relative to the root."""
        return path in self._files or path in self.folders

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self.paths)

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file, at any depth; the root itself is the dot."""
        return frozenset(str(parent) for path in self.paths for parent in PurePosixPath(path).parents)

    @cached_property
    def ignored_folders(self) -> tuple[str, ...]:
        """The folders that .gitignore names, as patterns without their slashes."""
        lines = (line.strip() for line in self.text(".gitignore").splitlines())
        return tuple(line.strip("/") for line in lines if line.endswith("/") and not line.startswith(("#", "!")))

    def text(self, path: str) -> str:
        """What a file says; empty for one that is no text, or has gone since it was listed."""
        if path not in self._texts:
            try:
                content = (self.root / path).read_bytes().decode()
            except (OSError, UnicodeDecodeError):
                content = ""
            self._texts[path] = "" if "\0" in content else content
        return self._texts[path]

    def lines(self, path: str) -> Iterator[tuple[int, str]]:
        """The lines of a file, numbered from one."""
        return enumerate(self.text(path).splitlines(), start=1)

    def under(self, *folders: str) -> list[str]:
        """The files below any of the folders."""
        prefixes = tuple(f"{folder}/" for folder in folders)
        return [path for path in self.paths if path.startswith(prefixes)]

    def python(self, *folders: str) -> list[str]:
        """The Python files below any of the folders; without folders, all of them."""
        return [path for path in (self.under(*folders) if folders else self.paths) if path.endswith(".py")]

    def module(self, path: str) -> ast.Module:
        """A Python file, parsed."""
        if path not in self._modules:
            self._modules[path] = ast.parse(self.text(path), filename=path)
        return self._modules[path]

    def nodes(self, path: str, kind: type[Node]) -> list[Node]:
        """The nodes of exactly one kind in a Python file."""
        if path not in self._nodes:
            by_kind: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
            for node in ast.walk(self.module(path)):
                by_kind[type(node)].append(node)
            self._nodes[path] = by_kind
        return [node for node in self._nodes[path].get(kind, ()) if isinstance(node, kind)]

    @cached_property
    def mentions(self) -> dict[str, set[str]]:
        """Every word of every text file, to the files it stands in; file names count as one word."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in self.paths:
            for word in set(MENTIONED.findall(self.text(path))):
                found[word.strip(".-")].add(path)
        return found


def _listed_by_git(root: Path) -> list[str] | None:
    """What git lists, or nothing where the root is not the top of a work tree."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top.strip()).resolve() != root:
        return None
    listing = _git(root, *GIT_LISTING)
    return None if listing is None else [path for path in listing.split("\0") if path]


def _git(root: Path, *arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    # A hook sets GIT_DIR and GIT_INDEX_FILE, and would have a planted copy answer for the repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run([git, *arguments], cwd=root, env=environment, capture_output=True, check=False)
    return done.stdout.decode() if done.returncode == 0 else None


def is_ignored(path: str, ignored: tuple[str, ...]) -> bool:
    """Whether .gitignore names the folder, by its name or by its path."""
    return any(fnmatch.fnmatch(text, pattern) for pattern in ignored for text in (path, PurePosixPath(path).name))


def _walked(root: Path, ignored: tuple[str, ...]) -> list[str]:
    found = []
    for folder, names, files in os.walk(root):
        here = Path(folder).relative_to(root)
        names[:] = [name for name in names if name != ".git" and not is_ignored((here / name).as_posix(), ignored)]
        found += [(here / file).as_posix() for file in files]
    return found
