"""NodePools that somebody else made are imported and adopted under a real Karpenter, and none of their nodes drifts."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.controller.cluster import ClusterPlace
from reconciler.controller.dry_run import dry_run
from reconciler.controller.policies import Origins, Question
from reconciler.model import names
from reconciler.model.plan.decision import Apply, Decision, Hold, Label
from reconciler.model.plan.plan import Plan
from tests.lab import capacity, fleet, identities
from tests.lab.api import Api, Manifest
from tests.lab.claim_watch import ClaimWatch, drift_of
from tests.lab.lab import Lab
from tests.stages.drift.asking import ask, edit_pool, pool_hash, settled

POOLS = ("plain", "tuned", "unnamed")
NODES_A_POOL = 2
STARTUP = {"key": "example.com/agent-not-ready", "effect": "NoSchedule", "value": "true"}
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "true"}
# What the GPU feature discovery writes on a node.
DISCOVERED = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.memory": "40960"}

_APPLY = "application/apply-patch+yaml"


def tuned() -> Manifest:
    """With much that few NodePools say, and measures in unusual words."""
    pool = capacity.NodePool(
        "tuned",
        [capacity.P4D],
        labels={"team": "research"},
        template={"startupTaints": [STARTUP], "terminationGracePeriod": "90m", "expireAfter": "43200m"},
        more={
            "weight": 10,
            "limits": {"cpu": "1000000m", "nvidia.com/gpu": 64},
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "Never",
                "budgets": [{"nodes": "20%"}, {"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h"}],
            },
        },
    ).manifest()
    pool["spec"]["template"]["metadata"]["annotations"] = {"example.com/owner": "{{ team }}: {% raw %} #1"}
    return pool


def plain() -> Manifest:
    """All of it has a field in a GpuPool; Karpenter replaces none of its nodes, so that a drift can be looked at."""
    quiet = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": [{"nodes": "0"}]}
    pool = capacity.NodePool("plain", [capacity.P4D], labels={"team": "research"}, taints=[TAINT])
    return dataclasses.replace(pool, more={"disruption": quiet}).manifest()


def unnamed() -> Manifest:
    """Without a requirement of instance types, and the others in another order than ours."""
    pool = capacity.NodePool("unnamed", []).manifest()
    _, *others = pool["spec"]["template"]["spec"]["requirements"]
    pool["spec"]["template"]["spec"]["requirements"] = others[::-1]
    return pool


def bought(lab: Lab, *pools: Manifest) -> None:
    """Nodes of each, all labelled, initialized and not drifted."""
    admin = lab.admin
    pods = []
    for pool in pools:
        name = pool["metadata"]["name"]
        admin.apply(pool, owner="kubectl")
        pods += [
            fleet.Pod(f"{name}-{number}", gpus=8)
            .with_spec(nodeSelector={names.KARPENTER_POOL: name})
            .tolerating(TAINT["key"])
            .tolerating(STARTUP["key"])
            .manifest()
            for number in range(NODES_A_POOL)
        ]
    lab.load(pods)
    for pod in pods:
        node = node_of(admin, pod)
        found = admin.wait_for("nodes", node, lambda each: has_label(each, "karpenter.sh/registered"))
        kept = [taint for taint in found["spec"].get("taints", ()) if taint["key"] != STARTUP["key"]]
        admin.merge(admin.path("nodes", node), {"metadata": {"labels": DISCOVERED}, "spec": {"taints": kept}})
    claims = admin.list("nodeclaims")
    assert len(claims) == NODES_A_POOL * len(pools)
    for claim in claims:
        admin.wait_for("nodeclaims", claim["metadata"]["name"], lambda each: says(each, "Initialized"))


def node_of(admin: Api, pod: Manifest) -> str:
    """Where it runs. A scheduler that has not seen yet that a node of an earlier test is gone may place it there, and
    then it is collected with that node: whoever wants it makes it again."""
    name = pod["metadata"]["name"]
    while True:
        admin.wait_for("pods", name, lambda each: each is None or fleet.is_running(each), "default", within=120)
        found = admin.get("pods", name, "default")
        if found is not None:
            return str(found["spec"]["nodeName"])
        admin.create(pod)


def carry_out(admin: Api, decision: Decision) -> None:
    """What a plan decides, done by somebody who may: a pool in mode Observe would only be told of it."""
    subject = decision.subject
    match decision.act:
        case Apply(manifest=manifest, force=force):
            path = admin.path("nodepools", subject.name)
            options = f"fieldManager={names.FIELD_MANAGER}&force={'true' if force else 'false'}"
            admin.must("PATCH", f"{path}?{options}", json.loads(manifest), _APPLY)
        case Label(labels=labels):
            admin.merge(admin.path("nodes", subject.name), {"metadata": {"labels": dict(labels)}})
        case other:
            raise AssertionError(f"{subject.title}: {other}")


def planned(folder: Path) -> Plan:
    """Of the policies in the folder, on the live cluster."""
    answer = dry_run(Question(Origins((folder / "policies",)), ClusterPlace()))
    assert answer.checkup.resolved.problems == ()
    assert answer.head
    return answer.head.plan


def judged_again(admin: Api, pools: Sequence[str]) -> None:
    """Karpenter has seen the NodePools as they are now, and said once more of each claim whether it is drifted."""
    for name in pools:
        edit_pool(admin, name)
        settled(admin, name)
    ask(admin, [claim["metadata"]["name"] for claim in admin.list("nodeclaims")])


def has_label(found: Manifest | None, label: str) -> bool:
    return label in (found or {}).get("metadata", {}).get("labels", {})


def says(found: Manifest | None, condition: str) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions", ())
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def adopt(admin: Api, plan: Plan) -> None:
    """Carries out a plan of policies that were just imported, which may say nothing but that it takes over."""
    assert [each for each in plan.consequences if each.cause == "change"] == []
    assert [each.reason for each in plan.decisions if isinstance(each.act, Hold)] == []
    assert {each.subject.name for each in plan.decisions if isinstance(each.act, Apply)} == set(POOLS)
    assert all(each.would for each in plan.decisions), "imported pools only observe"
    for decision in plan.decisions:
        carry_out(admin, decision)


def drift(admin: Api, pool: str) -> dict[str, str]:
    """Edits a label in its template, and waits until Karpenter says so of each of its claims."""
    edit = {"spec": {"template": {"metadata": {"labels": {"team": "serving"}}}}}
    admin.merge(admin.path("nodepools", pool), edit)
    claims = admin.list("nodeclaims", labelSelector=f"{names.KARPENTER_POOL}={pool}")
    mine = [each["metadata"]["name"] for each in claims]
    return {name: drift_of(admin.wait_for("nodeclaims", name, drift_of)) for name in mine}


def node_pools(admin: Api) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in admin.list("nodepools")}


def hashes(admin: Api) -> dict[str, str]:
    return {name: pool_hash(each) for name, each in node_pools(admin).items()}


def test_three_foreign_node_pools_are_imported_and_adopted_and_no_claim_ever_drifts(
    cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.start("scheduler", "kwok", "karpenter")
    admin = cluster.admin
    bought(cluster, tuned(), plain(), unnamed())
    monkeypatch.setenv("KUBECONFIG", str(cluster.site.kubeconfig("reader", identities.reconciler(admin))))
    audit = cluster.audit()
    assert main(["import", "--to", str(tmp_path)]) == 0, capsys.readouterr().err
    assert not list(tmp_path.rglob("*.j2")), "each of them has a field in a GpuPool"
    found, hashed = node_pools(admin), hashes(admin)

    with ClaimWatch(admin) as watch:
        plan = planned(tmp_path)
        assert audit.writes(identities.RECONCILER) == []
        adopt(admin, plan)
        assert [each.act for each in planned(tmp_path).decisions] == []
        for name, adopted in node_pools(admin).items():
            assert adopted["metadata"]["labels"][names.MANAGED] == "true"
            assert adopted["metadata"]["annotations"][names.ADOPTED] == "true"
            assert adopted["spec"]["template"]["metadata"] == found[name]["spec"]["template"]["metadata"]
        assert all(has_label(each, names.GPU_TYPE) for each in admin.list("nodes"))
        judged_again(admin, POOLS)
        assert hashes(admin) == hashed
        assert watch.drifted() == {}
        # It would have shown.
        drifted = drift(admin, "plain")
        assert len(drifted) == NODES_A_POOL
        assert watch.drifted() == drifted


def test_the_flags_of_a_cluster_autoscaler_that_runs_become_a_drain_policy(
    cluster: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    container = {
        "name": "main",
        "image": "autoscaling/cluster-autoscaler:v1.32.0",
        "args": ["--max-empty-bulk-delete=25"],
    }
    labels = {"app": "autoscaler"}
    cluster.admin.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "autoscaler", "namespace": "kube-system"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )
    reader = identities.reconciler(cluster.admin)
    monkeypatch.setenv("KUBECONFIG", str(cluster.site.kubeconfig("reader", reader)))
    assert main(["import", "--to", str(tmp_path), "--cluster-autoscaler", "kube-system/other"]) == 1
    assert "no Deployment kube-system/other" in capsys.readouterr().err
    assert main(["import", "--to", str(tmp_path), "--cluster-autoscaler", "kube-system/autoscaler"]) == 0
    written = (tmp_path / "policies" / "base" / "from-cluster-autoscaler.yaml").read_text()
    assert "maxScaleDownParallelism: 25 " in written
