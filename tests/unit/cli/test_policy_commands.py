"""`validate` and `render` as users call them: outputs, environments, repositories, and looking again."""

import json
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.lab.places import REPOSITORY

GUARD = """\
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet}
spec: {poolNames: ["*"], perPlan: {maxRemovedNodes: 4}}
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder with policies/guard.yaml, and ourselves in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "guard.yaml").write_text(GUARD)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def test_several_outputs_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "policies" / "guard.yaml").write_text(GUARD.replace("4", "four"))
    outputs = ["-o", "json=out.json", "-o", "sarif=out.sarif", "-o", "junit=out.xml", "-o", "github"]
    assert main(["validate", *outputs]) == 3
    assert capsys.readouterr().out.startswith("::error file=policies/guard.yaml,line=4,col=53,")
    (problem,) = json.loads((here / "out.json").read_text())["problems"]
    assert (problem["code"], problem["remedy"]) == ("RC103", "write 4")
    assert json.loads((here / "out.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "RC103"
    assert ET.parse(here / "out.xml").getroot().get("failures") == "1"  # noqa: S314 - written by ourselves


def test_an_output_that_cannot_be_written_is_told_and_is_no_trace(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "-o", "json=nowhere/out.json"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert "nowhere/out.json" in told


def test_an_unknown_format_is_wrong_usage(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "-o", "yaml"]) == 64
    assert "choose one of text, json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-e", "nope"], 'there is no environment "nope"; found: base'),
        (["--revision", "v1"], "--revision v1 chooses a revision of a repository: name one with --repo"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    arguments: list[str], expected: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "-e", "base"]) == 0
    assert main(["validate", *arguments]) == 64
    assert expected in capsys.readouterr().err


def test_colour_is_asked_for_or_left_out(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "policies" / "guard.yaml").write_text(GUARD.replace("4", "four"))
    main(["validate"])
    assert "\x1b" not in capsys.readouterr().out
    main(["validate", "--color", "always"])
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["validate"])
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    main(["validate"])
    assert "\x1b" not in capsys.readouterr().out


def test_rendering_gives_the_same_bytes_twice_and_says_where_they_come_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    told = []
    for _ in range(2):
        assert main(["render", "policies", "-e", "prod"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].startswith("# policies/base/a100-training.yaml:3 by templates/node_pool.yaml.j2 at dir:")
    assert "nodes: '128'" in told[0]


def test_rendering_asks_which_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["render", "policies"]) == 64
    assert "choose one with --environment: base, prod" in capsys.readouterr().err
    assert main(["render", "policies", "-e", "stage"]) == 64
    assert 'there is no environment "stage"; found: base, prod' in capsys.readouterr().err


def test_finding_nothing_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "policies" / "guard.yaml").unlink()
    assert main(["validate"]) == 0
    assert "no policies found: policies has no .yaml, .yml or .json file" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "null\n"])
def test_so_is_finding_files_without_policies(text: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "policies" / "guard.yaml").write_text(text)
    assert main(["validate"]) == 0
    assert "no policies found: the files of policies declare none" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_told_and_not_that_there_are_no_policies(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "policies" / "guard.yaml").write_text("a: [\n")
    assert main(["validate"]) == 3
    assert "no policies found" not in capsys.readouterr().err


def test_what_has_problems_is_not_rendered(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "policies" / "guard.yaml").write_text(GUARD.replace("4", "four"))
    assert main(["render"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert "error[RC103]" in told.err


def test_a_revision_of_a_repository_is_read_whatever_is_checked_out(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(here, "init", "--initial-branch=main")
    git(here, "add", ".")
    git(here, "commit", "--message=good")
    (here / "policies" / "guard.yaml").write_text(GUARD.replace("4", "four"))
    assert main(["validate"]) == 3
    capsys.readouterr()
    assert main(["validate", "--repo", str(here), "--revision", "main"]) == 0
    assert main(["validate", "--repo", str(here), "--revision", "nowhere"]) == 3
    assert "error[RC512]" in capsys.readouterr().out
    assert main(["validate", "--repo", "ext::sh -c id", "policies"]) == 3
    assert "error[RC511]" in capsys.readouterr().out


def test_watching_tells_a_mistake_when_it_is_made_and_ends_with_an_interrupt(here: Path) -> None:
    command = [sys.executable, "-m", "reconciler", "validate", "--watch"]
    process = subprocess.Popen(
        command,
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # What a shell starts in the background is deaf to Ctrl-C; a person's terminal is not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one system call
    )
    with process:
        try:
            assert process.stdout
            assert process.stdout.readline().endswith(": no problems\n")
            (here / "mistaken").write_text(GUARD.replace("4", "four"))
            (here / "mistaken").replace(here / "policies" / "guard.yaml")  # never seen half written
            assert "policies/guard.yaml:4:53: error[RC103]" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
