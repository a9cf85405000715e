"""The written pages say what is so: exit codes, reasons, and the commands that people are told to use."""

import re
from pathlib import Path

import pytest

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.main import COMMANDS
from reconciler.plan.explain import REASONS
from reconciler.report.published.files import REASONS_PAGE, reasons_page
from tests.lab.places import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def test_every_exit_code_is_told() -> None:
    page = (REPOSITORY / "docs/reference/exit-codes.md").read_text()
    rows = re.findall(r"^\| ([0-9]+) \| ([A-Z_]+) \|", page, re.MULTILINE)
    assert rows == [(str(int(code)), code.name) for code in ExitCode]


def test_the_page_of_reasons_says_what_the_reasons_say() -> None:
    if (REPOSITORY / REASONS_PAGE).read_text(encoding="utf-8") != reasons_page():
        pytest.fail(f"{REASONS_PAGE} is not what REASONS says: run `make generate`, and commit it", pytrace=False)
    assert re.findall(r"^\| `(\w+)` \|", reasons_page(), re.MULTILINE) == sorted(REASONS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"^(?:\$ )?reconciler ([a-z]+)", page.read_text(), re.MULTILINE))
    assert named <= {name for name, _ in COMMANDS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text, folder = page.read_text(), page.parent
    links = [each for each in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in each]
    assert [each for each in links if not (folder / each).exists()] == []
