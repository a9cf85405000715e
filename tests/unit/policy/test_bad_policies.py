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
    "RC311": "More than 100 scaled pools that the same pods tolerate: weights can't tell Karpenter their order.",
    "RC501": "The path is not there, or may not be read; the sentence says why.",
    "RC503": "A FIFO, a socket or a device under a policy's name; it is not opened.",
    "RC504": "More than 2,000 files, 1 MiB in one, 32 MiB in all, or 16 folders deep; the sentence says which.",
    "RC505": "A name with control characters, or that is not UTF-8, and could not be shown.",
    "RC506": "The files changed during each of five attempts to read them: swap them in by one rename or link.",
    "RC507": "A template of the same name stands inside of the policies and beside them, and the two differ.",
    "RC508": "A source that is watched has not read anything good yet.",
    "RC509": "A mistake of the program while reading; the last good policies stay in force.",
    "RC511": "An address that git would take for an option or a command, or that is no address.",
    "RC512": "A revision that git would take for an option, or that is not there.",
    "RC513": "A submodule, or a file kept by Git LFS: the repository does not hold the content itself.",
    "RC514": "Git took longer than it may, and was ended.",
    "RC515": "Git cannot read the repository; the sentence has its words, without credentials.",
    "RC521": "Policies that are custom resources were rendered together, and not all of them are there (yet).",
    "RC522": "Objects of two bundles are there, each whole: whatever applies them does not take the older ones away.",
    "RC523": "The API server does not let the policies be read; the sentence has its words.",
}


def test_every_code_has_an_example() -> None:
    assert {code for code, _ in CODES} == {case[:5] for case in CASES} | set(ELSEWHERE)


def test_sources_call_their_codes_what_the_reference_does() -> None:
    assert {(fault.code, fault.title) for fault in SourceFault} <= set(CODES)


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
