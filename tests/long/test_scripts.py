"""All transcripts with the real program, started for each line; `make test` forks most of them."""

from pathlib import Path

import pytest

from tests.processes.transcripts import SCRIPTS, replayed


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_shows_what_the_program_prints(path: Path, tmp_path: Path) -> None:
    recorded = path.read_text()
    assert replayed(recorded, tmp_path) == recorded
