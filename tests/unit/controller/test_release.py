"""After a release the cluster is as one that never had us, NodePools apart."""

import copy
from pathlib import Path

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.release import ReleaseResult, take_off
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.plan.decision import Decision, Hold, Ref
from reconciler.model.policy.gpu import SmartPods
from reconciler.plan.guards.frozen import RELEASE
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.release import REASONS as OWN
from reconciler.plan.release import LabelsReleased, ReleasedWhenUnused, release, why_unsure
from reconciler.simulate.world import World
from tests.unit.controller.release_stage import NODE_POOL, Object, kept, node, pod, said, world

EVICT_AT = "gpu.scheduling/evict-at"
GATE, THEIR_GATE = "gpu.scheduling/claim", "example.com/queue"


class Standing:
    def holds(self) -> bool:
        return True


class Fallen:
    def holds(self) -> bool:
        return False


def of(kind: str, name: str, namespace: str = "") -> Ref:
    return Ref(kind, namespace, name)


def taken_off(found: World, pool: str = "") -> ReleaseResult:
    return take_off(found, Standing(), pool)


def codes(decisions: tuple[Decision, ...]) -> list[str]:
    return [each.reason.code for each in decisions]


def test_a_node_is_as_it_was_before_we_marked_it() -> None:
    marked, clean = world(NODE_POOL, node("n")), world(NODE_POOL, node("n", marked=False))
    before = said(marked, of("NodePool", "a100"))
    taken = taken_off(marked)
    assert said(marked, of("Node", "n")) == said(clean, of("Node", "n"))
    assert said(marked, of("NodePool", "a100")) == before
    assert taken.left == ()
    assert {outcome.result for _, outcome in taken.carried_out} == {"done"}


def test_each_round_has_one_action_a_subject_and_what_keeps_pods_away_goes_first() -> None:
    decisions = release(world(NODE_POOL, node("m"), node("n")).observe())
    assert [each.subject.name for each in decisions] == ["m", "n"]
    assert codes(decisions) == ["TaintReleased", "TaintReleased"]


def test_what_a_node_has_from_its_node_pool_stays_as_the_next_would_have_it_too() -> None:
    cluster = world(NODE_POOL, node("n", marked=False))
    assert release(cluster.observe()) == ()


def test_a_label_of_the_claim_is_karpenter_s_though_the_template_has_it_no_more() -> None:
    template = copy.deepcopy(NODE_POOL)
    del template["spec"]["template"]["metadata"]["labels"]["gpu.scheduling/pool"]  # type: ignore[index]
    claim: Object = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "c", "labels": {"gpu.scheduling/pool": "a100"}},
        "status": {"nodeName": "n"},
    }
    assert release(world(template, claim, node("n", marked=False)).observe()) == ()
    (alone,) = release(world(template, node("n", marked=False)).observe())
    assert isinstance(alone.reason.facts, LabelsReleased)
    assert alone.reason.facts.keys == ("gpu.scheduling/pool",)


def test_without_karpenter_the_label_that_people_name_the_pool_by_stays() -> None:
    cluster = world(node("n", labels={"gpu.scheduling/pool": "a100"}))
    clean = world(node("n", marked=False, labels={"gpu.scheduling/pool": "a100"}))
    # What NodePools give for good is not ours; here nobody gives it.
    cluster.edit(of("Node", "n"), {"spec": {"taints": [*_without_lasting(cluster)]}})
    clean.edit(of("Node", "n"), {"spec": {"taints": [*_without_lasting(clean)]}})
    taken_off(cluster)
    assert said(cluster, of("Node", "n")) == said(clean, of("Node", "n"))


def _without_lasting(found: World) -> list[Object]:
    there = found.get(of("Node", "n"))
    assert there
    return [each for each in there["spec"]["taints"] if each["key"] != "gpu.scheduling/reserved"]


def test_pods_are_let_through_our_gates_and_no_others() -> None:
    cluster = world(pod("train", GATE, THEIR_GATE, "gpu.scheduling/other"))
    taken = taken_off(cluster)
    found = said(cluster, of("Pod", "train", "team"))
    assert found
    assert found["spec"]["schedulingGates"] == [{"name": THEIR_GATE}]
    assert len(taken.carried_out) == 2


def test_no_pod_is_told_any_more_when_it_is_evicted() -> None:
    cluster, clean = world(pod("train")), world(pod("train"))
    theirs = {"gpu.scheduling/checkpoint": "120s", "gpu.scheduling/checkpointed-at": "1793606390"}
    cluster.edit(
        of("Pod", "train", "team"), {"metadata": {"annotations": {**theirs, EVICT_AT: "2026-11-02T08:00:00Z"}}}
    )
    clean.edit(of("Pod", "train", "team"), {"metadata": {"annotations": theirs}})
    assert codes(release(cluster.observe())) == ["EvictionReleased"]
    taken_off(cluster)
    assert said(cluster, of("Pod", "train", "team")) == said(clean, of("Pod", "train", "team"))


PDB = kept("PodDisruptionBudget", "policy/v1", "a100", "team", spec={"selector": {}})
PRIORITY = kept("PriorityClass", "scheduling.k8s.io/v1", "a100-high", value=100)


def test_what_templates_yielded_beside_node_pools_is_deleted() -> None:
    ours = {"gpu.scheduling/managed": "true", "gpu.scheduling/pool": "a100"}
    smart = pod("smart", GATE, labels=ours, priority="a100-high", namespace=SmartPods().namespace)
    cluster = world(PDB, PRIORITY, smart, pod("train"))
    taken_off(cluster)
    assert cluster.get(of("PodDisruptionBudget", "a100", "team")) is None
    assert cluster.get(of("PriorityClass", "a100-high")) is None
    assert cluster.get(of("Pod", "train", "team")) is not None
    left = cluster.get(of("Pod", "smart", SmartPods().namespace))
    assert left is None or left["metadata"]["deletionTimestamp"]


def test_the_pod_of_a_tenant_with_our_labels_stays_is_let_through_and_uses_its_priority() -> None:
    forged = {"gpu.scheduling/managed": "true", "gpu.scheduling/pool": "a100", "gpu.scheduling/component": "x"}
    cluster = world(PRIORITY, pod("forged", GATE, labels=forged, priority="a100-high"))
    taken_off(cluster)
    left = cluster.get(of("Pod", "forged", "team"))
    assert left is not None
    assert "deletionTimestamp" not in left["metadata"]
    assert not left["spec"].get("schedulingGates")
    assert cluster.get(of("PriorityClass", "a100-high")) is not None


def test_a_priority_that_pods_of_others_name_stays_and_is_told() -> None:
    cluster = world(PRIORITY, pod("train", priority="a100-high"))
    taken = taken_off(cluster)
    assert cluster.get(of("PriorityClass", "a100-high")) is not None
    (left,) = taken.left
    assert isinstance(left.reason.facts, ReleasedWhenUnused)
    assert (left.act, left.reason.facts.pods) == (Hold(), 1)


def test_one_pool_is_released_and_the_others_keep_what_they_have() -> None:
    other = {"karpenter.sh/nodepool": "l4"}
    cluster = world(NODE_POOL, node("n"), node("m", labels=other), PDB, pod("train", GATE))
    before = said(cluster, of("Node", "m"))
    assert taken_off(cluster, "a100").left == ()
    assert said(cluster, of("Node", "n")) == said(world(node("n", marked=False)), of("Node", "n"))
    assert said(cluster, of("Node", "m")) == before
    assert said(cluster, of("Pod", "train", "team")) == said(world(pod("train", GATE)), of("Pod", "train", "team"))
    assert cluster.get(of("PodDisruptionBudget", "a100", "team")) is None


def test_a_freeze_of_everything_ends_with_the_release_of_everything() -> None:
    cluster = world()
    cluster.edit(of("Namespace", "gpu-system"), {"metadata": {"annotations": {"gpu.scheduling/frozen-until": "x"}}})
    assert codes(release(cluster.observe(), "a100")) == []
    assert codes(release(cluster.observe())) == ["FreezeReleased"]
    taken_off(cluster)
    assert release(cluster.observe()) == ()


def test_a_node_in_others_hands_is_released_too() -> None:
    disrupted = node("n")
    disrupted["spec"]["unschedulable"] = True
    cluster = world(NODE_POOL, disrupted)
    assert taken_off(cluster).left == ()


def test_a_node_that_is_leaving_takes_our_marks_with_it() -> None:
    leaving = node("n")
    leaving["metadata"] |= {"deletionTimestamp": "2026-11-02T08:00:00Z", "finalizers": ["karpenter.sh/termination"]}
    assert release(world(NODE_POOL, leaving).observe()) == ()


def test_where_nothing_comes_off_it_is_not_tried_forever() -> None:
    taken = take_off(world(NODE_POOL, node("n")), Fallen())
    assert [outcome.result for _, outcome in taken.carried_out] == ["stale"]
    assert codes(taken.left) == ["TaintReleased"]


KEPT = "priorityclasses.scheduling.k8s.io labelled gpu.scheduling/managed=true"


@pytest.mark.parametrize("kind", ["nodes", "pods", KEPT])
def test_what_could_not_be_seen_is_told(kind: str) -> None:
    assert why_unsure(Observed(unread=(Unread(kind, "403"),))) == f"{kind}: 403"
    assert why_unsure(Observed(unread=(Unread("csinodes.storage.k8s.io", "403"),))) == ""


def test_every_decision_names_what_it_is_about_by_uid_and_is_ours_to_make_when_frozen() -> None:
    cluster = world(NODE_POOL, node("n"), PDB, PRIORITY, pod("train", GATE))
    for each in release(cluster.observe()):
        assert each.subject.uid
        assert each.planner == RELEASE


def test_every_reason_has_its_sentence() -> None:
    assert {each.__name__ for each in OWN} <= set(REASONS)


@pytest.fixture
def dumped(tmp_path: Path) -> Path:
    """What kubectl would print of a cluster with our marks."""
    objects = [NODE_POOL, node("n"), pod("train", GATE)]
    path = tmp_path / "cluster.json"
    path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def test_the_command_tells_what_it_would_take_off_and_what_stays(
    dumped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "--cluster", str(dumped), "--complete"]) == 0
    told = capsys.readouterr().out
    assert "Node/n" in told
    assert "the taint gpu.scheduling/deletion-time:PreferNoSchedule of reconciler" in told
    assert "1 NodePool with their nodes, labels and budgets, unchanged: a100" in told
    assert "2 objects to release: to release them, run release --yes without --cluster." in told


def test_the_command_never_writes_into_a_file(dumped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["release", "--cluster", str(dumped), "--yes"]) == 64
    assert "cannot be combined with --cluster" in capsys.readouterr().err
