"""What people see of GpuClaims: the table of cases, and what always holds."""

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.claim_report import MOST_PODS, ClaimReport, code_of
from reconciler.plan.gpu.claim_uses import MOST_EVALUATED, MOST_UNPUBLISHED, TURN_MS, report_claims
from reconciler.plan.reason_catalog import decoded
from reconciler.report.claim_text import REASON_WORDS
from tests.folders import CASES as FOLDER
from tests.unit.plan.gpu.claim_stage import ClaimWorld, line_of
from tests.unit.plan.scaling.stage import NOW

CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "gpu" / "claims.yaml").read_text())
_FIELDS = {"pools", "nodes", "claims", "pods", "planners", "unread", "waiting", "uuids"}


def waiting(report: ClaimReport) -> dict[str, int]:
    return {each.reason: each.pods for each in report.waiting}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    world = ClaimWorld(case)
    statuses = world.statuses()
    if "waiting" in case:
        assert waiting(world.report()) == case["waiting"]
        assert not statuses
    for claim in case.keys() - _FIELDS:
        expected, status = case[claim], statuses[claim]
        if "pods" in expected:
            assert [line_of(each) for each in status["allocations"]] == expected["pods"]
        (ready,) = status["conditions"]
        assert ready["message"] == expected.get("ready", ready["message"])
        assert all(words in ready["message"] for words in expected.get("says", ())), ready["message"]
        if "change" in expected:
            changes = {each.get("change", "") for each in status["allocations"] if each["phase"] == "Waiting"}
            assert changes == {expected["change"]}
    assert not world.published().statuses(), "a published status is not written again"


def test_the_report_survives_the_way_to_another_process() -> None:
    for case in CASES.values():
        plan = ClaimWorld(case).planned()
        encoded = msgspec.json.encode(plan)
        assert decoded(encoded, type(plan)).report(ClaimReport) == plan.report(ClaimReport)


def test_every_reason_has_words_and_a_case() -> None:
    found = {
        code_of(each.wait)
        for case in CASES.values()
        for use in ClaimWorld(case).report().claims
        for each in use.pods
        if each.wait is not None
    }
    assert found == REASON_WORDS.keys() - {"WaitNotEvaluated"}


def test_a_limited_number_of_claims_is_evaluated_and_of_pods_listed() -> None:
    claims = {f"claim-{number:03}": 4 for number in range(MOST_EVALUATED + 2)}
    pods = {f"train-{number:03}": {"claim": name} for number, name in enumerate(claims)}
    many = {f"more-{number:03}": {"claim": "claim-000"} for number in range(MOST_PODS)}
    world = ClaimWorld({"nodes": {"a": {"board": "2xA600"}}, "claims": claims, "pods": {**pods, **many}})
    report = world.report()
    assert waiting(report) == {"GpusLacking": MOST_EVALUATED + MOST_PODS, "WaitNotEvaluated": 2}
    assert len(report.claims) == MOST_EVALUATED
    assert max(len(each.pods) for each in report.claims) == MOST_PODS
    assert world.statuses()["claim-000"]["waiting"] == MOST_PODS + 1


def test_however_many_claims_wait_the_status_of_each_says_so_and_is_renewed_in_turn() -> None:
    claims = {f"claim-{number:03}": 4 for number in range(2 * MOST_EVALUATED + 50)}
    pods = {f"train-{number:03}": {"claim": name} for number, name in enumerate(claims)}
    world = ClaimWorld({"nodes": {"a": {"board": "2xA600"}}, "claims": claims, "pods": pods})
    first = [each.claim.name for each in world.report().claims]
    for _ in range(2):
        world = world.published()
    told = {each.name for each in world.inputs.observed.policies if each.kind == "GpuClaim" and each.status}
    assert len(told) == 2 * MOST_EVALUATED
    world = world.published()
    seen = set[str]()
    for minute in range(4):
        world.inputs = msgspec.structs.replace(world.inputs, now=Instant(NOW + minute * TURN_MS))
        seen |= {each.claim.name for each in world.report().claims}
    assert first == sorted(claims)[:MOST_EVALUATED]
    assert seen == claims.keys()


def test_the_statuses_of_all_claims_are_published_in_the_end_and_then_no_claim_is_reported() -> None:
    claims = {f"claim-{number:03}": 1 for number in range(2 * MOST_UNPUBLISHED + 5)}
    pods = {
        f"pod-{number}": {"claim": name, "at": "a", "has": [number]} for number, name in enumerate([*claims][:4] * 2)
    }
    world = ClaimWorld({"nodes": {"a": {"board": "8xA600"}}, "claims": claims, "pods": pods})
    for reported in (MOST_UNPUBLISHED, MOST_UNPUBLISHED, 5, 0):
        assert len(world.report().claims) == reported
        world = world.published()


def _later(world: ClaimWorld, case: dict[str, Any], **fields: Any) -> ClaimWorld:
    """A world that keeps the objects of `world` which do not differ."""
    other = ClaimWorld({**case, **fields})
    known = {
        kind: {msgspec.json.encode(each): each for each in getattr(world.inputs.observed, kind)}
        for kind in ("pods", "leases", "policies", "nodes")
    }
    same = {
        kind: tuple(known[kind].get(msgspec.json.encode(each), each) for each in getattr(other.inputs.observed, kind))
        for kind in known
    }
    statuses = {each.name: each for each in world.inputs.observed.policies if each.kind == "GpuClaim"}
    same["policies"] = tuple(
        before
        if each.kind == "GpuClaim" and (before := statuses.get(each.name)) is not None and before.spec == each.spec
        else each
        for each in same["policies"]
    )
    observed = msgspec.structs.replace(other.inputs.observed, **same)
    other.inputs = msgspec.structs.replace(other.inputs, observed=observed)
    return other


@some.composite
def cases(draw: some.DrawFn) -> dict[str, Any]:
    pools = {
        name: {
            "mode": draw(some.sampled_from(["Enforce", "Enforce", "Observe"])),
            "allocation": draw(some.sampled_from(["agent", "plugin"])),
            "memory": draw(some.sampled_from(["40Gi", "80Gi"])),
            **({"max": draw(some.integers(0, 3))} if draw(some.booleans()) else {}),
        }
        for name in draw(some.sets(some.sampled_from(["a100", "h100"]), min_size=1))
    }
    boards = ["8xA600", "4xA600 4xB600", "2xA64 -64", "1x-?"]
    nodes = {
        name: {"pool": draw(some.sampled_from(["a100", "h100"])), "board": draw(some.sampled_from(boards))}
        for name in draw(some.sets(some.sampled_from("abc")))
    }
    optional = {
        "policy": some.sampled_from(["any", "contiguous", "requireContiguous"]),
        "model": some.sampled_from(["a100", "h100", "none"]),
        "memory": some.sampled_from(["24Gi", "60Gi", "100Gi"]),
        "poolName": some.sampled_from(["a100", "h100", "none"]),
        "suspend": some.booleans(),
    }
    claims = {
        name: {"count": draw(some.integers(1, 9)), **draw(some.fixed_dictionaries({}, optional=optional))}
        for name in draw(some.sets(some.sampled_from(["one", "two"])))
    }
    pods: dict[str, Any] = {}
    for name in draw(some.sets(some.sampled_from(["p", "q", "r"]))):
        at = draw(some.sampled_from(["", "a", "b"]))
        has = draw(some.sets(some.integers(0, 7), max_size=3)) if at else ()
        pods[name] = {"claim": draw(some.sampled_from(["one", "two"])), "at": at, "has": sorted(has)}
    return {"pools": pools, "nodes": nodes, "claims": claims, "pods": pods}


@given(cases())
@settings(max_examples=100, deadline=None)
def test_a_change_gives_the_claim_a_place(case: dict[str, Any]) -> None:
    """Once the change is made, no further change is proposed; and a proposed node has the GPUs free."""
    for use in ClaimWorld(case).report().claims:
        change = use.change
        if change is None:
            continue
        claim = dict(case["claims"][use.claim.name])
        if change.value:
            claim[change.field] = yaml.safe_load(change.value)
        else:
            del claim[change.field]
        after = ClaimWorld({**case, "claims": {**case["claims"], use.claim.name: claim}}).report()
        found = next(each for each in after.claims if each.claim == use.claim)
        assert found.change is None
        codes = {code_of(each.wait) for each in found.pods if each.wait is not None}
        assert codes == ({"GpusFree"} if change.node else codes - {"GpusFree"}), (change, codes)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_each_waiting_pod_has_a_reason_and_a_status_is_written_once(case: dict[str, Any]) -> None:
    world = ClaimWorld(case)
    for use in world.report().claims:
        assert all((each.wait is not None) == (each.phase == "Waiting") for each in use.pods)
        assert len(use.pods) == use.all_pods
    assert not world.published().statuses()


ODD: some.SearchStrategy[Any] = some.sampled_from(
    [None, True, -1, 0, 3, 10**12, 1.5, "", "x", "1e9999", "80Gi", [], {}, [1], {"a": 1}]
)


@given(
    some.dictionaries(some.sampled_from(["count", "policy", "model", "memory"]), ODD | some.integers(1, 20)),
    some.dictionaries(some.sampled_from(["suspend", "poolName", "gangRef", "devices"]), ODD),
    some.dictionaries(
        some.sampled_from(["conditions", "allocations", "pods", "bestEffortPools"]), ODD | some.lists(ODD)
    ),
    some.lists(some.integers(0, 80), max_size=30, unique=True),
)
@example({"count": 10**12}, {}, {}, list(range(30)))
@settings(max_examples=200, deadline=None)
def test_whatever_a_claim_says_its_status_is_one_that_the_api_server_accepts(
    devices: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], has: list[int]
) -> None:
    pods = {"train": {}, "other": {"at": "a", "has": has}}
    world = ClaimWorld({"nodes": {"a": {"board": "8xA600"}}, "claims": {"one": 2}, "pods": pods})
    rest = {"spec": {"devices": devices, **spec}, "status": status}
    policies = tuple(
        msgspec.structs.replace(each, rest=rest) if each.kind == "GpuClaim" else each
        for each in world.inputs.observed.policies
    )
    observed = msgspec.structs.replace(world.inputs.observed, policies=policies)
    world.inputs = msgspec.structs.replace(world.inputs, observed=observed)
    assert not world.planned().troubles
    assert not world.published().statuses()


STEPS = ("pods", "claims", "nodes", "pools")


@given(cases(), some.lists(some.sampled_from([*STEPS, "leases", "publish"]), max_size=4), cases())
@settings(max_examples=100, deadline=None)
def test_a_fleet_that_follows_the_cluster_reports_what_a_new_one_does(
    case: dict[str, Any], steps: list[str], other: dict[str, Any]
) -> None:
    world = ClaimWorld(case)
    fleet = Fleet(world.inputs.observed)
    assert reported(world, fleet) == reported(world, Fleet(world.inputs.observed))
    for step in steps:
        if step == "publish":
            world = world.published()
        elif step == "leases":
            pods = {
                name: {**words, "has": [number + 1 for number in words["has"]]} for name, words in case["pods"].items()
            }
            case = {**case, "pods": pods}
        else:
            case = {**case, step: other[step]}
        if step != "publish":
            world = _later(world, case)
        fleet.advance(world.inputs.observed)
        assert reported(world, fleet) == reported(world, Fleet(world.inputs.observed)), step


def test_a_lease_that_comes_later_changes_the_status_of_a_settled_claim() -> None:
    case: dict[str, Any] = {
        "nodes": {"a": {"board": "8xA600"}},
        "claims": {"one": 1},
        "pods": {"train": {"at": "a", "has": []}},
    }
    published = ClaimWorld(case).published()
    fleet = Fleet(published.inputs.observed)
    assert not reported(published, fleet).claims
    later = _later(published, {**case, "pods": {"train": {"at": "a", "has": [3]}}})
    assert later.inputs.observed.pods[0] is published.inputs.observed.pods[0]
    fleet.advance(later.inputs.observed)
    assert [each.claim.name for each in reported(later, fleet).claims] == ["one"]


def reported(world: ClaimWorld, fleet: Fleet) -> ClaimReport:
    return report_claims(world.inputs, Draft(fleet, world.inputs.desired))
