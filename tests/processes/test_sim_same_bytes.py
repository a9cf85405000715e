"""The same seed gives the same bytes: in every process, whatever texts hash to, and however many jobs there are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.places import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "taint-edit"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, as far as some nodes have been replaced."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("story") / "example")
    file = folder / "scenario.yaml"
    text = file.read_text(encoding="utf-8")
    assert "duration: 12h" in text
    file.write_text(text.replace("duration: 12h", "duration: 135m"), encoding="utf-8")
    return file


def simulated(story: Path, hash_seed: int, *options: str) -> bytes:
    """What it prints."""
    command = [sys.executable, "-m", "reconciler", "simulate", str(story), "-o", "json", *options]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(command, capture_output=True, cwd=REPOSITORY, env=environment, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
    return done.stdout


def test_texts_that_hash_otherwise_change_neither_figures_nor_page(story: Path, tmp_path: Path) -> None:
    folders = [tmp_path / str(seed) for seed in (1, 2)]
    told = [simulated(story, 1 + at, "--report", str(folder)) for at, folder in enumerate(folders)]
    told.append(simulated(story, 3))
    assert told[0].count(b'"time"') > 100
    assert len(set(told)) == 1
    pages = [files(folder) for folder in folders]
    assert pages[0] == pages[1]
    assert len(pages[0]["index.html"]) > 20_000


def test_several_jobs_tell_what_one_tells(story: Path) -> None:
    sets = [option for name in ("before", "after") for option in ("--policies", str(EXAMPLE / "policies" / name))]
    assert simulated(story, 4, *sets, "--jobs", "2") == simulated(story, 5, *sets)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.*"))}
