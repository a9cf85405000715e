"""Commands that plan, as people call them: bases without policies, dumps, outputs, and what is told of problems."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.lab.places import REPOSITORY
from tests.processes.script_worlds import pull_request

BLOCKED = 4  # the guard of that fleet lets at most a fifth of a pool go
AT = ("--cluster", "cluster.json", "--complete", "--now", "2026-11-02T10:00:00Z")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The pull request of the transcripts, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    pull_request(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("command", [["plan"], ["status"], ["explain", "pool/a100-training"]])
def test_problems_are_told_in_the_formats_that_were_asked_for(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    policy = here / "policies" / "base" / "a100-training.yaml"
    policy.write_text(policy.read_text().replace("maxSize", "maxSiz"))
    assert main([*command, *AT, "-o", "github", "-o", "json=out.json"]) == 3
    assert "::error file=policies/base/a100-training.yaml" in capsys.readouterr().out
    assert {each["code"] for each in json.loads((here / "out.json").read_text())["problems"]} == {"RC104", "RC107"}
    assert main([*command, *AT]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "error[RC104]" in told.err


@pytest.mark.parametrize(
    "command",
    [
        ["plan", *AT, "-o", "markdown=fine.md", "-o", "json=nowhere/x.json"],
        ["dump", *AT, "--out", "nowhere/x.dump"],
        ["schema", "--write", "/proc/x"],
        ["validate", "-o", "html=fine.html", "-o", "sarif=policies"],
    ],
)
def test_what_cannot_be_written_is_told_and_nothing_else_is_written(
    here: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    before = sorted(here.rglob("*"))
    assert main(command) == 1
    told = capsys.readouterr()
    assert "Error: nothing was written: " in told.err
    assert told.out == ""
    assert sorted(here.rglob("*")) == before


def test_a_file_that_is_there_is_replaced_and_keeps_its_rights(here: Path) -> None:
    file = here / "plan.json"
    file.write_text("old")
    file.chmod(0o600)
    (here / "link.json").symlink_to(file)
    assert main(["plan", *AT, "-o", "json=link.json", "-o", "text=/dev/null"]) == BLOCKED
    assert json.loads(file.read_text())["format_version"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert (here / "link.json").is_symlink()
    assert not list(here.glob(".*.unfinished"))


def test_a_pull_request_that_introduces_the_policies_is_compared_with_none(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(here, "checkout", "--quiet", "-B", "main")
    git(here, "rm", "-r", "--quiet", "--cached", "policies")
    git(here, "commit", "--quiet", "--message", "without", "--allow-empty")
    assert main(["plan", "--base", "main", *AT]) == BLOCKED
    told = capsys.readouterr().out
    assert "note: main has no policies in policies: all policies are new" in told
    assert "+ GpuPool/a100-training" in told
    assert main(["plan", "--base", "nowhere", *AT]) == 3
    assert "error[RC512]" in capsys.readouterr().err


def test_so_is_one_that_moves_their_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.move(here / "policies", here / "fleet")
    assert main(["plan", "--policies", "fleet", "--base", "main", *AT]) == BLOCKED
    assert "main has no policies in fleet: all policies are new" in capsys.readouterr().out


def test_an_environment_that_is_new_is_compared_with_what_base_was(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(REPOSITORY / "policies", here / "policies", dirs_exist_ok=True)
    stage = here / "policies" / "overlays" / "stage"
    stage.mkdir()
    stage.joinpath("stage.yaml").write_text(
        "apiVersion: gpu.scheduling/v1\nkind: NodeProvisioner\nmetadata: {name: l4-inference}\nspec: {minSize: 7}\n"
    )
    assert main(["plan", "-e", "stage", "--base", "main", *AT, "-o", "json=plan.json"]) == 0
    changes = json.loads((here / "plan.json").read_text())["changes"]
    assert [(each["kind"], each["name"]) for each in changes] == [("NodeProvisioner", "l4-inference")]


def test_a_dump_is_planned_by_its_own_policies_where_there_are_no_others(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *AT, "-o", "json=asked.json"]) == BLOCKED
    assert main(["dump", *AT, "--out", "some.dump"]) == 0
    shutil.rmtree(here / "policies")
    capsys.readouterr()
    assert main(["plan", "--cluster", "some.dump", "-o", "json=again.json", "-o", "text"]) == BLOCKED
    assert "using the policies of some.dump, because there are none in policies" in capsys.readouterr().out
    asked, again = (json.loads((here / name).read_text()) for name in ("asked.json", "again.json"))
    assert asked["decisions"] == again["decisions"]
    assert asked["decisions"]
    assert main(["plan", "--cluster", "some.dump", "-e", "base"]) == 64
    assert main(["plan", "--cluster", "some.dump", "--policies", "policies"]) == 3


def test_a_node_class_that_the_cluster_does_not_have_is_told_where_that_is_known(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = here / "policies" / "base" / "a100-training.yaml"
    policy.write_text(policy.read_text().replace("gpu-a100", "gpu-a1000"))
    told = "NodePool/a100-training names EC2NodeClass/gpu-a1000, which the cluster does not have: Karpenter launches"
    assert main(["plan", *AT]) == BLOCKED
    said = capsys.readouterr().out
    assert told in said
    assert "gpu-l4" not in said
    cluster = json.loads((here / "cluster.json").read_text())
    cluster["items"] = [each for each in cluster["items"] if each["kind"] != "EC2NodeClass"]
    (here / "cluster.json").write_text(json.dumps(cluster))
    assert main(["plan", "--cluster", "cluster.json"]) == BLOCKED
    assert "which the cluster does not have" not in capsys.readouterr().out


def test_explain_tells_who_last_changed_the_line_that_asked(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-10-30T12:00:00Z")
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Robin Example")
    here_git = here / ".git"
    if here_git.exists():
        shutil.rmtree(here_git)
    git(here, "init", "--quiet", "--initial-branch=main")
    git(here, "add", "policies")
    git(here, "commit", "--quiet", "-m", "Keep sixty nodes")
    git(here, "commit", "--quiet", "--allow-empty", "-m", "Nothing of that")
    repo = ["--repo", ".", "--revision", "main"]
    assert main(["explain", "node/train-08", *AT, *repo, "-o", "text", "-o", "json=out.json"]) == 0
    told = capsys.readouterr().out
    head = run(here, "rev-parse", "main~1")
    assert f"last changed  {head[:7]} by Robin Example on 2026-10-30: Keep sixty nodes" in told
    (change,) = json.loads((here / "out.json").read_text())["last_changes"]
    assert (change["commit"], change["author"], change["unknown_before"]) == (head, "Robin Example", "")
    git(here, "clone", "--quiet", "--depth=1", here.as_uri(), str(here / "shallow"))
    assert main(["explain", "node/train-08", *AT, "--repo", "shallow", "--revision", "main"]) == 0
    assert f"last changed  unknown before {run(here, 'rev-parse', 'main')[:7]}" in capsys.readouterr().out


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()
