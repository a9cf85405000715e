"""Each new pod with a GpuClaim is admitted with its patch, or refused with one sentence."""

import json
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.protocol.admission import decision, review
from reconciler.protocol.admission.decision import Admission, Refusal
from reconciler.protocol.admission.review import UnreadableReview, read_review
from reconciler.report.admission_text import refusal_status, warning_text
from tests import folders
from tests.unit.protocol.admission.stage import (
    FIELD,
    decided,
    grounds,
    new_pod,
    operations_of,
    patched,
    response_in,
    review_of,
)

CASES: dict[str, dict[str, Any]] = yaml.safe_load((folders.CASES / "gpu_admission" / "pods.yaml").read_text())
_TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def terms_of(pod: dict[str, Any]) -> list[dict[str, Any]]:
    place: Any = pod["spec"]
    for part in _TERMS[:-1]:
        place = place[part]
    place = place.get(_TERMS[-1], [])
    found: list[dict[str, Any]] = place
    return found


def gpus_of(pod: dict[str, Any]) -> int:
    """GPUs that kube-scheduler and Karpenter see."""
    return Pod(Metadata(name=""), msgspec.convert(pod["spec"], PodSpec)).gpus


def amounts(value: Any) -> Any:
    """The amount of GPUs in an operation, the same in requests and limits."""
    if not isinstance(value, dict):
        return value
    found = {json.dumps(each) for each in ([value] if names.NVIDIA_GPU in value else value.values())}
    (only,) = found
    return json.loads(only)[names.NVIDIA_GPU]


def variables(values: Any) -> Any:
    """Names of the variables that operations on one path write; `both` for a whole list."""
    if isinstance(values[0], list):
        (listed,) = values
        assert listed == [{"name": name, "valueFrom": FIELD} for name in decision.GPU_VARIABLES]
        return "both"
    assert all(each["valueFrom"] == FIELD for each in values)
    return [each["name"] for each in values]


@pytest.mark.parametrize("name", CASES)
def test_pods(name: str) -> None:
    case = CASES[name]
    pod = new_pod(case)
    found = decided(pod, grounds(case))
    if "refused" in case:
        assert isinstance(found, Refusal), found
        assert refusal_status(found).message == case["refused"]
        return
    assert isinstance(found, Admission), found
    operations = operations_of(found)
    after = patched(pod, operations)
    assert after["spec"]["schedulerName"] == names.GPU_SCHEDULER
    assert any(each["path"] == "/spec/schedulerName" for each in operations) == ("scheduler" not in case)
    terms = terms_of(after)
    assert terms == case.get("terms", terms)
    assert any(terms) or "terms" in case
    gpus = {each["path"]: amounts(each["value"]) for each in operations if "/resources" in each["path"]}
    assert gpus == case.get("gpus", gpus)
    assert gpus_of(after) == (grounds(case).claim or {})["devices"]["count"] or not after["spec"]["containers"]
    written: dict[str, list[Any]] = {}
    for each in operations:
        if "/env" in each["path"]:
            written.setdefault(each["path"], []).append(each["value"])
    assert {path: variables(values) for path, values in written.items()} == case.get("patch", {})
    assert [warning_text(each) for each in found.warnings] == case.get("warnings", [])


# --- Whatever the pod.

POOLS = st.dictionaries(
    st.sampled_from(["a100", "h100", "l4"]),
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.sampled_from(["a100", "h100"]),
            "count": st.sampled_from([1, 4, 8]),
            "allocation": st.sampled_from(["plugin", "agent"]),
        },
    ),
    max_size=3,
)
CLAIMS = st.fixed_dictionaries(
    {
        "devices": st.fixed_dictionaries(
            {"count": st.integers(0, 8)},
            optional={
                "model": st.sampled_from(["a100", "h100"]),
                "policy": st.sampled_from(["any", "contiguous", "requireContiguous"]),
                "memory": st.sampled_from(["40Gi", "80Gi"]),
            },
        )
    },
    optional={"suspend": st.booleans(), "poolName": st.sampled_from(["a100", "h100", "b200"])},
)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        field: st.dictionaries(st.sampled_from([names.NVIDIA_GPU, "cpu"]), st.integers(0, 8).map(str), max_size=2)
        for field in ("requests", "limits")
    },
)
VARIABLES = st.one_of(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["A", *decision.GPU_VARIABLES])}, optional={"value": st.sampled_from(["", "0,1"])}
    ),
    st.builds(lambda name: {"name": name, "valueFrom": FIELD}, st.sampled_from(decision.GPU_VARIABLES)),
)
CONTAINERS = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "proxy"])},
    optional={
        "resources": RESOURCES,
        "env": st.lists(VARIABLES, max_size=3),
        "restartPolicy": st.sampled_from(["Always", "Never"]),
    },
)
EXPRESSIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from([names.KARPENTER_POOL, names.POOL, "zone"]),
            "operator": st.sampled_from(["In", "NotIn", "DoesNotExist"]),
        },
        optional={"values": st.lists(st.sampled_from(["a100", "h100", "cpu"]), max_size=2)},
    ),
    max_size=3,
)
TERMS = st.lists(
    st.fixed_dictionaries({}, optional={"matchExpressions": EXPRESSIONS, "matchFields": EXPRESSIONS}), max_size=3
)
REQUIRED = st.fixed_dictionaries({}, optional={_TERMS[-1]: TERMS})
AFFINITIES = st.fixed_dictionaries(
    {}, optional={_TERMS[1]: st.fixed_dictionaries({}, optional={_TERMS[2]: REQUIRED}), "podAffinity": st.just({})}
)
SPECS = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINERS, min_size=1, max_size=3)},
    optional={
        "initContainers": st.lists(CONTAINERS, max_size=3),
        "affinity": AFFINITIES,
        "schedulerName": st.sampled_from(["", "default-scheduler", "gpu-scheduler", "volcano"]),
        "nodeName": st.sampled_from(["", "node-1"]),
        "nodeSelector": st.dictionaries(
            st.sampled_from([names.KARPENTER_POOL, names.POOL, "zone"]), st.sampled_from(["a100", "h100"]), max_size=2
        ),
    },
)
DRAWN = st.fixed_dictionaries({"spec": SPECS, "claim": CLAIMS, "pools": POOLS})


@given(DRAWN)
def test_an_admitted_pod_has_the_gpus_the_pools_and_the_scheduler_of_its_claim(case: dict[str, Any]) -> None:
    on, pod = grounds(case), new_pod(case)
    found = decided(pod, on)
    if isinstance(found, Refusal):
        assert refusal_status(found).message.count("\n") == 0
        return
    after = patched(pod, operations_of(found))
    assert gpus_of(after) == case["claim"]["devices"]["count"]
    assert after["spec"]["schedulerName"] == names.GPU_SCHEDULER
    claimed = claimed_devices(case["claim"])
    assert claimed is not None
    pools = {each.name for each in serving_pools(case["claim"], claimed, on.pools)}
    for label in (names.KARPENTER_POOL, names.POOL):
        for value in {"a100", "h100", "l4", "cpu"} - pools:
            assert not any(matches(term, {label: value}) for term in terms_of(after))
    agents = {each.spec.allocation for each in on.pools if each.name in pools} == {"agent"}
    for each in [*after["spec"]["containers"], *after["spec"].get("initContainers", [])] if agents else []:
        set_here = [(one["name"], one.get("valueFrom")) for one in each["env"] if one["name"] in decision.GPU_VARIABLES]
        assert {name for name, _ in set_here} == set(decision.GPU_VARIABLES)
        assert all(value == FIELD for _, value in set_here)


def matches(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """As kube-scheduler evaluates a term on a node with these labels; fields may match."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    holds = {
        "In": lambda each: labels.get(each["key"]) in each.get("values", []),
        "NotIn": lambda each: labels.get(each["key"]) not in each.get("values", []),
        "DoesNotExist": lambda each: each["key"] not in labels,
    }
    return bool(expressions or fields) and all(holds[each["operator"]](each) for each in expressions)


@given(DRAWN)
def test_a_patched_pod_is_patched_no_more(case: dict[str, Any]) -> None:
    on, pod = grounds(case), new_pod(case)
    found = decided(pod, on)
    if isinstance(found, Admission):
        again = decided(patched(pod, operations_of(found)), on)
        assert isinstance(again, Admission)
        assert again.patch == ()


@given(DRAWN)
def test_a_pod_keeps_the_nodes_that_both_its_terms_and_its_claim_allow(case: dict[str, Any]) -> None:
    on, pod = grounds(case), new_pod(case)
    found = decided(pod, on)
    if isinstance(found, Refusal):
        return
    claimed = claimed_devices(case["claim"])
    assert claimed is not None
    after = patched(pod, operations_of(found))
    before = (((pod["spec"].get("affinity") or {}).get(_TERMS[1]) or {}).get(_TERMS[2]) or None) is not None
    selector = pod["spec"].get("nodeSelector", {})
    for each in serving_pools(case["claim"], claimed, on.pools):
        if any(selector.get(key, each.name) != each.name for key in (names.KARPENTER_POOL, names.POOL)):
            continue
        for labels in (
            {names.KARPENTER_POOL: each.name},
            {names.POOL: each.name},
            {"zone": "a100", names.POOL: each.name},
        ):
            allowed = not before or any(matches(term, labels) for term in terms_of(pod))
            assert any(matches(term, labels) for term in terms_of(after)) == allowed


# --- Reviews that do not concern a pod with a claim, and bodies that are none.


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3), SPECS)
def test_a_pod_without_a_claim_is_admitted_untouched(annotations: dict[str, str], spec: dict[str, Any]) -> None:
    annotations.pop(names.CLAIM, None)
    found = read_review(review_of({"metadata": {"annotations": annotations}, "spec": spec}))
    assert found == review.Review("1-2-3")
    assert response_in(review.admitted(found.uid)) == {"uid": "1-2-3", "allowed": True}


@pytest.mark.parametrize(
    "request_of_others",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "binding"},
        {"resource": {"group": "", "version": "v1", "resource": "services"}},
        {"resource": {"group": "metrics.k8s.io", "version": "v1", "resource": "pods"}},
    ],
)
def test_other_requests_are_admitted_untouched(request_of_others: dict[str, Any]) -> None:
    assert read_review(review_of(new_pod({}), **request_of_others)).pod is None


def test_an_admitted_pod_comes_with_its_patch_and_its_warnings() -> None:
    operation = review.PatchOperation("add", "/spec/schedulerName", "gpu-scheduler")
    response = response_in(review.admitted("1-2-3", [operation], ["a warning"]))
    assert response["patch"] == [{"op": "add", "path": "/spec/schedulerName", "value": "gpu-scheduler"}]
    assert (response["patchType"], response["warnings"]) == ("JSONPatch", ["a warning"])


def test_a_refused_pod_comes_with_a_sentence() -> None:
    status = refusal_status(decision.ClaimAbsent("team-a/train"))
    response = response_in(review.refused("1-2-3", status))
    assert response == {
        "uid": "1-2-3",
        "allowed": False,
        "status": {"code": 403, "reason": "Forbidden", "message": status.message},
    }


def test_what_cannot_be_decided_yet_may_be_tried_again() -> None:
    status = refusal_status(decision.NotYetRead("team-a/train", "the policies have not been read yet"))
    assert (status.code, status.reason) == (503, "ServiceUnavailable")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"{" * 100_000,
        b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"Pod","request":{"uid":"1"}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}}',
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"%s"}}' % (b"1" * 300),
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        review_of([]),  # type: ignore[arg-type]
        review_of({"metadata": {"annotations": {names.CLAIM: 1}}}),
        review_of({"metadata": {"annotations": {names.CLAIM: "a"}}, "spec": 1}),
        review_of({"metadata": {"annotations": {names.CLAIM: "a"}}, "spec": {"containers": [1]}}),
        review_of(new_pod({"spec": {"affinity": {_TERMS[1]: {_TERMS[2]: {_TERMS[3]: [{"matchExpressions": [1]}]}}}}})),
        review_of(new_pod({"spec": {"containers": [{"env": [{"name": []}]}]}})),
        review_of(new_pod({"annotations": {"a": "x" * review.MOST_BYTES}})),
    ],
)
def test_bodies_that_are_no_review_are_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(UnreadableReview) as fault:
        read_review(body)
    assert 0 < len(str(fault.value)) < 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


@given(st.data())
def test_no_body_and_no_claim_ends_in_another_error(data: st.DataObject) -> None:
    """A valid review in which one value is replaced by anything."""
    case = data.draw(DRAWN)
    body = json.loads(review_of(new_pod(case)))
    place: Any = body
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    try:
        found = read_review(json.dumps(body).encode())
    except UnreadableReview:
        return
    case["claim"] = data.draw(st.none() | st.dictionaries(st.sampled_from(["devices", "poolName"]), JSON) | CLAIMS)
    if found.pod is not None:
        answer = decision.decide(found.pod, grounds(case))
        assert isinstance(answer, Admission) or refusal_status(answer).message
