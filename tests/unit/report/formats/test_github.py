"""Problems as workflow commands: escaped such that no policy can give a command of its own."""

import re

from hypothesis import given

from reconciler.model.problem import Problem
from reconciler.report import write
from reconciler.report.checked import CheckReport
from tests.unit.report.problem_samples import FINE, MISTAKES, WHOLE_FILE, checked, documents

COMMAND = re.compile(r"::error ([^:]*)::(.*)")


def test_each_problem_is_an_annotation() -> None:
    assert write(MISTAKES, "github", color=False) == (
        "::error file=policies/base/l4-inference.yaml,line=14,col=24,endColumn=26,title=RC103::"
        'spec.maxDrainParallelism: expected an integer of at least 1, got "two"%0Awrite 2\n'
        "::error file=policies/base/l4-inference.yaml,line=18,col=3,endColumn=3,title=RC107::"
        'unknown key "utilisationThreshold"; did you mean "utilizationThresholdPercent"?\n'
    )


def test_a_problem_of_a_whole_file_names_no_line() -> None:
    assert write(checked(WHOLE_FILE), "github", color=False) == (
        "::error file=a b.yaml,title=RC101::is not UTF-8%0Asave it as UTF-8\n"
    )


def test_where_all_is_well_nothing_is_said() -> None:
    assert write(FINE, "github", color=False) == ""


def test_properties_and_messages_are_escaped_each_in_its_way() -> None:
    problem = Problem("50%,a:b.yaml", 0, 0, "RC1", "100%: a, b\r\n::error::no \x1b[31m")
    assert write(checked(problem), "github", color=False) == (
        "::error file=50%25%2Ca%3Ab.yaml,title=RC1::100%25: a, b%0D%0A::error::no \\x1b[31m\n"
    )


def test_beyond_ten_a_notice_says_how_many_more_there_are() -> None:
    many = [Problem("a.yaml", line, 1, "RC1", "is wrong") for line in range(1, 24)]
    lines = write(checked(*many), "github", color=False).splitlines()
    assert [line.split("::")[1].split(" ")[0] for line in lines] == ["error"] * 10 + ["notice"]
    assert lines[-1] == "::notice::13 more errors without an annotation; list all with: reconciler validate -o text"
    assert "1 more error without" in write(checked(*many[:11]), "github", color=False)
    assert "notice" not in write(checked(*many[:10]), "github", color=False)


@given(documents)
def test_every_line_is_one_command_and_carries_what_was_meant(document: CheckReport) -> None:
    lines = write(document, "github", color=False).splitlines()
    assert len(lines) == len(document.problems)
    for line, problem in zip(lines, sorted(document.problems), strict=True):
        command = COMMAND.fullmatch(line)
        assert command
        properties = dict(pair.split("=", 1) for pair in command[1].split(","))
        assert _shown(_unescaped(properties.get("file", ""))) == _shown(problem.file)
        assert _shown(_unescaped(command[2])) == _shown("\n".join(filter(None, [problem.sentence, problem.remedy])))
        assert ("line" in properties) == (problem.line > 0)


def _unescaped(text: str) -> str:
    """As the runner does it: the percent sign last."""
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
