"""The built wheel works by itself: what users install, not the checkout."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from reconciler import __version__
from reconciler.sources.input_file import SCHEMA
from tests.lab.places import REPOSITORY

DEFAULTS = "reconciler/defaults"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the checkout as `make wheel` does it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(REPOSITORY)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; its dependencies are borrowed from ours, which the lock pins."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    command = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "install", "--quiet", "--no-deps"]
    subprocess.run([*command, str(wheel)], check=True)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(installed: Path, *command: str, cwd: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    done = subprocess.run(
        [installed / "bin" / command[0], *command[1:]],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_installed_package_is_the_wheel_s(installed: Path, tmp_path: Path) -> None:
    where = run(installed, "python", "-c", "import reconciler; print(reconciler.__file__)", cwd=tmp_path)
    assert where.startswith(str(installed))


def test_the_console_script_and_the_module_say_the_same(installed: Path, tmp_path: Path) -> None:
    told = run(installed, "reconciler", "--version", cwd=tmp_path)
    assert told == f"reconciler {__version__}\n"
    assert run(installed, "python", "-m", "reconciler", "--version", cwd=tmp_path) == told


def test_the_demo_runs_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    told = run(installed, "reconciler", "demo", "--folder", "left", cwd=tmp_path)
    assert "20 empty nodes deleted" in told
    assert (tmp_path / "left" / "report.html").exists()


PROGRAM = """
from reconciler.model.bundle import RenderRequest
from reconciler.sources.input_file import (default_templates, karpenter_schema)
from reconciler.sources.renderer import render
(done,) = render(default_templates(), [RenderRequest("node_pool.yaml.j2", {})])
print([text.path for text in default_templates()], karpenter_schema() is not None, done.problem.code)
"""


def test_templates_and_schema_are_found_without_the_checkout_and_can_be_rendered(
    installed: Path, tmp_path: Path
) -> None:
    told = run(installed, "python", "-c", PROGRAM, cwd=tmp_path)
    templates = sorted(path.name for path in (REPOSITORY / "templates").iterdir())
    assert told == f"{templates} {(REPOSITORY / DEFAULTS / SCHEMA).exists()} RC402\n"


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        shipped = {name for name in names if name.startswith("reconciler/")}
        metadata = Parser().parsestr(archive.read(f"reconciler-{__version__}.dist-info/METADATA").decode())
    assert {name.split("/")[0] for name in names} == {"reconciler", f"reconciler-{__version__}.dist-info"}
    modules = {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "reconciler").rglob("*.py")}
    brought = [each for name in ("templates", "policies", "examples/demo") for each in (REPOSITORY / name).rglob("*")]
    defaults = {f"{DEFAULTS}/{path.relative_to(REPOSITORY)}" for path in brought if path.is_file()}
    # Built where no Go can be had, it lacks Karpenter's schema.
    schema = {f"{DEFAULTS}/{SCHEMA}"} if (REPOSITORY / DEFAULTS / SCHEMA).exists() else set()
    assert shipped == modules | defaults | schema
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == {"report", "agent"}
