"""A feature is one folder and its entry in FEATURES: all commands know a toy planted in a copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab.places import REPOSITORY

CLUSTER = REPOSITORY / "examples" / "production" / "cluster.json"

REASONS = '''
"""Why the toy counts a node, and takes its label off."""

import msgspec

from reconciler.model.plan.decision import Ref
from reconciler.model.plan.decision import CodeFacts

PLANNER = "toy"
LABEL = "gpu.scheduling/toy"


class Turns(msgspec.Struct, frozen=True, gc=False):
    """How often the toy has counted before."""

    times: int


class ToyCounts(CodeFacts, frozen=True):
    template = "{node} is counted by the toy, which has counted {before}."

    node: str
    before: Turns


class ToyLeaves(CodeFacts, frozen=True):
    template = "The toy leaves {object}."

    object: Ref
'''

PLANNER = '''
"""Labels each node that the toy has not counted yet."""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import (Label, Ref)
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.decision import Reason
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.toy.reasons import LABEL, PLANNER, ToyCounts, Turns


class ToyMemory(msgspec.Struct, frozen=True):
    times: int = 0


class ToyReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    counted: dict[str, int] = {}


def toy(inputs: Inputs, draft: Draft) -> Verdict:
    turns = Turns(inputs.memory.section(PLANNER, ToyMemory).times)
    found = []
    for pool in inputs.desired.pools:
        for node in (each.node for each in draft.fleet.pool(pool.name).nodes):
            if LABEL not in node.metadata.labels:
                subject = Ref("Node", "", node.name, node.metadata.uid)
                why = Reason(ToyCounts(node.name, turns), pool.origin())
                found.append(Decision(PLANNER, subject, Label(labels=((LABEL, "counted"),)), why, pool.name))
    pools = [each.pool for each in found]
    return Verdict(tuple(found), reports=(ToyReport({pool: pools.count(pool) for pool in pools}),))


def settled(inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory:
    before = memory.section(PLANNER, ToyMemory)
    counted = sum(each.planner == PLANNER and isinstance(each.act, Label) for each in decisions)
    return memory.with_section(PLANNER, ToyMemory(before.times + counted))
'''

FEATURE = '''
"""Counts nodes, to show what a feature is."""

from reconciler.model.plan.decision import (Label, Ref)
from reconciler.plan.feature.feature import Feature, CycleGauge, declared_in
from reconciler.plan.feature.invariant import Invariant
from reconciler.plan.feature.release_context import released
from reconciler.plan.feature.write_rights import WriteRight, where_acted_on
from reconciler.plan.toy import reasons
from reconciler.plan.toy.planner import ToyReport, settled, toy


def _counted(cycled):
    return {(pool,): nodes for pool, nodes in cycled.plan.report(ToyReport).counted.items()}


def _left(context):
    for node in context.nodes:
        if reasons.LABEL in node.metadata.labels:
            subject = Ref("Node", "", node.name, node.metadata.uid)
            yield released(subject, Label(labels=((reasons.LABEL, None),)), reasons.ToyLeaves(subject), node.pool)


def _twice(case):
    labelled = {node.name for node in case.inputs.observed.nodes if reasons.LABEL in node.metadata.labels}
    own = (each for each in case.acted if each.decision.planner == reasons.PLANNER)
    return (each.title for each in own if each.decision.subject.name in labelled)


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=toy,
    settle=settled,
    needs=("nodes",),
    reasons=declared_in(reasons),
    report=ToyReport,
    words={reasons.Turns: lambda turns: f"{turns.times} times"},
    rights=(WriteRight(where_acted_on, "", ("nodes/status",), ("patch",), "The toy counts nodes."),),
    pod_annotations=("gpu.scheduling/toy-note",),
    gauges=(CycleGauge("reconciler_toy_nodes", "Nodes that the toy counts.", ("pool",), _counted),),
    release=(_left,),
    invariants=(Invariant("the toy counts no node twice", _twice),),
)
'''

METRICS = """
import sys
from pathlib import Path

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.check import INVARIANTS, check
from reconciler.plan.files import dump
from reconciler.model.plan.plan import Plan
from reconciler.plan.planner import plan
from reconciler.plan.reason_catalog import decoded
from reconciler.serve.metrics import Metrics

inputs = dump.read(Path(sys.argv[1]).read_bytes())
fleet = Fleet(inputs.observed)
made = decoded(msgspec.json.encode(plan(inputs, fleet)), Plan)  # as from the process that plans
check(inputs, fleet, made)
again = plan(msgspec.structs.replace(inputs, memory=made.memory), fleet)
metrics = Metrics()
metrics.publish(CycleResult(at=inputs.now, inputs=inputs, plan=made))
print(metrics.text().decode())
print("section", made.memory.sections["toy"], again.memory.sections["toy"])
print("invariant", any(each.sentence == "the toy counts no node twice" for each in INVARIANTS))
"""


class Planted:
    """A copy of the package with the toy in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(REPOSITORY / "reconciler", folder / "reconciler", ignore=shutil.ignore_patterns("__pycache__"))
        for each in ("examples", "policies", "schemas", "templates"):
            shutil.copytree(REPOSITORY / each, folder / each)
        toy = folder / "reconciler" / "plan" / "toy"
        toy.mkdir()
        for name, text in {"reasons": REASONS, "planner": PLANNER, "feature": FEATURE}.items():
            (toy / f"{name}.py").write_text(text)
        (toy / "__init__.py").write_text("")
        features = folder / "reconciler" / "plan" / "features.py"
        listed = features.read_text().replace("SMART_PODS)", "SMART_PODS, TOY)")
        features.write_text("from reconciler.plan.toy.feature import FEATURE as TOY\n" + listed)

    def run(self, *words: str | Path, code: int | None = 0) -> str:
        """What `reconciler` prints."""
        return self.python("-m", "reconciler", *map(str, words), code=code)

    def python(self, *words: str, code: int | None = 0) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(self._folder), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert code in {None, done.returncode}, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return Planted(tmp_path_factory.mktemp("planted"))


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """The example, with the labels that scaling puts on nodes: the toy has its turn. One node was counted before."""
    listed = json.loads(CLUSTER.read_text())
    nodes = [each["metadata"] for each in listed["items"] if each["kind"] == "Node"]
    for node in nodes:
        node["labels"][names.PROVISIONER] = node["labels"][names.KARPENTER_POOL]
    nodes[0]["labels"]["gpu.scheduling/toy"] = "counted"
    written = tmp_path / "cluster.json"
    written.write_text(json.dumps(listed))
    return written


def test_a_toy_feature_is_known_to_all_commands(planted: Planted, cluster: Path, tmp_path: Path) -> None:
    at = ("--cluster", cluster, "--complete")
    counted = "is counted by the toy, which has counted 0 times."
    assert counted in planted.run("plan", *at)
    assert f"train-01 {counted}" in planted.run("explain", "node/train-01", *at)
    assert "to carry out" in planted.run("status", *at)
    assert "The toy leaves Node/train-00." in planted.run("release", *at)
    rights = planted.run("rbac", "--write")
    assert "The toy counts nodes." in rights
    assert "nodes/status" in rights
    assert "gpu.scheduling/toy-note" in planted.run("schema", "--write", tmp_path) + _written(tmp_path)
    assert "ToyCounts" in planted.run("simulate", "examples/demo/scenario.yaml", "--tree", ".")


def test_it_has_its_gauge_its_memory_and_its_invariant(planted: Planted, cluster: Path, tmp_path: Path) -> None:
    dumped = tmp_path / "dump.json"
    planted.run("dump", "--cluster", cluster, "--complete", "--out", dumped)
    told = planted.python("-c", METRICS, str(dumped))
    assert 'reconciler_toy_nodes{pool="a100-training"} 11.0' in told
    assert "section {'times': 17} {'times': 34}" in told
    assert "invariant True" in told


def _written(folder: Path) -> str:
    return (folder / "deploy" / "core" / "admission.yaml").read_text()
