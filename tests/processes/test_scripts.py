"""Transcripts: each file of tests/scripts is run as it stands, and must print what is recorded there.

A file begins with what it shows and `@ WORLD`, the folder that its commands run in (script_worlds.py makes it).
A line that begins with `$` is run by the shell; what it printed follows, indented, and an exit code that is not 0.
With `--record` the outputs are written again: the review is reading the difference.

The shell finds a `reconciler` that is a fork of a process which has imported everything (tests/processes/forked). A few
transcripts, and what is recorded, are of the real program; `make test-long` runs all of them with it.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.forked.starting import forked_command
from tests.processes.transcripts import SCRIPTS, STARTED, environment, replayed

OF_THE_REAL_PROGRAM = {"release", "schema", "validate"}


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a `reconciler` that starts in no time."""
    with forked_command(environment(tmp_path_factory.mktemp("home"))) as folder:
        yield folder


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_shows_what_the_commands_print(
    path: Path, forks: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    recorded, is_recorded = path.read_text(), pytestconfig.getoption("--record")
    told = replayed(recorded, tmp_path, STARTED if is_recorded or path.stem in OF_THE_REAL_PROGRAM else forks)
    if is_recorded:
        path.write_text(told)
    assert told == recorded


def test_there_are_transcripts() -> None:
    assert len(SCRIPTS) >= 5
    assert {path.stem for path in SCRIPTS} > OF_THE_REAL_PROGRAM
