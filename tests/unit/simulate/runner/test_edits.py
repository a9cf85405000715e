"""What people do to objects in a scenario takes effect, is told, and is taken back; what can't be is refused."""

from pathlib import Path
from typing import Literal

import pytest

from reconciler.controller.simulation.load import SimulationRequest, prepared
from reconciler.model.plan.decision import Ref
from reconciler.model.policy.gpu import PoolTaint
from reconciler.model.quantity import Duration
from reconciler.protocol.preconditions import Object
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.edits import Edits
from reconciler.simulate.runner.run import run
from reconciler.simulate.scenario.cluster import Constant, ScenarioWorkload
from reconciler.simulate.scenario.spec import Scenario, ScenarioEdit
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests.lab.places import REPOSITORY
from tests.unit.simulate.scenario.test_reading import WHOLE, told
from tests.unit.simulate.stage import START, node, pod

TAINT = PoolTaint(key="mine", value="yes", effect="NoSchedule")
STORY = """\
apiVersion: gpu.scheduling/v1
kind: Scenario
metadata: {name: edited}
spec:
  duration: 90m
  policies:
    - {folder: FOLDER/before}
    - {folder: FOLDER/after, at: 10m}
  cluster: {nodes: [{pool: a100, count: 2}]}
  workloads: [{name: training, gpus: 8, tolerations: [{key: dedicated}], constant: {pods: 1}}]
  edits: [EDIT]
"""
FROZEN = '{gpu.scheduling/frozen-until: "2027-01-01T00:00:00Z"}'
FREEZE = f"{{at: 0s, lasts: 60m, kind: NodePool, name: a100, annotations: {FROZEN}}}"
BUDGET = "{at: 0s, lasts: 60m, kind: PodDisruptionBudget, name: training, maxUnavailable: 0}"


class Edited:
    """Two nodes, one of them tainted by its people, and the edits of a scenario."""

    def __init__(self, *edits: ScenarioEdit) -> None:
        self.engine = Engine(1, START)
        self.stage = Stage(self.engine, _world())
        self.told: list[str] = []
        training = ScenarioWorkload(name="training", gpus=8, constant=Constant(pods=1))
        scenario = Scenario(duration=Duration(60_000), policies=[], workloads=[training], edits=list(edits))
        Edits(scenario, lambda _, told: self.told.append(told)).start(self.stage)

    def after(self, seconds: int, kind: str = "Node", name: str = "n1") -> Object | None:
        self.engine.run(type(START)(START + seconds * 1_000))
        return self.stage.world.get(Ref(kind, "" if kind == "Node" else "default", name))


def test_a_cordon_a_label_and_a_taint_come_and_go() -> None:
    edited = Edited(
        ScenarioEdit(
            at=Duration(1_000), lasts=Duration(5_000), kind="Node", name="n1", unschedulable=True, labels={"a": "b"}
        ),
        ScenarioEdit(at=Duration(2_000), lasts=Duration(9_000), kind="Node", name="n1", taints=[TAINT]),
    )
    before = edited.after(0)
    during = edited.after(3)
    assert before is not None
    assert during is not None
    assert during["spec"]["unschedulable"] is True
    assert during["metadata"]["labels"]["a"] == "b"
    assert [each["key"] for each in during["spec"]["taints"]] == ["theirs", "mine"]
    later = edited.after(7)
    assert later is not None
    assert "unschedulable" not in later["spec"]
    assert later["metadata"]["labels"] == before["metadata"]["labels"]
    assert len(later["spec"]["taints"]) == 2
    last = edited.after(20)
    assert last is not None
    assert last["spec"] == before["spec"]
    assert edited.told[0] == "Node/n1: cordoned, label a=b, by a user"
    assert edited.told[-1] == "Node/n1: taint mine=yes:NoSchedule, undone"


def test_a_budget_is_made_changed_and_deleted() -> None:
    edited = Edited(
        ScenarioEdit(at=Duration(1_000), kind="PodDisruptionBudget", name="training", max_unavailable=1),
        ScenarioEdit(
            at=Duration(2_000), lasts=Duration(1_000), kind="PodDisruptionBudget", name="training", max_unavailable=0
        ),
        ScenarioEdit(at=Duration(9_000), kind="PodDisruptionBudget", name="training", deleted=True),
    )
    budgets = [edited.after(second, "PodDisruptionBudget", "training") for second in (0, 1, 2, 5, 10)]
    assert [each and each["spec"]["maxUnavailable"] for each in budgets] == [None, 1, 0, 1, None]


def test_those_without_a_name_are_picked_by_chance_from_all_that_are_there() -> None:
    edited = Edited(ScenarioEdit(at=Duration(1_000), kind="Node", count=5, labels={"a": "b"}))
    edited.after(2)
    assert edited.told == ["2 Nodes: label a=b, by a user"]


def test_pods_are_deleted_by_their_labels_again_and_again_the_youngest_first() -> None:
    at, every = Duration(3_000), Duration(10_000)
    edited = Edited(ScenarioEdit(at=at, every=every, kind="Pod", having={"app": "a"}, order="Youngest", deleted=True))
    for name in ("first", "second"):
        edited.stage.world.put(pod(name))
    edited.stage.world.edit(Ref("Pod", "default", "first"), {"metadata": {"labels": {"gpu.scheduling/pool": "x"}}})
    edited.after(5)
    assert [each["metadata"]["name"] for each in edited.stage.world.of("Pod")] == ["first"]
    edited.after(60)
    assert list(edited.stage.world.of("Pod")) == []
    assert edited.told == [f"Pod/default/{name}: deleted, by a user" for name in ("second", "first")]


def test_a_gate_is_lifted_and_others_stay() -> None:
    edited = Edited(ScenarioEdit(at=Duration(1_000), kind="Pod", name="gated", lifts="other.example.com/gate"))
    gates = [{"name": "other.example.com/gate"}, {"name": "gpu.scheduling/capacity"}]
    edited.stage.world.put(pod("gated", schedulingGates=gates))
    found = edited.after(2, "Pod", "gated")
    assert found is not None
    assert found["spec"]["schedulingGates"] == gates[1:]
    assert edited.told == ["Pod/default/gated: gate other.example.com/gate removed, by a user"]


@pytest.mark.parametrize("order", ["Oldest", "Youngest"])
def test_a_claim_is_deleted_underneath_by_its_order(order: Literal["Oldest", "Youngest"]) -> None:
    edited = Edited(ScenarioEdit(at=Duration(1_000), kind="NodeClaim", order=order, deleted=True))
    for name in ("c", "a", "b"):
        head = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name}}
        edited.stage.world.put(head)
    edited.after(2)
    left = [each["metadata"]["name"] for each in edited.stage.world.of("NodeClaim")]
    assert left == (["a", "b"] if order == "Oldest" else ["c", "a"])


@pytest.mark.parametrize("edit", [FREEZE, BUDGET], ids=["a freeze", "a budget"])
def test_the_controller_and_karpenter_mind_what_people_do(tmp_path: Path, edit: str) -> None:
    plain, minding = (_played(tmp_path, each) for each in ("", edit))
    assert _first_eviction_minutes(plain) < 30
    assert _first_eviction_minutes(minding) >= 60


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ("{at: 2h, kind: Node, unschedulable: true}", "the scenario ends before this time"),
        (
            "{at: 1m, kind: Node}",
            "spec.edits[0] must either set fields, or set deleted, or set maxUnavailable",
        ),
        ("{at: 1m, kind: Node, deleted: true, lasts: 1m}", "a deleted object is not restored"),
        ("{at: 1m, kind: NodePool, unschedulable: true}", "a NodePool has no taints and cannot be cordoned"),
        ("{at: 1m, kind: Node, maxUnavailable: 1}", "a Node has no such field"),
        ("{at: 1m, kind: PodDisruptionBudget, name: a, maxUnavailable: 1}", 'there is no workload "a" for the budget'),
        ("{at: 1m, kind: ConfigMap, deleted: true}", "spec.edits[0].kind"),
        ("{at: 1m, kind: Node, lifts: a/b}", "only pods have gates, and a removed gate cannot be restored"),
        ("{at: 1m, kind: Pod, lifts: a/b, lasts: 1m}", "only pods have gates, and a removed gate cannot be restored"),
        ("{at: 1m, every: 1ms, kind: Pod, deleted: true}", "the interval is below one second"),
    ],
)
def test_what_can_not_be_is_refused(edit: str, problem: str) -> None:
    assert any(problem in each for each in told(f"{WHOLE}  edits: [{edit}]\n")), told(f"{WHOLE}  edits: [{edit}]\n")


def _world() -> World:
    world = World(START)
    world.put(node("n1", taints=[{"key": "theirs", "value": "", "effect": "NoSchedule"}]))
    world.put(node("n2"))
    return world


def _played(folder: Path, edit: str) -> Simulated:
    policies = (REPOSITORY / "examples" / "taint-edit" / "policies").as_posix()
    file = folder / "s.yaml"
    file.write_text(STORY.replace("FOLDER", policies).replace("EDIT", edit), encoding="utf-8")
    (play,) = prepared(SimulationRequest(file, tree=Path("/"))).plays
    return run(play)


def _first_eviction_minutes(found: Simulated) -> int:
    return next((each.at - found.start) // 60_000 for each in found.steps if each.evicted)
