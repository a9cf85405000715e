"""The ledger of lent GPUs: golden table, and any history of changes leads to what a new ledger says."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.amounts import GpuRequests
from reconciler.fleet.devices.device_lease import allocation_text, lease_name, read_allocation
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, Metadata
from reconciler.model.cluster.pod import Pod
from tests import builders, folders
from tests.unit.fleet.devices.stage import NODE, Words, board_of, lease_of

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "ledger.yaml").read_text())


def pod_of(uid: str, words: Words) -> Pod:
    return builders.pod(
        uid,
        uid=uid,
        namespace="team",
        gpus=words.get("gpus"),
        node_name=words.get("node", NODE),
        phase=words.get("phase", "Running"),
        annotations=Annotations(claim=words.get("claim", ""), allocated=words.get("allocated", "")),
    )


def requests_of(counts: dict[str, int]) -> GpuRequests:
    return GpuRequests({("team", claim): count for claim, count in counts.items()})


@pytest.mark.parametrize("name", CASES)
def test_gpus_of_a_node_are_taken(name: str) -> None:
    case = CASES[name]
    board = board_of({**case, "lent": ()})
    ledger = DeviceLedger(
        [lease_of(title, words) for title, words in case.get("leases", {}).items()],
        [pod_of(uid, words) for uid, words in case.get("pods", {}).items()],
        requests_of(case.get("claims", {})),
    )
    taken = ledger.taken(NODE, board)
    assert board.layout.ids_of(taken.lent) == tuple(case.get("lent", ()))
    assert board.layout.ids_of(taken.assumed) == tuple(case.get("assumed", ()))
    assert taken.excess == case.get("excess", 0)
    assert [each.id for each in ledger.conflicts_on(NODE)] == case.get("conflicts", [])
    assert [each.uid for each in ledger.users_without_claim(NODE)] == case.get("without_claim", [])
    assert ledger.free(NODE, board) == board.healthy & ~(taken.lent | taken.assumed)


NODES = ("n1", "n2")
LEASES = some.builds(
    lambda name, holder, device_id, uuid, node: lease_of(
        name, {"holder": holder, "id": device_id, "uuid": uuid, "node": node}
    ),
    some.sampled_from(["gpu-x", *(f"gpu-{node}-{number}" for node in NODES for number in range(3))]),
    some.sampled_from(("", "p1", "p2", "p3")),
    some.sampled_from(("", 0, 1, 2)),
    some.sampled_from(("", "GPU-0", "GPU-1")),
    some.sampled_from(NODES),
)
PODS = some.builds(
    lambda uid, gpus, node, claim, phase, ids: pod_of(
        uid,
        {"gpus": gpus, "node": node, "claim": claim, "phase": phase, "allocated": allocation_text(node, ids)},
    ),
    some.sampled_from(("p1", "p2", "p3")),
    some.integers(0, 3),
    some.sampled_from(("", *NODES)),
    some.sampled_from(("", "c", "d")),
    some.sampled_from(("Running", "Running", "Failed")),
    some.sets(some.integers(0, 3)),
)
COUNTS = some.dictionaries(some.sampled_from(("c", "d")), some.integers(1, 3)).map(requests_of)
CHANGES = some.one_of(
    LEASES,
    PODS,
    COUNTS,
    some.sampled_from([f"gpu-{node}-{number}" for node in NODES for number in range(3)]),
    some.sampled_from(("p1", "p2", "p3")),
)


@given(some.lists(CHANGES, max_size=30), some.randoms())
def test_any_history_leads_to_what_a_new_ledger_says(changes: list[Any], random: Any) -> None:
    board = board_of({"board": "4xA300", "unhealthy": [1]})
    ledger = DeviceLedger()
    leases: dict[str, Lease] = {}
    pods: dict[str, Pod] = {}
    counts = GpuRequests()
    for change in changes:
        match change:
            case Lease():
                leases[change.metadata.name] = change
                ledger.put_lease(change)
            case Pod():
                pods[change.metadata.uid] = change
                ledger.put_pod(change)
            case GpuRequests():
                counts = change
                ledger.take_requests(change)
            case str() if change.startswith("gpu-"):
                leases.pop(change, None)
                ledger.drop_lease(change)
            case _:
                pods.pop(change, None)
                ledger.drop_pod(change)
        touched = ledger.take_touched()
        assert touched <= set(NODES)
        fresh = DeviceLedger(leases.values(), pods.values(), counts)
        for node in NODES:
            assert ledger.taken(node, board) == fresh.taken(node, board)
            assert ledger.conflicts_on(node) == fresh.conflicts_on(node)
    shuffled = list(leases.values()), list(pods.values())
    random.shuffle(shuffled[0])
    random.shuffle(shuffled[1])
    fresh = DeviceLedger(*shuffled, counts)
    assert ledger.fingerprint() == fresh.fingerprint()
    assert [ledger.leases_of(uid) for uid in ("p1", "p2", "p3")] == [fresh.leases_of(uid) for uid in ("p1", "p2", "p3")]
    ledger.advance(leases.values(), (), pods.values(), ())
    assert ledger.fingerprint() == ()


@given(some.lists(LEASES, max_size=6), some.lists(PODS, max_size=6))
def test_what_is_changed_is_touched(leases: list[Lease], pods: list[Pod]) -> None:
    """Nodes that are not touched have the answer that they had."""
    board = board_of({"board": "4xA300"})
    ledger = DeviceLedger()
    changes: list[Lease | Pod] = [*leases, *pods]
    for change in changes:
        before = {node: ledger.taken(node, board) for node in NODES}
        if isinstance(change, Lease):
            ledger.put_lease(change)
        else:
            ledger.put_pod(change)
        touched = ledger.take_touched()
        assert all(ledger.taken(node, board) == before[node] for node in NODES if node not in touched)


def test_a_lease_of_the_controller_is_no_lease_of_a_gpu() -> None:
    ledger = DeviceLedger([lease_of("gpu-n1-0", {"holder": "one"})])
    own = Lease(Metadata("gpu-n1-0", names.OWN_NAMESPACE))
    ledger.put_lease(own)
    ledger.advance([own], [], [], [])
    assert [each.id for each in ledger.leases_on(NODE)] == [0]


def test_a_board_that_changes_changes_the_answer() -> None:
    ledger = DeviceLedger([lease_of("gpu-n1-0", {"holder": "one", "uuid": "GPU-2"})])
    assert ledger.taken(NODE, board_of({"board": "4xA300"})).lent == 0b101
    assert ledger.taken(NODE, board_of({"board": "2xA300"})).lent == 0b001


@pytest.mark.parametrize(("length", "is_hashed"), [(246, False), (247, False), (248, True), (253, True)])
def test_a_lease_has_a_valid_name_for_any_node(length: int, is_hashed: bool) -> None:
    one, other = "n" * length, "n" * (length - 1) + "m"
    assert lease_name(one, 1) != lease_name(other, 1)
    assert len(lease_name(one, 1)) <= 253
    assert (lease_name(one, 1) != f"gpu-{one}-1") == is_hashed


@given(some.text(max_size=5), some.sets(some.integers(0, 63)))
def test_an_allocation_is_read_back(node: str, ids: set[int]) -> None:
    assert read_allocation(allocation_text(node, ids), node) == tuple(sorted(ids))
    assert read_allocation(allocation_text(node, ids), f"{node}x") == ()


@given(some.text(), some.text(max_size=3))
def test_any_annotation_is_read(text: str, node: str) -> None:
    assert len(read_allocation(text, node)) <= 64
