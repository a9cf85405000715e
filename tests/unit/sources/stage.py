"""What the tests of sources play on: repositories made in one stroke, programs put first on PATH, a far host nearby."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from reconciler.model.bundle import Bundle
from reconciler.sources.git import GitPlace, read_revision
from reconciler.sources.walk import SourceBounds

GIT = shutil.which("git") or "git"

POLICY = b"kind: GpuPool\n"

# Answers on the far side of an SSH connection: runs what it is asked to on this side.
SSH = """#!/bin/sh
for asked; do :; done
exec sh -c "$asked"
"""

LINK, SUBMODULE, FILE = "120000", "160000", "100644"


class Repository:
    """A bare repository that commits are streamed into."""

    def __init__(self, folder: Path, ids: str = "sha1") -> None:
        self.folder = folder
        options = ("--quiet", "--bare", "--initial-branch=main", f"--object-format={ids}")
        self.git("init", *options, str(folder), cwd=folder.parent)
        self.git("config", "uploadpack.allowFilter", "true")

    def git(self, *arguments: str, cwd: Path | None = None, stdin: bytes = b"") -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        names = ("-c", "user.name=tester", "-c", "user.email=tester@example.com", "-c", "protocol.file.allow=always")
        command = [GIT, *names, *arguments]
        done = subprocess.run(
            command, cwd=cwd or self.folder, env=environment, input=stdin, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, bytes | tuple[str, bytes]], branch: str = "main") -> str:
        """A commit of exactly these files; a pair says its mode. Returns its id."""
        return self.commits([files], branch)[0]

    def commits(self, history: Sequence[Mapping[str, bytes | tuple[str, bytes]]], branch: str = "main") -> list[str]:
        """One commit after another, the last of them the branch's head."""
        stream = bytearray()
        for number, files in enumerate(history):
            stream += f"commit refs/heads/{branch}\ncommitter tester <tester@example.com> {number} +0000\n".encode()
            stream += b"data 0\n"
            if not number and self._has(branch):
                stream += f"from refs/heads/{branch}^0\n".encode()
            stream += b"deleteall\n"
            for path, content in files.items():
                mode, text = content if isinstance(content, tuple) else (FILE, content)
                named = f'"{path}"' if "\\" in path else path
                if mode == SUBMODULE:
                    stream += f"M {mode} {text.decode()} {named}\n".encode()
                else:
                    stream += f"M {mode} inline {named}\ndata {len(text)}\n".encode() + text + b"\n"
        self.git("fast-import", "--quiet", "--force", stdin=bytes(stream))
        return self.git("rev-list", f"--max-count={len(history)}", branch).split()[::-1]

    def work_tree(self, folder: Path) -> Path:
        """A clone with its files checked out."""
        self.git("clone", "--quiet", str(self.folder), str(folder), cwd=folder.parent)
        return folder

    def _has(self, branch: str) -> bool:
        return bool(self.git("for-each-ref", f"refs/heads/{branch}"))


def read(
    repository: Path | str, revision: str = "main", path: str = "policies", bounds: SourceBounds | None = None
) -> Bundle:
    return read_revision(GitPlace(str(repository), revision, path), bounds or SourceBounds())


def texts(bundle: Bundle) -> dict[str, bytes]:
    return {text.path: text.content for text in bundle.policies}


def codes(bundle: Bundle) -> list[str]:
    return [problem.code for problem in bundle.problems]


def sentences(bundle: Bundle) -> str:
    return "\n".join(f"{one.file}: {one.sentence}. {one.remedy}" for one in bundle.problems)


def put_first(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """A program of that name, found before any other."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(script)
    program.chmod(0o755)
    if str(folder) not in os.environ["PATH"].split(os.pathsep):
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
