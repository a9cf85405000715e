"""The Dockerfile builds what deploy/core runs: its commands, step by step, in a clean folder."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from reconciler import __version__
from tests.lab.places import REPOSITORY
from tests.stages.image import Step, carry_out, entry_point, steps

STEPS = steps((REPOSITORY / "Dockerfile").read_text())


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image")
    carry_out(STEPS, root)
    return root


def run(image: Path, *arguments: str, cwd: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(cwd)}
    command = [*entry_point(STEPS, image), *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_of_the_image_is_this_version(image: Path, tmp_path: Path) -> None:
    assert run(image, "--version", cwd=tmp_path) == f"reconciler {__version__}\n"


def test_policies_are_rendered_and_checked_against_karpenters_schema(image: Path, tmp_path: Path) -> None:
    told = run(image, "render", str(REPOSITORY / "policies"), "-e", "prod", cwd=tmp_path)
    assert "kind: NodePool" in told
    assert list(image.glob("app/lib/python*/site-packages/reconciler/defaults/karpenter.sh_nodepools.json"))


def test_everything_can_be_read_by_any_user(image: Path) -> None:
    modes = {path: path.stat().st_mode for path in (image / "app").rglob("*") if not path.is_symlink()}
    assert not [path for path, mode in modes.items() if not mode & stat.S_IROTH]


def last(instruction: str) -> Step:
    return [step for step in STEPS if step.instruction == instruction][-1]


def test_the_image_runs_as_the_user_of_the_deployment() -> None:
    controller = (REPOSITORY / "deploy/core/controller.yaml").read_text()
    user, _, group = last("USER").arguments.partition(":")
    assert f"runAsUser: {user}" in controller
    assert f"runAsGroup: {group}" in controller
    assert not last("USER").stage
