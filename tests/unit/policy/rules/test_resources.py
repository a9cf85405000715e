"""Names of resources that no node has, and amounts that cannot be meant, in policies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.quantity import Quantity
from reconciler.policy.rules.hardware import OF_NODES, invalid_amounts, resource_problems, unknown_names
from tests.unit.policy.texts import convert

LIMITS = (*OF_NODES, "nodes")


def pool(**more: Any) -> GpuPool:
    body = {
        "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
        "instanceTypes": [{"name": "p4d.24xlarge", "capacity": {"cpu": "96", "memory": "1152Gi", "pods": "250"}}],
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu-a100"},
        **more,
    }
    found: GpuPool = convert(body, GpuPool)
    return found


def names(*written: str) -> list[tuple[str, str]]:
    """The code of each, and what is to be written."""
    found = unknown_names("spec.limits", written, LIMITS)
    return [(each.code, each.remedy.split(",")[0]) for each in found]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpus", "nvidia.com/gpu"),
        ("gpu", "nvidia.com/gpu"),
        ("GPU", "nvidia.com/gpu"),
        ("mem", "memory"),
        ("Memory", "memory"),
        ("cpus", "cpu"),
        ("CPU", "cpu"),
        ("vcpu", "cpu"),
        ("node", "nodes"),
        ("pod", "pods"),
        ("storage", "ephemeral-storage"),
        ("ephemeralstorage", "ephemeral-storage"),
        ("NVIDIA.com/gpu", "nvidia.com/gpu"),
    ],
)
def test_a_name_that_no_node_can_have_is_an_error_with_the_name_that_was_meant(name: str, meant: str) -> None:
    assert names(name) == [("RC318", f"write {meant}")]


@pytest.mark.parametrize("name", ["licences", "a", "/gpu", "nvidia.com/", "a//b", "-.example.com/x"])
def test_so_is_one_of_which_nobody_can_tell_what_was_meant(name: str) -> None:
    assert names(name) == [("RC318", "write cpu")]


@pytest.mark.parametrize("name", ["nvidia.com/gpus", "nvdia.com/gpu", "nvidia.com/GPU", "nvidia/gpu", "amd.com/gpus"])
def test_a_name_with_a_domain_close_to_one_in_wide_use_is_a_warning(name: str) -> None:
    (found,) = unknown_names("spec.limits", [name], LIMITS)
    assert (found.code, found.severity) == ("RC319", "warning")
    assert found.remedy.endswith(f"or leave it if nodes advertise {name}")


@pytest.mark.parametrize(
    "name",
    [
        *LIMITS,
        "hugepages-2Mi",
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.5gb",
        "nvidia.com/gpumem",
        "nvidia.com/vgpu",
        "aws.amazon.com/neuron",
        "example.com/licence",
        "rdma/hca_shared_devices_a",
        "smarter-devices/fuse",
    ],
)
def test_what_nodes_may_have_is_allowed(name: str) -> None:
    assert names(name) == []


DOMAINS = st.from_regex(r"[a-z]{1,8}(\.[a-z]{2,8}){1,2}", fullmatch=True).filter(lambda each: "gpu" not in each)


@given(DOMAINS, st.from_regex(r"[a-z]{1,10}(-[a-z0-9]{1,5})?", fullmatch=True))
def test_an_extended_resource_of_anybody_is_never_an_error(domain: str, name: str) -> None:
    assert all(code == "RC319" for code, _ in names(f"{domain}/{name}"))


def test_nodes_are_counted_by_limits_alone() -> None:
    spec = pool(limits={"nodes": "8"}, instanceTypes=[{"name": "p4d.24xlarge", "capacity": {"nodes": "1"}}])
    assert [each.path for each in resource_problems(spec)] == ["spec.instanceTypes[0].capacity.nodes"]
    drain = convert({"poolNames": ["*"], "clusterMin": {"nodes": "4"}}, DrainPolicy)
    assert [(each.path, each.code) for each in resource_problems(drain)] == [("spec.clusterMin.nodes", "RC318")]


def amounts(may_be_none: bool, **written: str) -> list[str]:
    found = {name.replace("_", "/"): Quantity.parse(text) for name, text in written.items()}
    return [each.path for each in invalid_amounts("at", found, may_be_none=may_be_none)]


def test_an_amount_of_memory_below_a_mebibyte_cannot_be_meant() -> None:
    for text in ("40", "1048575", "40m", "512Ki", "999k"):
        assert amounts(True, memory=text) == ["at.memory"], text
    for text in ("1Mi", "1048576", "40Gi", "2M", "0"):
        assert amounts(True, memory=text) == [], text
    assert amounts(False, memory="0") == ["at.memory"]
    assert amounts(True, cpu="8", pods="110") == []


def test_units_of_bytes_and_fractions_count_nothing() -> None:
    assert amounts(True, cpu="96Gi", pods="110Ki", nodes="8Mi") == ["at.cpu", "at.pods", "at.nodes"]
    assert amounts(True, nodes="1.5", pods="500m") == ["at.nodes", "at.pods"]
    assert amounts(True, cpu="500m", nodes="0") == []


def test_a_limit_of_nothing_is_meant_and_a_machine_without_memory_is_not() -> None:
    assert list(resource_problems(pool(limits={"cpu": "0", "memory": "0", "nodes": "0"}))) == []
    spec = pool(devices={"model": "a100", "count": 8, "memory": "0"})
    assert [(each.path, each.remedy) for each in resource_problems(spec)] == [
        ("spec.devices.memory", "write the amount")
    ]
