"""The memory that a smart pod asks for: that of the GPUs, and never more than a node of its instance type can give."""

from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.cluster.pod import Pod
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.quantity import Quantity, amount_offered
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import CapacityRequest
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.smart_pods.create import memory_of, vram_of
from tests import builders

GI = 2**30
sizes = some.integers(1, 64 * 1024)  # Gi


def pool(gpus: int, of_one: int, declared: int | None) -> GpuPool:
    capacity = {} if declared is None else {"memory": Quantity.parse(f"{declared}Gi")}
    return GpuPool(
        devices=Devices(model="a100", count=gpus, memory=Quantity.parse(f"{of_one}Gi")),
        instance_types=[InstanceType(name="box", capacity=capacity)],
        node_class_ref=NodeClassRef(group="example.com", kind="NodeClass", name="gpu"),
    )


def waiting(asked: int | None) -> Pod:
    return builders.pod("train", asks={} if asked is None else {"memory": f"{asked}Gi"})


def asked_bytes(spec: GpuPool, left: int, pods: tuple[Pod, ...], has_live_node: bool) -> int:
    count = spec.devices.count
    request = CapacityRequest(
        "key", "a100", "a100", count, "demand", instance_type="box", vram=str(vram_of(spec, count))
    )
    wanted = WantedNode(
        pool="a100", provisioner="keep", why="demand", choice=LaunchOption("box"), memory=str(left), pods=pods
    )
    return amount_offered(str(memory_of(spec, request, wanted, has_live_node))) // 10**9


@given(some.integers(1, 16), some.integers(1, 512), sizes)
def test_it_is_what_a_live_node_has_left_or_less(gpus: int, of_one: int, left: int) -> None:
    found = asked_bytes(pool(gpus, of_one, None), left * GI, (), has_live_node=True)
    assert found == min(gpus * of_one, left) * GI


@given(some.integers(1, 16), some.integers(1, 512), sizes)
def test_of_a_declared_capacity_a_margin_is_left_for_what_the_system_takes(gpus: int, of_one: int, left: int) -> None:
    found = asked_bytes(pool(gpus, of_one, left), left * GI, (), has_live_node=False)
    assert found == min(gpus * of_one * GI, left * GI * 85 // 100)


@given(some.integers(1, 16), some.integers(1, 512), some.none() | some.integers(1, 512))
def test_where_nothing_is_known_it_is_what_the_waiting_pods_ask_for(gpus: int, of_one: int, asked: int | None) -> None:
    found = asked_bytes(pool(gpus, of_one, None), 10**12, (waiting(asked), waiting(None)), has_live_node=False)
    assert found == min(gpus * of_one, asked or 0) * GI
