"""Where pods of GpuClaims may be: in pools that have what their claim requests, on nodes that have it free."""

from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import read_board
from reconciler.fleet.devices.choice import Chosen, choose
from reconciler.fleet.devices.free_devices import ClaimRequest, ClaimRequests, FreeDevices
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.policy.gpu import Devices
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.words import obstacle_words
from tests import builders, folders
from tests.unit.fleet.devices.stage import Words, claim_of, lease_of, report_of

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "places.yaml").read_text())
DECLARED = {name: Devices(model=name, count=8, memory=Quantity.parse("80Gi")) for name in ("a100", "l4")}


def node_of(name: str, words: Words) -> Node:
    labels = {names.KARPENTER_POOL: words.get("pool", "a100"), names.INSTANCE_TYPE: words.get("type", "p4d")}
    report = report_of(words)
    gpus = words.get("gpus", 0 if report is None else len(report.status["devices"]))
    return builders.node(name, gpus=gpus, has={"cpu": "96", "memory": "960Gi", "pods": "100"}, labels=labels)


def pod_of(uid: str, words: Words) -> Pod:
    return builders.pod(
        uid,
        namespace="team",
        uid=uid,
        gpus=words.get("gpus"),
        node_name=words.get("node", ""),
        annotations=Annotations(claim=words.get("claim", "")),
    )


def named(report: Unstructured, name: str) -> Unstructured:
    return msgspec.structs.replace(report, metadata=UnstructuredMetadata(name))


def observed_of(case: Words) -> Observed:
    nodes: dict[str, Words] = case["nodes"]
    reports = [named(report, name) for name, words in nodes.items() if (report := report_of(words)) is not None]
    leases = [
        lease_of(f"gpu-{name}-{holder}-{gpu}", {"holder": holder, "id": gpu}, name)
        for name, words in nodes.items()
        for holder, gpus in words.get("lent", {}).items()
        for gpu in sorted(set(gpus))
    ]
    claims = [
        Unstructured(
            "gpu.scheduling/v1",
            "GpuClaim",
            UnstructuredMetadata(name, "team"),
            {"spec": {"devices": {"count": words if isinstance(words, int) else words["count"]}}},
        )
        for name, words in case["claims"].items()
    ]
    return Observed(
        nodes=tuple(node_of(name, words) for name, words in nodes.items()),
        pods=tuple(pod_of(uid, words) for uid, words in case.get("pods", {}).items()),
        policies=(*reports, *claims),
        leases=tuple(leases),
    )


def requests_of(case: Words) -> ClaimRequests:
    pools = frozenset(case.get("pools", ["a100"]))
    claims = {("team", name): ClaimRequest(claim_of(words), pools) for name, words in case["claims"].items()}
    return ClaimRequests(claims, DECLARED)


@pytest.mark.parametrize("name", CASES)
def test_a_claim_fits(name: str) -> None:
    case = CASES[name]
    fleet = Snapshot(observed_of(case))
    asking = fleet.classes.of(pod_of("asking", {"claim": case["asks"]}))
    before = fleet.fingerprint()
    with fleet.fork(), fleet.part(GpuClaims).judged(requests_of(case)):
        fits(fleet, asking)  # so that changes must be noticed
        for title, words in case.get("new", {}).items():
            fleet.bring(node_of(title, words))
        change(fleet, case)
        assert fits(fleet, asking) == case["fits"]
        for title, words in case.get("why", {}).items():
            assert obstacle_words(fleet.part(GpuClaims).why(asking, fleet.rows.row_of[title], fleet)) == words
    assert fleet.fingerprint() == before
    with fleet.part(GpuClaims).judged(requests_of(case)):
        unchanged = fits(fleet, asking)
    fresh = Snapshot(observed_of(case))
    with fresh.part(GpuClaims).judged(requests_of(case)):
        assert fits(fresh, fresh.classes.of(pod_of("asking", {"claim": case["asks"]}))) == unchanged


def change(fleet: Snapshot, case: Words) -> None:
    for each in case.get("placed", ()):
        of, _, node = each.partition(" ")
        words = {"gpus": int(of)} if of.isdigit() else {"claim": of}
        fleet.add(fleet.classes.of(pod_of("placed", words)), fleet.rows.row_of[node])
    for pod in fleet.observed.pods:
        if pod.name in case.get("moved", ()) and pod.node in fleet.rows.row_of:
            fleet.remove(fleet.classes.of(pod), fleet.rows.row_of[pod.node])


def fits(fleet: Snapshot, asking: Any) -> list[str]:
    """Node by node, and of all nodes at once."""
    predicate = fleet.part(GpuClaims)
    one_by_one = [name for name, row in sorted(fleet.rows.row_of.items()) if predicate.fits(asking, row, fleet)]
    mask = predicate.mask(asking, fleet)
    assert mask is not None
    assert one_by_one == [name for name, row in sorted(fleet.rows.row_of.items()) if mask[row]]
    return one_by_one


# --- Without claims, and by pools.

AMOUNTS = {"cpu": "8", "memory": "8Gi", "pods": "10"}
POOLS = ("", "a100", "l4")
LABELS = (names.KARPENTER_POOL, names.POOL)
NODES = some.lists(some.dictionaries(some.sampled_from(LABELS), some.sampled_from(POOLS)), max_size=6)


@given(NODES, some.frozensets(some.sampled_from(POOLS[1:])))
def test_a_claim_fits_in_its_pools(labels: list[dict[str, str]], pools: frozenset[str]) -> None:
    nodes = [builders.node(f"n{number}", gpus=1, has=AMOUNTS, labels=each) for number, each in enumerate(labels)]
    fleet = Snapshot(Observed(nodes=tuple(nodes)))
    asked, predicate = fleet.classes.of(pod_of("p", {"claim": "one"})), fleet.part(GpuClaims)
    with predicate.judged(requests_of({"claims": {"one": 1}, "pools": pools})):
        assert fits(fleet, asked) == [node.name for node in nodes if node.pool in pools]
        for node in nodes:
            if node.pool not in pools:
                words = obstacle_words(predicate.why(asked, fleet.rows.row_of[node.name], fleet))
                assert "GpuClaim/team/one" in words


def test_nothing_is_ruled_out_where_nobody_says_what_the_claim_asks_for() -> None:
    fleet = Snapshot(Observed(nodes=(builders.node("n", has=AMOUNTS, labels={names.KARPENTER_POOL: "l4"}),)))
    judging, predicate = fleet.part(FilterChain), fleet.part(GpuClaims)
    asked = fleet.classes.of(pod_of("p", {"claim": "one"}))
    with predicate.judged(requests_of({"claims": {"two": 1}})):
        assert np.count_nonzero(judging.mask(asked)) == 1
    with predicate.judged(requests_of({"claims": {"one": 1}})):
        assert np.count_nonzero(judging.mask(asked)) == 0
    assert np.count_nonzero(judging.mask(asked)) == 1


def test_pods_without_claims_cost_nothing() -> None:
    fleet = Snapshot(Observed(nodes=(builders.node("n", has=AMOUNTS),)))
    with fleet.part(GpuClaims).judged(requests_of({"claims": {"one": 1}})):
        fleet.part(FilterChain).mask(fleet.classes.of(pod_of("p", {"gpus": 1})))
        made = len(fleet._listeners)  # noqa: SLF001
        fleet.part(FilterChain).mask(fleet.classes.of(pod_of("p", {"claim": "one"})))
        assert len(fleet._listeners) == made + 1  # noqa: SLF001


def test_pods_that_differ_in_their_claim_alone_are_not_of_one_class() -> None:
    fleet = Snapshot(Observed())
    assert len({fleet.classes.of(pod_of("p", {"claim": claim})) for claim in ("one", "two", "", "one")}) == 3


# --- Any history of observations and forks leads to what a new fleet says, and to what the extender would choose.

NODE_NAMES = ("n0", "n1", "n2")
NODE_WORDS = some.fixed_dictionaries(
    {},
    optional={
        "board": some.sampled_from(("4xA300", "2xA300 2xB300", "2xA300 2x-64", "3xA300 B64")),
        "unhealthy": some.lists(some.integers(0, 3), max_size=2),
        "suspended": some.booleans(),
        "pool": some.sampled_from(("a100", "l4")),
        "gpus": some.integers(0, 4),
        "lent": some.dictionaries(some.sampled_from(("p0", "p1", "x")), some.lists(some.integers(0, 3), max_size=2)),
    },
)
CLAIM_WORDS = some.fixed_dictionaries(
    {"count": some.integers(1, 4)},
    optional={
        "policy": some.sampled_from(("any", "contiguous", "requireContiguous")),
        "model": some.sampled_from(("a100", "l4")),
    },
)
POD_WORDS = some.fixed_dictionaries(
    {"node": some.sampled_from((*NODE_NAMES, ""))},
    optional={"gpus": some.integers(0, 3), "claim": some.sampled_from(("one", "two", "absent"))},
)
WORLDS = some.fixed_dictionaries(
    {
        "nodes": some.dictionaries(some.sampled_from(NODE_NAMES), NODE_WORDS, min_size=1),
        "pods": some.dictionaries(some.sampled_from(("p0", "p1", "p2")), POD_WORDS),
        "claims": some.fixed_dictionaries({"one": CLAIM_WORDS, "two": CLAIM_WORDS}),
        "placed": some.lists(
            some.tuples(some.sampled_from(("one", "two", "1", "2")), some.sampled_from(NODE_NAMES)).map(" ".join),
            max_size=3,
        ),
        "moved": some.lists(some.sampled_from(("p0", "p1", "p2"))),
    }
)


def like_before(before: Observed, after: Observed) -> Observed:
    """Equal objects keep their identity, as in a replica of the cluster."""
    known = {field: list(getattr(before, field)) for field in ("nodes", "pods", "policies", "leases")}
    kept = {
        field: tuple(next((other for other in known[field] if other == each), each) for each in getattr(after, field))
        for field in known
    }
    return msgspec.structs.replace(after, **kept)


@given(some.lists(WORLDS, min_size=1, max_size=4))
def test_any_history_leads_to_what_a_new_fleet_says(worlds: list[Words]) -> None:
    fleet: Snapshot | None = None
    for world in worlds:
        observed = observed_of(world)
        if fleet is None:
            fleet = Snapshot(observed)
        else:
            fleet.advance(like_before(fleet.observed, observed))
        fresh = Snapshot(observed)
        assert answers(fleet, world) == answers(fresh, world)
        with fleet.fork(), fresh.fork():
            for each in (fleet, fresh):
                change(each, {**world, "placed": [it for it in world["placed"] if it.split()[1] in world["nodes"]]})
            assert answers(fleet, world) == answers(fresh, world)
        assert answers(fleet, world) == answers(fresh, world) == by_the_extender(observed, world)


def answers(fleet: Snapshot, world: Words) -> dict[str, list[str]]:
    with fleet.part(GpuClaims).judged(requests_of(world)):
        return {claim: fits(fleet, fleet.classes.of(pod_of("asking", {"claim": claim}))) for claim in world["claims"]}


def by_the_extender(observed: Observed, world: Words) -> dict[str, list[str]]:
    """Node by node, from the objects."""
    snapshot = Snapshot(observed)
    ledger = DeviceLedger(observed.leases, observed.pods, snapshot.classes.asked_gpus)
    reports = {each.name: each for each in observed.policies if each.kind == "GpuNodeStatus"}
    result: dict[str, list[str]] = {claim: [] for claim in world["claims"]}
    for node in sorted(observed.nodes, key=lambda each: each.name):
        board = read_board(node, reports.get(node.name), DECLARED.get(node.pool))
        for (_, claim), request in requests_of(world).by_claim.items():
            chosen = choose(board, ledger.taken(node.name, board).all, request.devices)
            if node.pool in request.pools and isinstance(chosen, Chosen):
                result[claim].append(node.name)
    return result


@given(WORLDS, some.sampled_from(("one", "two")), some.sampled_from(NODE_NAMES))
def test_a_placed_pod_takes_the_chosen_gpus(world: Words, claim: str, name: str) -> None:
    observed = observed_of({**world, "nodes": {**world["nodes"], name: world["nodes"].get(name, {})}})
    fleet = Snapshot(observed)
    asked, claims = fleet.classes.of(pod_of("asking", {"claim": claim})), requests_of(world)
    with fleet.part(GpuClaims).judged(claims):
        row = fleet.rows.row_of[name]
        fleet.part(GpuClaims).mask(asked, fleet)
        devices = fleet.part(FreeDevices)
        free = devices.free_on(row)
        if not devices.serves(row, claims.by_claim["team", claim].devices):
            return
        with fleet.fork():
            fleet.add(asked, row)
            taken = set(free) - set(devices.free_on(row))
        assert devices.free_on(row) == free
    reports = {each.name: each for each in observed.policies if each.kind == "GpuNodeStatus"}
    node = fleet.rows.node(row)
    board = read_board(node, reports.get(name), DECLARED.get(node.pool))
    used = board.layout.everything & ~board.layout.set_of(free)
    chosen = choose(board, used, claims.by_claim["team", claim].devices)
    assert isinstance(chosen, Chosen)
    assert taken == set(chosen.ids)


def test_placed_pods_take_what_their_claim_requests_now() -> None:
    world: Words = {"nodes": {"n0": {"board": "2xA300 2xB300"}}, "claims": {"one": 1, "two": 3}}
    fleet = Snapshot(observed_of(world))
    with fleet.fork():
        assert answers(fleet, world) == {"one": ["n0"], "two": ["n0"]}
        change(fleet, {"placed": ["one n0"]})
        assert answers(fleet, world) == {"one": ["n0"], "two": ["n0"]}
        world["claims"]["one"] = 2
        assert answers(fleet, world) == {"one": ["n0"], "two": []}


@pytest.mark.parametrize("placed", [["one n0", "two n0"], ["two n0", "one n0"]])
def test_the_order_of_bookings_makes_no_difference(placed: list[str]) -> None:
    claims = {"one": 1, "two": {"count": 2, "policy": "contiguous"}}
    world: Words = {"nodes": {"n0": {"board": "2xA300 2xB300"}}, "claims": claims}
    fleet = Snapshot(observed_of(world))
    with fleet.fork(), fleet.part(GpuClaims).judged(requests_of(world)):
        change(fleet, {"placed": placed})
        fits(fleet, fleet.classes.of(pod_of("asking", {"claim": "one"})))
        assert fleet.part(FreeDevices).free_on(fleet.rows.row_of["n0"]) == (3,)


def test_another_count_of_a_running_claim_is_noticed() -> None:
    world: Words = {
        "nodes": {"n0": {"board": "4xA300"}},
        "pods": {"p0": {"node": "n0", "claim": "one"}},
        "claims": {"one": 1, "two": 2},
    }
    fleet = Snapshot(observed_of(world))
    assert answers(fleet, world)["two"] == ["n0"]
    world["claims"]["one"] = 3
    fleet.advance(like_before(fleet.observed, observed_of(world)))
    assert answers(fleet, world)["two"] == []


def test_another_model_of_the_pool_is_noticed() -> None:
    world: Words = {"nodes": {"n0": {"board": "2xA300"}}, "claims": {"one": {"count": 1, "model": "a100"}}}
    fleet = Snapshot(observed_of(world))
    assert answers(fleet, world) == {"one": ["n0"]}
    asked = fleet.classes.of(pod_of("asking", {"claim": "one"}))
    claims = requests_of(world)
    with fleet.part(GpuClaims).judged(ClaimRequests(claims.by_claim, {"a100": DECLARED["l4"]})):
        assert fits(fleet, asked) == []


def test_an_unhealthy_gpu_is_noticed_when_only_the_report_changes() -> None:
    world: Words = {"nodes": {"n0": {"board": "2xA300"}}, "claims": {"one": 2}}
    fleet = Snapshot(observed_of(world))
    assert answers(fleet, world) == {"one": ["n0"]}
    world["nodes"]["n0"]["unhealthy"] = [1]
    after = like_before(fleet.observed, observed_of(world))
    assert after.nodes[0] is fleet.observed.nodes[0]
    fleet.advance(after)
    assert answers(fleet, world) == {"one": []}


def test_more_allocatable_gpus_are_noticed_when_only_the_node_changes() -> None:
    world: Words = {"nodes": {"n0": {"gpus": 1}}, "claims": {"one": 2}}
    fleet = Snapshot(observed_of(world))
    assert answers(fleet, world) == {"one": []}
    world["nodes"]["n0"]["gpus"] = 2
    fleet.advance(like_before(fleet.observed, observed_of(world)))
    assert answers(fleet, world) == {"one": ["n0"]}


def test_a_lease_is_noticed_when_nothing_else_changes() -> None:
    world: Words = {"nodes": {"n0": {"board": "2xA300"}}, "claims": {"one": 2}}
    fleet = Snapshot(observed_of(world))
    assert answers(fleet, world) == {"one": ["n0"]}
    leases: tuple[Lease, ...] = (lease_of("gpu-n0-1", {"holder": "x"}, "n0"),)
    fleet.advance(msgspec.structs.replace(fleet.observed, leases=leases))
    assert answers(fleet, world) == {"one": []}
