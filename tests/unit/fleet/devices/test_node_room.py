"""What pods take of a node beside GPUs: the ledger's sums are those of the pods there are."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.node_room import NO_REQUEST, FreeAmounts, PodRequest, RequestLedger
from reconciler.model.cluster.pod import ContainerStatus, Pod, ResourceRequirements
from tests import builders

NODES = ("", "n0", "n1")


def pod(number: int, node: str, cpu: int, memory: int, phase: str) -> Pod:
    asks = {"cpu": f"{cpu}m", "memory": str(memory)}
    return builders.pod(f"p{number}", asks=asks, node_name=node, uid=f"uid-{number}", phase=phase)


PODS = some.builds(
    pod,
    some.integers(0, 5),
    some.sampled_from(NODES),
    some.integers(0, 4_000),
    some.integers(0, 2**40),
    some.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
)


@given(some.lists(some.tuples(PODS, some.booleans()), max_size=40))
def test_the_sums_are_those_of_the_unfinished_pods_on_each_node(changes: list[tuple[Pod, bool]]) -> None:
    ledger, pods = RequestLedger(), dict[str, Pod]()
    for changed, is_gone in changes:
        uid = changed.metadata.uid
        before = {node: ledger.taken(node) for node in NODES}
        if is_gone:
            pods.pop(uid, None)
            ledger.drop_pod(uid)
        else:
            pods[uid] = changed
            ledger.put_pod(changed)
        cpu, memory = Counter[str](), Counter[str]()
        for each in pods.values():
            if each.node and not each.is_finished:
                request = PodRequest.of(each)
                cpu[each.node] += request.cpu_milli
                memory[each.node] += request.memory
        after = {node: ledger.taken(node) for node in NODES}
        assert after == {node: PodRequest(cpu[node], memory[node]) for node in NODES}
        assert {node for node in NODES if before[node] != after[node]} <= ledger.take_touched()


def test_a_resized_pod_takes_what_is_allocated_until_the_node_has_taken_the_rest_away() -> None:
    ledger = RequestLedger()
    running = ContainerStatus(resources=ResourceRequirements({"cpu": "4"}), allocated_resources={"cpu": "4"})
    ledger.put_pod(builders.pod("p", asks={"cpu": "1"}, node_name="n0", uid="p", container_statuses=(running,)))
    assert ledger.taken("n0").cpu_milli == 4_000


def test_more_than_a_node_has_leaves_nothing() -> None:
    node = builders.node("n0", has={"cpu": "4", "memory": "8Gi"})
    assert FreeAmounts.of(node) == (4_000, 8 * 2**30)
    assert FreeAmounts.of(node).without(PodRequest(5_000, 2**40)) == (0, 0)
    assert FreeAmounts.of(builders.node("n1")).without(PodRequest(5_000, 1)) == (None, None)
    assert FreeAmounts.of(node).without(NO_REQUEST) == FreeAmounts.of(node)
