"""The command line: help, wrong usage, interrupts, and the codes it ends with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.cli.commands import demo
from reconciler.cli.main import COMMANDS, main


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    for name, sentence in COMMANDS:
        assert f"  {name} " in told
        assert sentence.split()[0] in told  # a narrow terminal folds the rest


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"reconciler {__version__}\n"


@pytest.mark.parametrize("arguments", [["nope"], ["demo", "--nope"], ["demo", "extra"]])
def test_wrong_usage_is_code_64_and_says_what_is_wrong(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    told = capsys.readouterr()
    assert told.out == ""
    assert arguments[-1] in told.err


@pytest.mark.parametrize("command", ["apply", "run"])
def test_a_command_that_acts_does_not_offer_an_imagined_cluster_or_another_time(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert "--context" in told
    for option in ("--cluster", "--complete", "--now"):
        assert f"{option} " not in told
        assert main([command, option, "x"]) == 64


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--agents-account=gpu-agents/agent"], "--agents-account requires --agents"),
        (["--agents=127.0.0.1:0", "--agents-account=agent"], "write NAMESPACE/NAME"),
        (["--agents=127.0.0.1:0", "--agents-account=a/b/c"], "write NAMESPACE/NAME"),
        (["--agents=somewhere"], "is not an address"),
    ],
)
def test_options_of_agents_that_make_no_sense_are_refused(
    options: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *options]) == 64
    assert part in " ".join(capsys.readouterr().err.split())


def test_an_interrupt_is_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "Tour", interrupted)
    assert main(["demo"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_help_imports_no_command() -> None:
    """Or start-up would grow with every command that is added."""
    script = (
        "import sys; from reconciler.cli.main import main; main(['--help'])\n"
        "assert not [each for each in sys.modules if each.startswith('reconciler.cli.commands')], sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("command", ["plan", "apply", "approve"])
@pytest.mark.parametrize("title", ["foo", "NodePool/", "/old", "NodePool/a/b/c", "NodePool old", "NodePool/Old"])
def test_what_is_pruned_is_named_with_its_kind(command: str, title: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--prune", title]) == 64
    assert f'"{title}" is not the name of an object' in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["apply", "run"])
def test_a_command_that_reads_no_dump_names_none(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "[default: the folder policies]" in text
    assert "those in the dump" not in text


def test_releasing_what_a_file_has_is_done_in_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    taints = [{"key": "gpu.scheduling/draining", "effect": "NoSchedule", "value": "1793000000"}]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}, "spec": {"taints": taints}}
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    assert main(["release", "--cluster", str(file), "--complete"]) == 0
    text = capsys.readouterr().out
    assert "1 object to release: to release them, run release --yes without --cluster." in text
    assert "add --yes" not in text
