"""`reconciler schema`: what it prints can be taken as it is, and what it writes is what is committed."""

import json
from pathlib import Path

import pytest
import yaml

from reconciler.cli.main import main
from reconciler.policy.rules.kinds import KINDS
from reconciler.report.generated import published_files
from reconciler.schema.generated import generated_files
from reconciler.simulate.scenario.reading import scenario_files


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["schema", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((), "schemas/policies.v1.json"),
        (("--overlay",), "schemas/policies.overlay.v1.json"),
        (("NodeProvisioner",), "schemas/node-provisioner.v1.json"),
        (("nodeprovisioner", "--overlay"), "schemas/node-provisioner.overlay.v1.json"),
    ],
)
def test_a_schema_is_printed_as_it_is_committed(
    arguments: tuple[str, ...], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = told(capsys, *arguments)
    assert printed == generated_files()[path]
    json.loads(printed)


def test_definitions_can_be_piped_into_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    every = list(yaml.safe_load_all(told(capsys, "--crd")))
    assert [each["spec"]["names"]["kind"] for each in every] == [kind.name for kind in KINDS]
    (one,) = yaml.safe_load_all(told(capsys, "GpuClaim", "--crd"))
    assert one["metadata"]["name"] == "gpuclaims.gpu.scheduling"


def test_everything_is_written_below_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = told(capsys, "--write", str(tmp_path)).splitlines()
    every = generated_files() | published_files() | scenario_files()
    assert names == sorted(every)
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in names} == every


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (("--overlay", "--crd"), "--overlay and --crd cannot be combined"),
        (("GpuPool", "--write", "."), "remove the other options"),
        (("GpuPools",), 'there is no kind "GpuPools"; did you mean "GpuPool"?'),
    ],
)
def test_wrong_usage_says_what_to_do(
    arguments: tuple[str, ...], remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", *arguments]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert remedy in err
