"""Explanations say no more than is known, and what holds a pod where it is."""

import re
from typing import Any

import msgspec
import pytest

from reconciler.loop.cycle import decide
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.plan.files.dump import PlanningResult
from reconciler.report import write
from reconciler.report.explain.about import ExplainedObject, Explanation, UnknownSubject
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.header import ReportHeader
from reconciler.report.status.overview import Overview, PoolOverview, overview_document, overview_of
from tests.unit.plan.karpenter.stage import NOW, gpu_pool, observed
from tests.unit.plan.manifests.stage import POLICY, inputs_of

STAGE: dict[str, Any] = {"nodes": {"n": {"pods": [{"gpus": 8, "labels": {"app": "x"}}], "claim": False}}}
WRITTEN = (("", Origin("p.yaml", 1)),)
SCALES = NodeProvisioner(pool_name="p", min_size=1, max_size=9, min_gpu_utilization_percent=70)
WISH = Desired(
    "r",
    "prod",
    pools=(Declared("GpuPool", "p", gpu_pool({}), WRITTEN),),
    provisioners=(Declared("NodeProvisioner", "p", SCALES, WRITTEN),),
)
SETTING = ReportHeader("prod", "r", "c", "", NOW, NOW, "0")
POD = ExplainedObject("pod", "n-0-0", "team")


def rows(subject: ExplainedObject, seen: Observed) -> list[tuple[str, str]]:
    return list(about(decide(Inputs(Desired("r", "prod"), seen, NOW)), subject).rows)


def with_pod(**words: Any) -> Observed:
    pod = STAGE["nodes"]["n"]["pods"][0] | words
    return observed({"nodes": {"n": {"pods": [pod]}}})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"asks": "true"}, ["by annotation karpenter.sh/do-not-disrupt"]),
        ({"asks": "4h", "ran": "1h"}, ["by annotation karpenter.sh/do-not-disrupt, until 2026-11-18T15:00:00Z"]),
        ({"asks": "4h", "ran": "5h"}, []),
        ({"asks": "soon"}, []),
    ],
)
def test_a_pod_is_held_up_for_as_long_as_its_annotation_says(words: dict[str, str], told: list[str]) -> None:
    assert [text for label, text in rows(POD, with_pod(**words)) if label == "protected"] == told


@pytest.mark.parametrize(
    ("spec", "expires"),
    [
        ({}, "expires 720h after its creation"),
        ({"expireAfter": "Never"}, "never expires"),
        ({"expireAfter": "48h"}, "expires 48h after its creation"),
    ],
)
def test_a_node_claim_without_an_age_has_the_default_of_the_api_server_as_in_the_forecast(
    spec: dict[str, str], expires: str
) -> None:
    seen = observed({"nodes": {"n": {}}})
    (claim,) = seen.node_claims
    written = msgspec.convert({"metadata": msgspec.to_builtins(claim.metadata), "spec": spec}, NodeClaim)
    seen = msgspec.structs.replace(seen, node_claims=(msgspec.structs.replace(claim, spec=written.spec),))
    (row,) = (text for label, text in rows(ExplainedObject("node", seen.nodes[0].name), seen) if label == "Karpenter")
    assert row.endswith(f", {expires}")


def test_the_budgets_of_a_pod_are_told_by_name_however_they_were_read() -> None:
    pdbs = {name: {"labels": {"app": "x"}, "allows": 1} for name in ("b", "a")}
    told = [text for label, text in rows(POD, observed(STAGE | {"pdbs": pdbs})) if label == "budget"]
    assert told == [f"PodDisruptionBudget/team/{name}: disruptionsAllowed is 1" for name in ("a", "b")]


def test_what_could_not_be_read_is_not_said_to_be_missing() -> None:
    seen = observed(STAGE)
    assert ("Karpenter", "no NodeClaim for this node") in rows(ExplainedObject("node", "n-0"), seen)
    assert ("NodePool", "none") in rows(ExplainedObject("pool", "p"), seen)
    kinds = ("nodeclaims.karpenter.sh", "nodepools.karpenter.sh")
    blind = Observed(nodes=seen.nodes, unread=tuple(Unread(kind, "403 Forbidden") for kind in kinds))
    assert ("Karpenter", f"unknown: {kinds[0]}: 403 Forbidden") in rows(ExplainedObject("node", "n-0"), blind)
    assert ("NodePool", f"unknown: {kinds[1]}: 403 Forbidden") in rows(ExplainedObject("pool", "p"), blind)


NODES, PODS = Unread("nodes", "403 Forbidden"), Unread("pods", "403 Forbidden")


def blind_to(*unread: Unread) -> Observed:
    """The stage, without what could not be read."""
    seen = observed(STAGE)
    kinds = {each.kind for each in unread}
    nodes, pods = () if "nodes" in kinds else seen.nodes, () if "pods" in kinds else seen.pods
    return msgspec.structs.replace(seen, nodes=nodes, pods=pods, unread=unread)


def answer(subject: ExplainedObject, seen: Observed, desired: Desired | None = None) -> Explanation:
    return about(decide(Inputs(desired or Desired("r", "prod"), seen, NOW)), subject)


@pytest.mark.parametrize(
    ("subject", "unread"),
    [
        (ExplainedObject("node", "n-0"), NODES),
        (POD, PODS),
        (ExplainedObject("claim", "n-0"), Unread("nodeclaims.karpenter.sh", "403 Forbidden")),
        (ExplainedObject("pool", "other"), Unread("nodepools.karpenter.sh", "403 Forbidden")),
    ],
)
def test_what_may_well_be_there_is_not_said_to_be_nowhere(subject: ExplainedObject, unread: Unread) -> None:
    with pytest.raises(UnknownSubject, match=f"^{unread.kind} are unknown: 403 Forbidden"):
        answer(subject, blind_to(unread))


def test_where_pods_were_not_read_no_node_or_pool_is_said_to_be_empty() -> None:
    for subject in (ExplainedObject("node", "n-0"), ExplainedObject("pool", "p")):
        told = answer(subject, blind_to(PODS)).headline
        assert "in use unknown (pods are unknown: 403 Forbidden)" in told
        assert "empty" not in told
        assert " 0 " not in told


def test_where_nodes_were_not_read_no_pool_is_said_to_have_none() -> None:
    told = answer(ExplainedObject("pool", "p"), blind_to(NODES), WISH)
    assert told.headline == "nodes are unknown: 403 Forbidden"
    assert ("node", "unknown: nodes are unknown: 403 Forbidden") in rows(POD, blind_to(NODES))


@pytest.mark.parametrize("unread", [NODES, PODS])
def test_no_target_is_told_of_a_use_that_is_not_known(unread: Unread) -> None:
    subject = ExplainedObject("provisioner", "p")
    assert "node" in dict(answer(subject, observed(STAGE), WISH).rows)["target"]
    told = answer(subject, blind_to(unread), WISH)
    assert told.outcome == "The target is unknown."
    assert dict(told.rows)["target"] == f"{unread.kind} are unknown: 403 Forbidden"


def test_the_status_of_what_was_not_read_is_not_zero() -> None:
    def standing(seen: Observed) -> PoolOverview:
        scene = decide(Inputs(WISH, seen, NOW))
        (found,) = overview_of(SETTING, scene).pools
        return found

    whole = standing(observed(STAGE))
    assert (whole.nodes, whole.busy_nodes, whole.gpus, whole.gpus_in_use) == (1, 1, 8, 8)
    without_pods = standing(blind_to(PODS))
    assert (without_pods.nodes, without_pods.busy_nodes, without_pods.gpus_in_use) == (1, None, None)
    without_nodes = standing(blind_to(NODES))
    assert (without_nodes.nodes, without_nodes.gpus, without_nodes.busy_nodes) == (None, None, None)
    claims = Unread("nodeclaims.karpenter.sh", "403 Forbidden")
    assert (whole.drifted_nodes, standing(blind_to(claims)).drifted_nodes) == (0, None)
    shown = write(overview_document(Overview(SETTING, (without_nodes,))), "text", color=False)
    assert re.search(r"p +Observe( +\?){4} +0$", shown, re.MULTILINE)


def scene_of(mode: str, **case: Any) -> PlanningResult:
    """Three nodes of a100, one busy, whose NodePool gets a taint."""
    taint = {"spec": {"template": {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}}}
    return decide(inputs_of({"nodes": 3, "busy": 1, "wish": taint, "pools": {"a100": {"mode": mode}}, **case}))


@pytest.mark.parametrize("name", ["node/node-0", "pod/research/train-0"])
def test_in_observe_mode_a_fate_is_told_as_what_would_be(name: str) -> None:
    begins = "the node drifts" if name.startswith("node") else "the node of the pod drifts"
    would = f"Would apply if GpuPool/a100 were in mode Enforce: {begins}"
    assert about(scene_of("Observe"), parse_subject(name)).outcome.startswith(would)
    assert about(scene_of("Enforce"), parse_subject(name)).outcome.startswith(begins.capitalize())


def test_in_observe_mode_what_a_pool_comes_to_is_told_as_what_would_be() -> None:
    for mode, begins in (("Observe", "Would apply if GpuPool/a100 were in mode Enforce: "), ("Enforce", "")):
        rows = dict(about(scene_of(mode), parse_subject("pool/a100")).rows)
        assert rows["because of this plan"].startswith(f"{begins}1 node, which drifts"), mode


def test_what_happens_anyway_happens_in_observe_mode_too() -> None:
    outcome = about(scene_of("Observe", wish={}, drifted=3), parse_subject("node/node-0")).outcome
    assert outcome.startswith("The node drifts, so Karpenter launches")


@pytest.mark.parametrize(
    ("least", "told"),
    [
        (5, "The pool has 2 nodes fewer than its target."),
        (3, "The pool has its target size."),
        (1, "The pool has 1 node more than its target."),
    ],
)
def test_a_provisioner_says_how_far_its_pool_is_from_its_target(least: int, told: str) -> None:
    given = inputs_of({"nodes": 3, "busy": 2})
    spec = NodeProvisioner(pool_name="a100", min_size=least, max_size=9, min_gpu_utilization_percent=100)
    wish = msgspec.structs.replace(
        given.desired, provisioners=(Declared("NodeProvisioner", "a100", spec, (("", POLICY),)),)
    )
    scene = decide(msgspec.structs.replace(given, desired=wish))
    assert about(scene, parse_subject("provisioner/a100")).outcome == told
