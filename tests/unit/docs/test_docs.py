"""The written pages say what is so: exit codes, reasons, and the commands that people are told to use."""

import json
import re
from pathlib import Path

import pytest

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.main import COMMANDS
from reconciler.model.bundle import Bundle, Text
from reconciler.plan.reason_catalog import REASONS
from reconciler.policy.resolve import resolve
from reconciler.report.generated import REASONS_PAGE, reasons_page
from tests.lab.places import REPOSITORY
from tests.processes.script_worlds import production_cluster
from tests.stages.documentation import PAGES as DOCUMENTATION
from tests.stages.documentation import Block, blocks, commands

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


@pytest.mark.parametrize("page", DOCUMENTATION)
def test_a_block_of_commands_is_one_that_tests_run(page: str) -> None:
    """Only ```sh blocks are run, by tests/long/test_documentation.py."""
    typed = re.compile(r"^(reconciler|kubectl|make|pipx|docker|git) ")
    missed = [block.place for block in blocks(page) if not block.language and any(map(typed.match, block.lines))]
    assert missed == [], "begin these blocks with ```sh"


POLICIES = [
    block
    for page in DOCUMENTATION
    for block in blocks(page)
    if block.language == "yaml" and re.search(r"^kind: (?!Scenario)", "\n".join(block.lines), re.MULTILINE)
]


@pytest.mark.parametrize("block", POLICIES, ids=lambda block: block.place)
def test_a_policy_of_a_page_can_be_copied(block: Block) -> None:
    """As it stands, beside the policies that it names."""
    content = "\n".join(block.lines).encode()
    found = resolve(Bundle("r", (Text("copied.yaml", content),)))
    assert [each for each in found.problems if each.code != "RC301"] == []


def test_commands_go_on_after_a_backslash_and_name_their_exit_code() -> None:
    (block,) = (each for each in blocks("docs/how-to/guard.md") if "approve GpuPool" in each.lines[0])
    (command,) = commands(block)
    assert "\\" not in command.text
    assert command.text.endswith("--expires 24h")
    assert command.exit_code == 0


def test_the_example_cluster_is_one_of_the_example_policies(pytestconfig: pytest.Config) -> None:
    path = REPOSITORY / "examples" / "production" / "cluster.json"
    if pytestconfig.getoption("--record"):
        path.write_text(production_cluster())
    assert json.loads(path.read_text()) == json.loads(production_cluster())
