"""Every command of the documentation is run as it stands, and ends as its page says.

Pages that need no cluster run in a copy of the checkout. The others run beside the fleet of `make lab`, as a team whose
repository has the policies that `reconciler import` wrote, and whose cluster has what `deploy/core` puts there.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.lab.demo_fleet import load_demo_fleet
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.stages.documentation import PAGES, Block, Command, blocks, commands, first_block

# Headings below which no cluster is needed; they run in a copy of the checkout.
OFFLINE = {
    "README.md": {"Install", "Policies", "A first plan", "Simulate"},
    "docs/how-to/simulate.md": {block.heading for block in blocks("docs/how-to/simulate.md")}
    - {"Forecast in a pull request"},
}
# Where a reader begins without policies, and writes them by `reconciler import`.
BEGINNINGS = {
    "docs/how-to/adopt.md",
    "README.md: Import existing NodePools",
    "README.md: A test cluster",
}
# They go on until they are told to stop, and so they are, once they have run for a while.
ENDLESS = re.compile(r"^reconciler (run|validate .*--watch)")
RUNS_SECONDS = 6
PROVISIONER = """\
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100-training}
spec: {poolName: a100-training, minSize: 0, maxSize: 20, minGPUUtilizationPercent: 70}
---
apiVersion: gpu.scheduling/v1
kind: DrainPolicy
metadata: {name: l4-inference}
spec: {poolNames: [l4-inference], utilizationThresholdPercent: 50}
"""
GUARD = """\
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {{name: fleet}}
spec:
  poolNames: ["*"]
  clusterUID: {uid}
  perPlan: {{maxRemovedNodes: 4, maxDisruptedGPUs: 64, maxDeletedNodePools: 0}}
"""
AUTOSCALER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "cluster-autoscaler", "namespace": "kube-system"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "cluster-autoscaler"}},
        "template": {
            "metadata": {"labels": {"app": "cluster-autoscaler"}},
            "spec": {
                "containers": [
                    {
                        "name": "cluster-autoscaler",
                        "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.32.0",
                        "command": ["./cluster-autoscaler", "--scale-down-unneeded-time=5m"],
                    }
                ]
            },
        },
    },
}


class Reader:
    """Somebody who types what a page says, in one folder and with one cluster."""

    def __init__(self, folder: Path, kubeconfig: Path | str, words: Mapping[str, str]) -> None:
        self.folder = folder
        self._words = words
        programs = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {
            "PATH": programs,
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "KUBECONFIG": str(kubeconfig),
            "RECONCILER_HISTORY": str(folder.parent / "history"),
        }

    def type(self, block: Block) -> None:
        for command in commands(block):
            text = command.text
            for word, instead in self._words.items():
                text = text.replace(word, instead)
            if text.startswith("make "):
                self._is_target(block, text.split()[1])
            elif ENDLESS.match(text):
                self._interrupt(block, text)
            else:
                self._run(block, Command(text, command.exit_code))

    def _run(self, block: Block, command: Command) -> None:
        done = subprocess.run(
            ["bash", "-c", command.text], cwd=self.folder, env=self._environment, capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip
        printed = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        said = f"{block.place}: {command.text}\nexit code {done.returncode}\n{printed}"
        assert done.returncode == command.exit_code, said
        assert "Traceback" not in done.stderr, said

    def _interrupt(self, block: Block, text: str) -> None:
        arguments = ["bash", "-c", f"exec {text}"]
        with subprocess.Popen(arguments, cwd=self.folder, env=self._environment, stderr=subprocess.PIPE) as process:
            time.sleep(RUNS_SECONDS)
            assert process.poll() is None, f"{block.place}: {text} ended by itself: {process.communicate()[1].decode()}"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        assert process.returncode in {0, 130}, f"{block.place}: {text}\n{errors.decode()}"
        assert b"Traceback" not in errors

    def _is_target(self, block: Block, target: str) -> None:
        makefile = (REPOSITORY / "Makefile").read_text()
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"{block.place}: make has no {target}"


def shell_blocks(page: str, is_offline: bool) -> list[Block]:
    chosen = [block for block in blocks(page) if block.language == "sh"]
    return [block for block in chosen if (block.heading in OFFLINE.get(page, ())) == is_offline]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A clone of the repository as it stands, with what pages take for granted beside it."""
    folder = tmp_path_factory.mktemp("offline") / "checkout"
    shutil.copytree(REPOSITORY, folder, ignore=lambda _, names: [each for each in names if each.startswith(".")])
    _commit(folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "bin-of-pipx")], check=True)
    subprocess.run([folder / "bin-of-pipx/bin/python", "-m", "pip", "install", "--quiet", "pipx"], check=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "pipx").symlink_to(folder / "bin-of-pipx/bin/pipx")
    (folder / "scenario.yaml").write_text(first_block("docs/how-to/simulate.md", "yaml", "kind: Scenario"))
    shutil.copytree(folder / "policies", folder.parent / "proposal" / "policies")
    return Reader(folder, folder / "there-is-none", {"https://example.com/fleet.git": str(folder)})


@pytest.mark.parametrize("page", [page for page in PAGES if shell_blocks(page, is_offline=True)])
def test_a_page_without_a_cluster(page: str, checkout: Reader) -> None:
    for block in shell_blocks(page, is_offline=True):
        checkout.type(block)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("examples/")])
def test_a_story(page: str, checkout: Reader) -> None:
    for block in shell_blocks(page, is_offline=False):
        checkout.type(block)


class Team:
    """Owner of the folders of a team, one for each walk through a page, beside one cluster."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self._folder = folder
        self._config = lab.site.kubeconfig("admin", lab.admin)
        (folder / "bin").mkdir()
        kubectl = folder / "bin" / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec "{lab.site.built.binary("kube")}" kubectl "$@"\n')
        kubectl.chmod(0o755)
        for name in ("deploy", "schemas", "examples"):
            shutil.copytree(REPOSITORY / name, folder / name)
        node = next(each for each in lab.admin.list("nodes") if "a100" in each["metadata"]["name"])["metadata"]["name"]
        pod = next(each for each in lab.admin.list("pods") if each["metadata"]["name"].startswith("train"))["metadata"]
        self._words = {
            "ip-10-3-41-7": node,
            "$POD": f"{pod['name']} --namespace {pod['namespace']}",
            "pod/team-a/train-0": f"pod/{pod['namespace']}/{pod['name']}",
            "b7d0a15": "HEAD",
            "sha256:...": '$(python3 -c \'import json; print(json.load(open("plan.json"))["digest"])\')',
            # KWOK runs no containers: what the page asks in the pod is asked here, of a history of the same form.
            "kubectl exec -n gpu-system reconciler-0 -- ": "",
            "2026-11-17T14:52:00Z": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600)),
        }
        system = next(each for each in lab.admin.list("namespaces") if each["metadata"]["name"] == "kube-system")
        Reader(folder, self._config, {}).type(_typed("reconciler import --to imported"))
        policies = folder / "imported" / "policies"
        (policies / "overlays" / "prod").mkdir(parents=True)
        (policies / "overlays" / "prod" / "guard.yaml").write_text(GUARD.format(uid=system["metadata"]["uid"]))
        (policies / "base" / "more.yaml").write_text(PROVISIONER)

    def reader(self, walk: str) -> Reader:
        """Somebody with a fresh copy of the team's repository, or of an empty one."""
        folder = self._folder.parent / re.sub(r"\W+", "-", walk)
        shutil.copytree(self._folder, folder)
        reader = Reader(folder, self._config, {**self._words, "https://git.example.com/fleet": str(folder)})
        if walk in BEGINNINGS:
            return reader
        for name in (".", "fleet"):
            shutil.copytree(folder / "imported", folder / name, dirs_exist_ok=True)
        _commit(folder)
        return reader


@pytest.fixture(scope="module")
def team(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    lab.wipe()
    lab.start("scheduler", "kwok", "karpenter")
    load_demo_fleet(lab)
    lab.admin.apply(AUTOSCALER, owner="kubectl")
    team = Team(lab, tmp_path_factory.mktemp("team"))
    reader = team.reader("what is there before")
    # A controller that adopts one pool, so that something is kept of what it did.
    enforced = "sed -i 's/mode: Observe/mode: Enforce/' policies/base/l4-inference.yaml"
    kept = f"reconciler run --history {reader.folder.parent / 'history'}"
    reader.type(_typed("kubectl apply --server-side -f schemas/crds", enforced, kept))
    yield team
    lab.wipe()


def walks() -> list[str]:
    """Pages beside a cluster, the README by its sections; what leaves the cluster comes last."""
    pages = [page for page in PAGES if not page.startswith("examples/") and shell_blocks(page, is_offline=False)]
    found = [page for page in pages if page != "README.md"]
    found += [f"README.md: {heading}" for heading in dict.fromkeys(b.heading for b in shell_blocks("README.md", False))]
    return sorted(found, key=lambda walk: (walk.endswith("leave.md"), walk))


@pytest.mark.parametrize("walk", walks())
def test_a_walk_beside_a_cluster(walk: str, team: Team) -> None:
    page, _, heading = walk.partition(": ")
    reader = team.reader(walk)
    for block in shell_blocks(page, is_offline=False):
        if heading in {"", block.heading}:
            reader.type(block)


def _typed(*lines: str) -> Block:
    return Block("before the page", 0, "sh", "", lines)


def _commit(folder: Path) -> None:
    """A repository with the branch main, and main of origin at the same commit."""
    who = ["-c", "user.name=team", "-c", "user.email=team@example.com"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "policies"],
        [*who, "commit", "--quiet", "--message", "The fleet"],
        ["update-ref", "refs/remotes/origin/main", "HEAD"],
    ):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)
