"""`explain` and `status` of GpuClaims, from the report of the same plan as the statuses."""

from typing import Any

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.plan.files.dump import PlanningResult
from reconciler.report import write
from reconciler.report.explain.about import ExplainedObject, Explanation, UnknownSubject
from reconciler.report.explain.subject import about, parse_subject
from reconciler.report.status.overview import overview_document, overview_of
from tests.unit.plan.gpu.claim_stage import ClaimWorld
from tests.unit.report.status.test_status import SETTING

CASE: dict[str, Any] = {
    "nodes": {"a": {"board": "4xA600 4xB600"}},
    "claims": {
        "one": {"count": 2, "policy": "contiguous", "model": "a100", "memory": "40Gi", "poolName": "a100"},
        "big": {"count": 8, "policy": "requireContiguous"},
        "off": {"count": 1, "suspend": True},
        "idle": 1,
    },
    "pods": {
        "train": {"at": "a", "has": [0, 1]},
        "done": {"at": "a", "phase": "Succeeded"},
        "next": {"claim": "big", "gpus": 8},
        "last": {"claim": "big", "gpus": 8},
        "never": {"claim": "off"},
        "lost": {"claim": "gone"},
    },
    "planners": "all",
}


def scene(**changes: Any) -> PlanningResult:
    world = ClaimWorld({**CASE, **changes})
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def explained(subject: str, **changes: Any) -> Explanation:
    return about(scene(**changes), parse_subject(subject))


def texts(explanation: Explanation, label: str) -> list[str]:
    return [text for each, text in explanation.rows if each == label]


def test_a_claim_says_what_it_requests_and_which_gpus_its_pods_have() -> None:
    found = explained("claim/team/one")
    assert found.title == "claim/team/one"
    assert found.headline == (
        "2 GPUs for each pod, in one island if possible, model a100, at least 40Gi each, of GpuPool/a100"
    )
    assert found.outcome == "2 pods: 1 with a node, 1 ended."
    assert texts(found, "bound") == [
        "train: GPUs 0, 1 of Node/a (one island, at least 600 GB/s between two GPUs, 600 GB/s in total)"
    ]
    assert texts(found, "ended") == ["done"]


def test_a_claim_says_why_its_pods_wait_and_the_cheapest_change() -> None:
    found = explained("claim/team/big")
    assert found.outcome == "2 pods: 2 waiting."
    assert [each.partition(":")[0] for each in texts(found, "waiting")] == ["last", "next"]
    assert {each.reason.code for each in found.decisions} == {"PodAwaitsPool"}
    (gpus,) = texts(found, "GPUs")
    assert gpus.endswith("the claim requests 8 GPUs, and the node has 6 suitable free (2 in use, 0 unhealthy)")
    assert texts(found, "change") == ["with count: 4, a new pod of the claim gets its GPUs on Node/a"]


def test_a_claim_where_the_kubelet_chooses_says_so() -> None:
    found = explained("claim/team/one", pools={"a100": {"allocation": "plugin"}})
    assert texts(found, "note") == ["one island is best effort, because the kubelet chooses the GPUs: GpuPool/a100"]
    assert texts(found, "bound") == ["train: 2 GPUs of Node/a, which the kubelet chooses"]


def test_a_claim_without_pods_says_so() -> None:
    assert explained("claim/team/idle").outcome == "No pod names the claim."


def test_what_is_unread_is_not_said_to_be_absent() -> None:
    assert explained("claim/team/one", unread=["pods"]).outcome == (
        "The pods of the claim are unknown (pods are unknown: forbidden)."
    )


@pytest.mark.parametrize(
    ("written", "subject"),
    [
        ("claim/team/one", ExplainedObject("gpuclaim", "one", "team")),
        ("gpuclaim/team/one", ExplainedObject("gpuclaim", "one", "team")),
        ("GpuClaim/one", ExplainedObject("gpuclaim", "one", "default")),
        ("gpuclaims/team/one", ExplainedObject("gpuclaim", "one", "team")),
        ("claim/a100-x7", ExplainedObject("claim", "a100-x7")),
        ("nodeclaim/a100-x7", ExplainedObject("claim", "a100-x7")),
    ],
)
def test_a_claim_with_a_namespace_is_a_gpu_claim(written: str, subject: ExplainedObject) -> None:
    assert parse_subject(written) == subject


def test_an_unknown_claim_has_a_similar_name() -> None:
    with pytest.raises(UnknownSubject, match="there is no GpuClaim on in namespace team; did you mean one"):
        explained("claim/team/on")


def test_a_pod_names_its_claim_and_its_gpus() -> None:
    assert texts(explained("pod/team/train"), "GPUs") == [
        "GPUs 0, 1 of Node/a (one island, at least 600 GB/s between two GPUs, 600 GB/s in total)"
    ]
    waiting = explained("pod/team/next")
    assert texts(waiting, "claim") == ["claim/team/big: 8 GPUs for each pod, in one island"]
    assert texts(waiting, "change") == ["with count: 4, a new pod of the claim gets its GPUs on Node/a"]
    assert texts(explained("pod/team/lost"), "claim") == ["claim/team/gone: does not exist"]


def test_the_overview_counts_waiting_claims_by_reason() -> None:
    document = overview_document(overview_of(SETTING, scene()))
    told = write(document, "text", color=False)
    assert "Waiting claims" in told
    assert "1 claim with 2 pods (team/big): no node has the GPUs free" in told
    assert "1 claim with 1 pod (team/off): the claim is suspended" in told
    assert [(each["reason"], each["claims"], each["pods"]) for each in document.payload["waiting_claims"]] == [
        ("ClaimAbsent", 1, 1),
        ("ClaimSuspended", 1, 1),
        ("GpusLacking", 1, 2),
    ]


def test_the_overview_without_waiting_claims_has_no_such_section() -> None:
    assert "Waiting claims" not in write(overview_document(overview_of(SETTING, scene(pods={}))), "text", color=False)
