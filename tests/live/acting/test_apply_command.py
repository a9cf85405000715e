"""`reconciler apply` on a real cluster: one cycle, what came of it in its exit code, and never beside a controller."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.model import names
from tests.lab import capacity, fleet, identities
from tests.lab.lab import Lab
from tests.stages.controlled import Site

SCALED = """
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 0, maxSize: 9, minGPUUtilizationPercent: 80, scaleDownDelay: 1m}
"""
LIMITED = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a100"}}


@pytest.fixture
def site(cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
    yield made
    made.clean()


def run(site: Site, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, "--policies", str(site.policies)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_what_is_done_is_told_and_again_there_is_nothing_to_do(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write()
    code, out, _ = run(site, capsys, "apply")
    assert code == 0, out
    assert "apply NodePool/a100" in out
    assert "2 done" in out  # with the PriorityClass of all smart pods
    pool = site.lab.admin.get("nodepools", "a100")
    assert pool
    assert pool["metadata"]["labels"][names.MANAGED] == "true"
    assert site.lease_holder() == ""
    audit = site.lab.audit()
    code, out, _ = run(site, capsys, "apply")
    assert (code, "Nothing to do" in out) == (0, True)
    assert {each.object.partition("/")[0] for each in audit.writes(identities.RECONCILER)} == {
        "leases.coordination.k8s.io"
    }


def test_what_cannot_be_done_leaves_the_rest_and_is_finished_later(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody else has set a limit meanwhile; server-side apply takes nothing from anyone."""
    site.write()
    assert run(site, capsys, "apply")[0] == 0
    site.write(limits={"nodes": 8})
    site.write("h100")
    code, _, _ = run(site, capsys, "plan", "--out", str(site.policies.parent / "plan.json"))
    assert code == 0
    site.lab.admin.apply({**LIMITED, "spec": {"limits": {"nodes": "2"}}}, owner="somebody")
    code, out, _ = run(site, capsys, "apply", "-o", "json")
    outcomes = {each["subject"]["name"]: each["result"] for each in json.loads(out)["outcomes"]}
    held = {each["subject"]["name"]: each["sentence"] for each in json.loads(out)["decisions"] if not each["action"]}
    assert outcomes == {"h100": "done"}
    assert (code, "somebody" in held["a100"]) == (4, True)
    site.lab.admin.apply(LIMITED, owner="somebody")
    assert run(site, capsys, "apply")[0] == 0
    pool = site.lab.admin.get("nodepools", "a100")
    assert pool
    assert pool["spec"]["limits"] == {"nodes": "8"}


def test_the_nodes_of_a_node_pool_that_someone_else_made_are_only_observed(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.lab.admin.apply(capacity.NodePool("a100", [capacity.P4D]).manifest())
    for number in range(3):
        site.lab.admin.create(fleet.Shape(capacity.P4D, "a100").node(f"theirs-{number}", "eu-1a"))
    site.write()
    (site.policies / "scaled.yaml").write_text(SCALED)
    audit = site.lab.audit()
    _, out, _ = run(site, capsys, "apply")
    assert "NodePool/a100 was created by someone else, and its nodes are only observed" in out
    assert not [each for each in audit.writes(identities.RECONCILER) if each.object.partition("/")[0] == "nodes"]
    site.write(adopt=True)
    assert run(site, capsys, "apply")[0] == 0
    assert run(site, capsys, "apply")[0] == 0
    assert [each for each in audit.writes(identities.RECONCILER) if each.object.partition("/")[0] == "nodes"]


def test_a_saved_plan_is_carried_out_exactly_or_refused_with_what_moved(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write()
    plan = str(site.policies.parent / "plan.json")
    code, out, told = run(site, capsys, "plan", "--out", plan)
    digest = told.split()[-1]
    assert (code, re.fullmatch("sha256:[0-9a-f]{64}", digest) is not None) == (0, True)
    assert f"Digest of the saved plan, for `reconciler apply FILE --digest`: {digest}" in out
    site.write("h100")  # after it was saved
    reviewed = ["apply", plan, "--digest", digest]
    assert main(reviewed) == 0
    assert site.lab.admin.get("nodepools", "a100")
    assert site.lab.admin.get("nodepools", "h100") is None
    capsys.readouterr()
    assert main(reviewed) == 1
    told = capsys.readouterr().err
    assert "nothing was done: the plan is out of date" in told
    assert "NodePool/a100" in told
    (site.policies.parent / "plan.json").write_text("{}")
    assert main(reviewed) == 1
    assert "not a saved plan" in capsys.readouterr().err


def test_beside_a_controller_it_does_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write(mode="Observe")
    with site.replica() as replica:
        replica.wait_until_leading()
        audit = site.lab.audit()
        code, out, err = run(site, capsys, "apply")
        assert (code, out) == (1, "")
        assert "a controller runs here" in err
        assert site.lease_holder() in err
        assert not [each for each in audit.writes(identities.RECONCILER) if "nodepools" in each.object]
        assert replica.terminate()[0] == 0


def test_without_the_right_to_the_lease_it_says_so(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write()
    stranger = site.lab.site.kubeconfig("stranger", site.lab.site.api("stranger"))
    monkeypatch.setenv("KUBECONFIG", str(stranger))
    code, _, err = run(site, capsys, "apply")
    assert code == 1
    assert "leases" in err
    assert "forbidden" in err
    assert site.lab.admin.get("nodepools", "a100") is None


def test_a_cluster_file_is_nothing_to_act_on(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write()
    assert run(site, capsys, "apply", "--now", "2026-11-02T10:00:00Z")[0] == 64
    assert run(site, capsys, "run", "--cluster", str(site.policies / "a100.yaml"))[0] == 64


def answered(site: Site, answer: str, *arguments: str) -> tuple[int, str]:
    """What `apply` says on a terminal on which somebody writes the answer."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "reconciler", "apply", "--policies", str(site.policies), *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        told = b""
        with contextlib.suppress(OSError):  # the terminal is closed by whoever ends
            while part := os.read(ours, 4096):
                told += part
                if answer and b"Apply this plan?" in told:
                    os.write(ours, f"{answer}\n".encode())
                    answer = ""
        os.close(ours)
        return process.wait(), told.decode()


def test_on_a_terminal_a_plan_is_applied_once_it_is_confirmed(site: Site) -> None:
    site.write()
    code, told = answered(site, "n")
    assert (code, site.lab.admin.get("nodepools", "a100")) == (1, None)
    assert "NodePool/a100" in told.partition("Apply this plan?")[0]
    assert "nothing was done: the plan was not confirmed" in told
    assert site.lease_holder() == ""
    code, told = answered(site, "y")
    assert (code, "2 done" in told) == (0, True)
    assert site.lab.admin.get("nodepools", "a100")
    site.write("h100")
    code, told = answered(site, "", "--yes")
    assert (code, "Apply this plan?" in told) == (0, False)
    code, told = answered(site, "")
    assert (code, "Apply this plan?" in told, "Nothing to do" in told) == (0, False, True)
