"""An approval by real commands on a real repository: it outlives commits that leave its objects as they are."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from tests.processes.script_worlds import pull_request

AT = ("--cluster", "cluster.json", "--complete", "--now", "2026-11-02T10:00:00Z", "-e", "prod")
POOL = "policies/base/a100-training.yaml"
BLOCKED = 4


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The pull request of the transcripts, committed on a branch, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    pull_request(tmp_path)
    git(tmp_path, "switch", "--quiet", "--create", "taint")
    commit(tmp_path, "A taint and a target")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, message: str) -> str:
    git(folder, "add", "--all", "--", ":!cluster.json")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def approved(folder: Path, printed: str) -> dict[str, Any]:
    """What `approve --dry-run` printed, as the API server would have it, in the cluster file."""
    made: dict[str, Any] = json.loads(printed)
    made["metadata"] = {
        "name": f"{made['metadata'].pop('generateName')}x",
        "uid": "uid-approval",
        "resourceVersion": "1",
    }
    cluster = json.loads((folder / "cluster.json").read_text())
    cluster["items"].append(made)
    (folder / "cluster.json").write_text(json.dumps(cluster))
    return made


def plan(capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    code = main(["plan", *AT, "--repo", ".", *more])
    return code, capsys.readouterr().out


def test_an_approval_survives_a_rebase_a_readme_and_a_squash_and_ends_with_an_edit(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = plan(capsys)
    assert code == BLOCKED
    (command,) = (line.strip() for line in told.splitlines() if "reconciler approve" in line and "GpuPool/" in line)
    assert command.startswith("reconciler approve GpuPool/a100-training")
    assert " --guard fleet " in command
    # The command that the plan names is the one that is run, but for writing into a cluster that there is not.
    assert main([*command.split()[1:], "--expires", "8760h", "--dry-run"]) == 0
    made = approved(here, capsys.readouterr().out)
    assert "revision" not in made["spec"]
    assert {len(each["digest"]) for each in made["spec"]["objects"]} == {len("sha256:") + 64}

    code, told = plan(capsys)
    assert code == 0
    assert "Approved by ChangeApproval/fleet-x." in told

    (here / "README.md").write_text("A fleet.\n")
    commit(here, "A README that has nothing to do with it")
    assert plan(capsys)[0] == 0

    git(here, "switch", "--quiet", "main")
    (here / "README.md").write_text("Somebody else's README.\n")
    commit(here, "Main goes on")
    git(here, "merge", "--squash", "--strategy-option", "theirs", "taint")
    commit(here, "The pull request, squashed")
    code, told = plan(capsys)
    assert code == 0
    assert "Approved by ChangeApproval/fleet-x." in told

    policy = here / POOL
    policy.write_text(policy.read_text().replace("value: training", "value: inference"))
    commit(here, "The taint again, otherwise")
    code, told = plan(capsys)
    assert code == BLOCKED
    assert "ChangeApproval/fleet-x does not cover GpuPool/a100-training: the approved digest is sha256:" in told


REFUSED = {
    "name what to approve": [],
    "give a ceiling, such as --removed-nodes 40": ["GpuPool/a100-training", "--guard", "fleet"],
    "add --guard NAME": ["GpuPool/a100-training", "--removed-nodes", "4"],
    "there is no GpuPool/a100 in environment prod": ["GpuPool/a100", "--guard", "fleet", "--removed-nodes", "4"],
    "there is no ChangeGuard/flet": ["GpuPool/a100-training", "--guard", "flet", "--removed-nodes", "4"],
    '"x" is not the name of a policy': ["GpuPool/a100-training", "x", "--guard", "fleet", "--removed-nodes", "4"],
    '"old" is not the name of an object': ["--prune", "old"],
}


def test_what_is_not_said_well_is_refused_with_the_remedy(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sentence, arguments in REFUSED.items():
        assert main(["approve", *arguments, "-e", "prod", "--dry-run"]) == 64
        assert sentence in capsys.readouterr().err
    assert main(["approve", "--prune", "NodePool/old", "--prune", "NodePool/old", "--dry-run"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["metadata"] == {"generateName": "prune-"}
    del made["spec"]["expires"]
    assert made["spec"] == {"suspend": False, "prune": ["NodePool/old"]}
    policy = here / POOL
    policy.write_text(policy.read_text().replace("maxSize", "maxSiz"))
    arguments = ["GpuPool/a100-training", "--guard", "fleet", "--removed-nodes", "4", "-e", "prod", "--dry-run"]
    assert main(["approve", *arguments]) == 3
    assert "RC107" in capsys.readouterr().err
