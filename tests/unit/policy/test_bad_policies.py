"""One bad file, or folder, a code: exactly the recorded problems, and the exit code that they call for.

After a change of wording: `pytest tests/unit/policy/test_bad_policies.py --record`, and read the difference.
"""

from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.policy.words import CODES
from reconciler.sources.walk import SourceFault
from tests.lab.places import REPOSITORY
from tests.policies.page import page

BAD = REPOSITORY / "tests" / "policies" / "bad"
CASES = sorted(path.name for path in BAD.iterdir() if path.suffix != ".txt")


@pytest.mark.parametrize("case", CASES)
def test_exactly_the_recorded_problems(
    case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(BAD)
    exit_code = main(["validate", case])
    told = capsys.readouterr().out
    recorded = BAD / f"{Path(case).stem if case.endswith('.yaml') else case}.txt"
    if pytestconfig.getoption("--record"):
        recorded.write_text(told)
    assert told == recorded.read_text()
    assert f"[{case[:5]}]" in told
    # A policy with warnings alone is in force.
    assert exit_code == (3 if "error[" in told else 0)


# What can't stand in a folder of small files: how it looks, and where it is tested.
ELSEWHERE = {
    "RC003": "A file of more than 1 MiB is not read: split it.",
    "RC311": "More than 100 scaled pools accept the same pods: NodePool weights cannot express their order.",
    "RC501": "The path does not exist or cannot be read; the message has the reason.",
    "RC503": "The path is a FIFO, a socket or a device; the file is not opened.",
    "RC504": "More than 2,000 files, 1 MiB per file, 32 MiB in total, or 16 directory levels; the message says which.",
    "RC505": "The file name has control characters or is not UTF-8, so it cannot be displayed.",
    "RC506": "The files changed during each of five attempts to read them: swap them with one rename or symlink.",
    "RC507": "A template with this name exists inside and beside the policy directory, with different content.",
    "RC508": "A watched source has not yielded a valid revision yet.",
    "RC509": "An internal error occurred while reading; the last valid policies stay in force.",
    "RC511": "The address is invalid, or git would treat the address as an option or a command.",
    "RC512": "The revision does not exist, or git would treat the revision as an option.",
    "RC513": "The file is in a submodule or in Git LFS: the repository does not contain the content of the file.",
    "RC514": "Git exceeded the time limit and was terminated.",
    "RC515": "Git cannot read the repository; the message has git's error without credentials.",
    "RC521": "Custom resources of one bundle are incomplete: some are missing, or not applied yet.",
    "RC522": "Two complete bundles exist: the tool that applies them does not prune older objects.",
    "RC523": "The API server denies reading the policies; the message has the API server's error.",
}


def test_every_code_has_an_example() -> None:
    assert {code for code, _ in CODES} == {case[:5] for case in CASES} | set(ELSEWHERE)


def test_sources_call_their_codes_what_the_reference_does() -> None:
    assert {fault.value for fault in SourceFault} <= {code for code, _ in CODES}


def test_the_reference_shows_every_code(pytestconfig: pytest.Config) -> None:
    path = REPOSITORY / "docs" / "reference" / "problems.md"
    written = page(BAD, ELSEWHERE)
    if pytestconfig.getoption("--record"):
        path.write_text(written)
    assert path.read_text() == written


def test_the_example_policies_are_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(["validate", "policies"]) == 0
    assert capsys.readouterr().out == ""
