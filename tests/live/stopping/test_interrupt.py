"""However a run ends, no process of it is left, and no folder. `make test-long` tries more moments."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.stopping.interrupted_run import SECONDS, Run
from tests.slow import long


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs = []

    def started(*arguments: str) -> Run:
        runs.append(Run(tmp_path, *arguments))
        return runs[-1]

    yield started
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
        run.process.communicate()


@pytest.mark.usefixtures("lab")  # so that a missing lab skips, or fails, this file too
@pytest.mark.parametrize("moment", [long("etcd"), long("apiserver"), "karpenter"])
def test_ctrl_c_during_a_test_run_leaves_nothing_behind(start: Callable[..., Run], moment: str) -> None:
    run = start("-m", "pytest", "-p", "no:cacheprovider", "tests/live/test_karpenter.py")
    run.wait_until(lambda: run.logs(moment))
    assert run.alive()
    run.send(signal.SIGINT)
    told, _ = run.process.communicate(timeout=SECONDS)
    assert run.process.returncode == pytest.ExitCode.INTERRUPTED, told
    assert run.alive() == []
    assert list(run.folder.glob("reconciler-lab-*")) == []


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("number", "moment"), [(signal.SIGINT, "export KUBECONFIG="), long(signal.SIGTERM, "lab: control plane is up")]
)
def test_a_person_s_lab_stops_when_told_to(start: Callable[..., Run], number: signal.Signals, moment: str) -> None:
    run = start("-m", "tests.lab")
    assert run.process.stdout
    said = iter(run.process.stdout.readline, "")
    assert any(line.startswith(moment) for line in said)
    run.send(number)
    told, _ = run.process.communicate(timeout=SECONDS)
    assert "nothing is left running" in told
    assert run.process.returncode == 0
    assert run.alive() == []
    assert list(run.folder.glob("reconciler-lab-*")) == []


@pytest.mark.usefixtures("lab")
def test_even_a_killed_run_takes_its_processes_with_it(start: Callable[..., Run]) -> None:
    run = start("-m", "tests.lab")
    run.wait_until(lambda: run.logs("controllers"))
    run.send(signal.SIGKILL)
    run.process.wait()
    deadline = time.monotonic() + 30
    while run.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run.alive() == []
