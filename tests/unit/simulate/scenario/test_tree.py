"""A scenario may come from anybody: what it names lies in its own tree, or none of it is read or shown."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from tests import folders

REPOSITORY = folders.REPOSITORY
EXAMPLE = REPOSITORY / "examples" / "quiet-day"
SECRET = "auths: hunter2"
HEAD = {"apiVersion": "gpu.scheduling/v1", "kind": "Scenario", "metadata": {"name": "a"}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a secret of the one who plays, in files of each kind that a scenario may name."""
    found = tmp_path / "home"
    secret = found / ".docker"
    secret.mkdir(parents=True)
    for name in ("config.json", "config.yaml", "pods.csv"):
        (secret / name).write_text(SECRET)
    (found / "templates").mkdir()
    (found / "templates" / "node_pool.yaml.j2").write_text(SECRET)
    monkeypatch.setenv("HOME", str(found))
    (found / "story").mkdir()
    shutil.copytree(EXAMPLE / "policies", found / "story" / "policies")
    return found


def played(home: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, Any], *options: str) -> tuple[int, str]:
    whole = {"start": "2026-11-16T08:00:00Z", "duration": "1m", "policies": [{"folder": "policies/by-use"}], **spec}
    file = home / "story" / "scenario.yaml"
    file.write_text(json.dumps({**HEAD, "spec": whole}))
    code = main(["simulate", str(file), *options])
    told = capsys.readouterr()
    return code, told.out + told.err


def linked(home: Path) -> None:
    (home / "story" / "linked").symlink_to(home / ".docker")
    (home / "story" / "file.json").symlink_to(home / ".docker" / "config.json")


WAYS = (
    "HOME/.docker",
    "~/.docker",
    "../.docker",
    "policies/../../.docker",
    "linked",
    "linked/../linked",
    "..",
    ".",
    "\0",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_folder_of_policies_outside_is_refused_and_not_shown(
    home: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    linked(home)
    folder = way.replace("HOME", str(home))
    code, told = played(home, capsys, {"policies": [{"folder": folder}]})
    assert code == 3
    assert "hunter2" not in told
    if way not in {"~/.docker", "\0"}:  # no folder of that name is in the tree
        assert "RC501" in told
        assert "is outside of the scenario's folder" in told
        assert "--tree" in told


@pytest.mark.parametrize(
    "way", ["HOME/.docker/config.json", "~/.docker/config.json", "../.docker/config.json", "file.json"]
)
@pytest.mark.parametrize("field", ["dump", "openbNodes", "openbPods"])
def test_a_file_outside_is_refused_and_not_shown(
    home: Path, capsys: pytest.CaptureFixture[str], field: str, way: str
) -> None:
    linked(home)
    path = way.replace("HOME", str(home))
    spec: dict[str, Any] = {"cluster": {field: path}}
    if field == "openbPods":
        spec = {"workloads": [{"name": "w", "trace": {"openbPods": path}}]}
    code, told = played(home, capsys, spec)
    assert code == 3
    assert "hunter2" not in told
    assert "RC501" in told


def test_templates_beside_a_folder_are_in_the_tree_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(EXAMPLE / "policies" / "by-use", home / "story", dirs_exist_ok=True)
    code, told = played(home, capsys, {"policies": [{"folder": "."}]})
    assert (code, "hunter2" in told) == (3, False)
    assert "is outside of" in told


@pytest.mark.parametrize("folder", ["policies/by-use", "./policies/by-use", "policies/../policies/by-use"])
def test_what_lies_in_the_tree_is_played(home: Path, capsys: pytest.CaptureFixture[str], folder: str) -> None:
    code, told = played(home, capsys, {"policies": [{"folder": folder}]})
    assert code == 0, told


def test_a_person_may_name_a_larger_tree_and_other_policies(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(home / "story" / "policies", home / "policies")
    outside = {"policies": [{"folder": "../policies/by-use"}]}
    assert played(home, capsys, outside)[0] == 3
    assert played(home, capsys, outside, "--tree", str(home))[0] == 0
    assert played(home, capsys, outside, "--policies", str(home / "policies" / "by-use"))[0] == 0


@pytest.mark.parametrize("field", ["dump", "openbNodes"])
def test_a_fifo_or_a_device_in_the_tree_is_refused(home: Path, capsys: pytest.CaptureFixture[str], field: str) -> None:
    os.mkfifo(home / "story" / "fifo")
    code, told = played(home, capsys, {"cluster": {field: "fifo"}})
    assert code == 3
    assert "it is a FIFO" in told
