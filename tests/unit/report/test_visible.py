"""What is shown of other people's text acts on nobody who keeps the output."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.cli.main import main
from reconciler.report.formats.text import TextSpan, underlined
from reconciler.report.wording import visible, visible_lines

# As the runners of GitHub, Azure Pipelines and TeamCity look for commands in each line of an output.
COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
PIECES = some.lists(some.sampled_from(["##", "#", "[", "]", "::", ":", " ", "vso", "set-output name=x", "\n", "\x1b"]))


@given(PIECES.map("".join))
def test_no_line_is_a_command_of_continuous_integration(text: str) -> None:
    assert not COMMAND.search(visible(text))
    assert not COMMAND.search(visible_lines(text))


@given(PIECES.map("".join), some.integers(0, 30))
def test_no_excerpt_is_one_wherever_the_carets_stand(text: str, start: int) -> None:
    shown, _ = underlined(text, TextSpan(start + 1, start + 2))
    assert not COMMAND.search(f"  8 | {shown}")


@pytest.mark.parametrize("command", ["##[error]done", "##vso[task.setvariable]x", "::set-output name=a::b"])
def test_neither_a_comment_nor_the_name_of_a_file_gives_a_command(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = command.replace("/", " ") + ".yaml"
    Path(name).write_text(f"apiVersion: gpu.scheduling/v1  # {command}\nkind: {command}\n? x\n# {command}\n")
    for output in ("text", "markdown", "junit", "sarif", "json", "html"):
        assert main(["validate", name, "-o", output]) == 3
        told = capsys.readouterr()
        assert command[3:5] in told.out
        assert not COMMAND.search(told.out)
        assert not COMMAND.search(told.err)
    assert main(["validate", "##[error]missing.yaml", "--no-such-option"]) == 64
    assert not COMMAND.search(capsys.readouterr().err)
