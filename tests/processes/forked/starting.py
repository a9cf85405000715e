"""Owner of the server that forks, and of the `reconciler` that a shell finds before the real one."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.lab.places import REPOSITORY

CLIENT = Path(__file__).with_name("client.py")
PROGRAM = Path(sys.executable).with_name("reconciler")


@contextmanager
def forked_command(environment: Mapping[str, str]) -> Iterator[Path]:
    """A folder with a `reconciler` that is a fork; the environment is what the server starts with."""
    with tempfile.TemporaryDirectory() as temporary:  # a short path: that of a socket may not be longer than 100 bytes
        folder = Path(temporary)
        command = map(shlex.quote, (sys.executable, "-IS", str(CLIENT), f"{folder}/socket", str(PROGRAM)))
        stub = folder / "reconciler"
        stub.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$PWD" "$@"\n')
        stub.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.forked.server", f"{folder}/socket"],
            cwd=REPOSITORY,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with server:  # closes its standard input at last, at which it ends
            assert server.stdout
            assert server.stdout.readline() == b"ready\n"
            yield folder
