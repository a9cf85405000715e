"""`make lab` as the README walks through it: import, plan, an edit; and what it says when a part of it dies."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from tests.lab.demo_fleet import load_demo_fleet
from tests.lab.lab import Lab
from tests.live.stopping.interrupted_run import SECONDS, Run


@pytest.fixture(scope="module")
def demo(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab with the demo fleet on it."""
    lab.wipe()
    lab.start("scheduler", "kwok", "karpenter")
    load_demo_fleet(lab)
    yield lab
    lab.wipe()


@pytest.fixture
def walk(demo: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, ourselves in it, and the kubeconfig that `make lab` prints."""
    monkeypatch.setenv("KUBECONFIG", str(demo.site.kubeconfig("admin", demo.admin)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_s_walk(walk: Path, demo: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "--to", "fleet"]) == 0, capsys.readouterr().err
    told = capsys.readouterr()
    assert told.out.splitlines()[:2] == [
        f"fleet/policies/base/{name}.yaml" for name in ("a100-training", "l4-inference")
    ]
    assert main(["plan", "--policies", "fleet/policies"]) == 0
    planned = capsys.readouterr().out
    assert "NodePool/a100-training is adopted because of adopt: true; none of its nodes drifts." in planned
    assert "held" not in planned
    policy = walk / "fleet" / "policies" / "base" / "a100-training.yaml"
    written = policy.read_text()
    assert "capacity: {cpu: 95, memory: 1151Gi, pods: 250}" in written
    policy.write_text(written.replace("labels: {team: research}", "labels: {team: science}"))
    assert policy.read_text() != written
    assert main(["plan", "--policies", "fleet/policies"]) == 0
    assert "8 of 8 nodes would drift" in capsys.readouterr().out
    node = next(each for each in demo.admin.list("nodes") if "a100" in each["metadata"]["name"])["metadata"]["name"]
    assert main(["explain", f"node/{node}", "--policies", "fleet/policies"]) == 0
    assert "NodeClaim/a100-training-" in capsys.readouterr().out
    assert main(["status", "--policies", "fleet/policies"]) == 0
    status = capsys.readouterr().out
    assert re.search(r"a100-training +Observe +8 +5 +64 +40 +0", status), status


@pytest.mark.usefixtures("lab")
def test_a_part_that_dies_leaves_its_last_words(tmp_path: Path) -> None:
    run = Run(tmp_path, "-m", "tests.lab")
    assert run.process.stdout
    try:
        said = iter(run.process.stdout.readline, "")
        assert any("Ctrl-C stops everything" in line for line in said)
        (karpenter,) = [pid for pid, line in run.parts().items() if "/karpenter " in line]
        os.kill(karpenter, signal.SIGABRT)  # a Go program answers with all that it was doing
        told, _ = run.process.communicate(timeout=SECONDS)
    finally:
        run.process.kill()
        run.process.wait()
    assert "karpenter ended by itself: stopping the rest. The end of its log:" in told
    assert "rip " in told or "goroutine" in told
    assert list(run.folder.glob("reconciler-lab-*")) == []
