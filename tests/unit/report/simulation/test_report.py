"""What a simulation reports: JSON as published, failures for pipelines, two sets of policies side by side, pictures."""

import json
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.report.generated import SIMULATED, published_files
from tests.lab.places import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "taint-edit"
PICTURES = ("capacity.svg", "disruption.svg")  # of those that a report has, these are shown in the example's README
SCHEMA = json.loads(published_files()[SIMULATED])
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)


class Reported:
    """The example with both its policies, written in every format."""

    def __init__(self, folder: Path) -> None:
        self.report = folder / "report"
        self._folder = folder
        asked = ["simulate", str(EXAMPLE / "scenario.yaml"), "--report", str(self.report)]
        asked += [each for name in ("before", "after") for each in ("--policies", str(EXAMPLE / "policies" / name))]
        formats = ("text", "json", "markdown", "junit", "github", "sarif")
        self.code = main([*asked, *(each for form in formats for each in ("-o", f"{form}={folder / form}"))])

    def read(self, form: str) -> str:
        return (self._folder / form).read_text(encoding="utf-8")

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.read("json"))
        return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return Reported(tmp_path_factory.mktemp("both"))


def tree(xml: str) -> ElementTree.Element:
    return ElementTree.fromstring(xml.encode())  # noqa: S314 - written by ourselves


def test_the_schema_is_committed_as_it_follows_from_the_shape() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    if (REPOSITORY / SIMULATED).read_text(encoding="utf-8") != published_files()[SIMULATED]:
        pytest.fail(f"{SIMULATED} is not what simulated_shape.py says: run `make generate`", pytrace=False)


def test_the_json_is_of_the_published_shape(both: Reported) -> None:
    told = both.told
    VALIDATOR.validate(told)
    assert (told["policies"], [each["policies"] for each in told["others"]]) == ("before", ["after"])
    assert (told["failed"], told["others"][0]["failed"], both.code) == (False, True, 1)
    assert told["summary"]["evictions"] == 0
    step = told["others"][0]["timeline"][90]
    assert {"time", "actions", "provisioners"} <= set(step)
    assert step["time"] > "2026-11-16T10:00:00Z"


def test_what_is_not_of_that_shape_is_refused(both: Reported) -> None:
    wrong = both.told | {"summary": both.told["summary"] | {"evictions": "none"}}
    assert not VALIDATOR.is_valid(wrong)
    assert not VALIDATOR.is_valid(both.told | {"more": 1})


def test_a_provisioner_has_its_size_and_target_in_each_step(tmp_path: Path) -> None:
    pool = (EXAMPLE / "policies" / "before" / "a100.yaml").read_text(encoding="utf-8")
    spec = "{poolName: a100, minGPUUtilizationPercent: 70, minSize: 1, maxSize: 4, minUnutilizedGPUNodes: 1}"
    provisioner = f"apiVersion: gpu.scheduling/v1\nkind: NodeProvisioner\nmetadata: {{name: sized}}\nspec: {spec}\n"
    files = msgspec.json.encode({"a.yaml": f"{pool}\n---\n{provisioner}"}).decode()
    scenario = "apiVersion: gpu.scheduling/v1\nkind: Scenario\nmetadata: {name: s}\nspec:\n  duration: 1m\n"
    scenario += f"  policies: [{{files: {files}}}]\n  cluster: {{nodes: [{{pool: a100, count: 2}}]}}\n"
    (tmp_path / "s.yaml").write_text(scenario, encoding="utf-8")
    assert main(["simulate", str(tmp_path / "s.yaml"), "-o", f"json={tmp_path / 'out'}"]) == 0
    told = msgspec.json.decode((tmp_path / "out").read_bytes())
    VALIDATOR.validate(told)
    sized = told["timeline"][-1]["provisioners"]["sized"]
    assert set(sized) == {"current_size", "target_size", "tainted", "gpus_used", "gpus_total"}
    assert (sized["current_size"], sized["gpus_total"]) == (2, 16)


def test_two_sets_of_policies_stand_beside_one_another(both: Reported) -> None:
    text = both.read("text")
    assert text.startswith("FAILED: after: evictions: at most 0, found ")
    (evictions,) = [line.split() for line in text.splitlines() if line.startswith("evictions")]
    assert evictions[1:3] == ["0", "*"]
    assert "before: best in pending GPU-minutes and evictions\n" in text
    assert "after is now in force" in text
    assert "evictions | 0 \\* |" in both.read("markdown")


def test_pipelines_see_what_failed(both: Reported) -> None:
    suite = tree(both.read("junit"))
    failures = [
        (case.get("name"), each.get("type")) for case in suite.iter("testcase") for each in case.iter("failure")
    ]
    assert failures == [("after: evictions: at most 0", "ExpectationFailed")]
    assert both.read("github").startswith("::error title=ExpectationFailed::after: evictions: at most 0, found ")
    (result,) = json.loads(both.read("sarif"))["runs"][0]["results"]
    assert result["ruleId"] == "ExpectationFailed"


def test_a_report_is_one_page_and_its_pictures(both: Reported) -> None:
    names = sorted(path.name for path in both.report.iterdir())
    assert names == ["capacity.svg", "cost.svg", "disruption.svg", "index.html", "leaving.svg", "queue.svg"]
    page = (both.report / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 5
    assert "://" not in page.replace("http://www.w3.org/", "")
    for name in names:
        if name.endswith(".svg"):
            root = tree((both.report / name).read_text(encoding="utf-8"))
            assert root.get("color") is not None


@pytest.mark.parametrize("name", PICTURES)
def test_the_example_shows_what_its_report_draws(both: Reported, name: str, pytestconfig: pytest.Config) -> None:
    drawn, shown = (both.report / name).read_text(encoding="utf-8"), EXAMPLE / name
    if pytestconfig.getoption("--record"):
        shown.write_text(drawn, encoding="utf-8")
    if shown.read_text(encoding="utf-8") != drawn:
        again = "python -m pytest tests/unit/report/simulation/test_report.py --record"
        pytest.fail(f"{shown.name} is not what the report draws now: {again}", pytrace=False)


def test_two_sets_of_policies_that_come_to_the_same_are_told_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = (EXAMPLE / "scenario.yaml").read_text(encoding="utf-8").replace("duration: 12h", "duration: 121m")
    folder = shutil.copytree(EXAMPLE, tmp_path / "example")
    shutil.copytree(folder / "policies" / "before", folder / "policies" / "again")
    (folder / "scenario.yaml").write_text(story, encoding="utf-8")
    asked = [each for name in ("before", "again") for each in ("--policies", str(folder / "policies" / name))]
    assert main(["simulate", str(folder / "scenario.yaml"), *asked]) == 0
    told = capsys.readouterr().out
    assert "No difference in GPU-hours paid, GPU utilization, pending GPU-minutes and evictions." in told
    assert "*" not in told
