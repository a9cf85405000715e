"""Imports GitPython so that the library never learns of a git executable: no property of the library can start one.

On import GitPython runs `git version` with the whole inherited environment, in the current folder. Whatever a
repository or a hook put there would have a say. The class that runs git is kept from looking for a program instead;
`git.Repo` with `GitDB` needs none. Whoever runs git here does so through `process`.
"""

import importlib
import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

_RUNS_GIT = "git.cmd"


@cache
def load() -> ModuleType:
    """The package `git`: a tenth of a second, which only those who read a repository pay."""
    logging.getLogger("git").addHandler(logging.NullHandler())  # what a commit says badly is nobody's message
    if "git" in sys.modules:
        return sys.modules["git"]
    finder = _WithoutExecutable()
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module("git")
    finally:
        sys.meta_path.remove(finder)


class _WithoutExecutable(importlib.abc.MetaPathFinder):
    """Finds `git.cmd` where it is, and has its class find no program."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _RUNS_GIT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        commands: Any = module
        commands.Git.refresh = classmethod(lambda _cls, path=None: False)  # noqa: ARG005 - the signature is theirs
