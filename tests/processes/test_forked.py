"""A fork of the command is to a shell what the program is: its streams, its folder, its environment, its exit code."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.forked.starting import forked_command
from tests.processes.transcripts import STARTED, environment


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a `reconciler` that is a fork."""
    with forked_command(environment(tmp_path_factory.mktemp("home"))) as folder:
        yield folder


@pytest.mark.parametrize(
    "command",
    [
        "reconciler --version > kept 2> told; cat kept told",
        "reconciler schema NodePoo; echo $?",
        "mkdir below && cd below && reconciler validate",
        "reconciler schema ChangeGuard | head -1",
        "reconciler schema ChangeGuard >&-",
        "reconciler schema ChangeGuard > /dev/full",
        "reconciler plan --cluster ''",
        "reconciler explain 'two words' \"with a\nsecond line\"",
        "reconciler validate <&- 2>&1 | cat",
        "PATH=$PATH:/nowhere reconciler --help && reconciler",
        "echo $(reconciler --version; reconciler nothing 2>&1)",
    ],
)
def test_a_fork_and_the_program_do_the_same(command: str, forks: Path, tmp_path: Path) -> None:
    answers = []
    for programs in (STARTED, forks):
        folder = tmp_path / "same"
        folder.mkdir()
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment(tmp_path, programs), capture_output=True, check=False
        )
        answers.append((done.returncode, done.stdout, done.stderr))
        folder.rename(tmp_path / f"of-{programs.name}")
    assert answers[0] == answers[1]


def test_what_an_interpreter_reads_when_it_starts_reaches_the_real_program(forks: Path, tmp_path: Path) -> None:
    """It tells each import only then: a fork has nothing left to import."""
    told = [
        subprocess.run(
            ["sh", "-c", "reconciler --version"],
            env=environment(tmp_path, forks) | more,
            capture_output=True,
            check=True,
        ).stderr
        for more in ({}, {"PYTHONPROFILEIMPORTTIME": "1"})
    ]
    assert [b"reconciler.cli.main" in each for each in told] == [False, True]
