"""An order of capacity types that Karpenter would not keep is a warning, and no other order is."""

import itertools

import pytest

from reconciler.model.bundle import Bundle, Text
from reconciler.policy.resolve import resolve

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: a100}}
spec:
  suspend: {suspend}
  devices: {{model: a100, count: 8, memory: 40Gi}}
  instanceTypes: [{{name: p4d.24xlarge, capacity: {{cpu: 96, memory: 1152Gi, pods: 250}}}}]
  capacityTypes: [{types}]
  nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}}
"""
KEPT = (
    "reserved",
    "spot",
    "on-demand",
    "reserved, spot",
    "reserved, on-demand",
    "spot, on-demand",
    "reserved, spot, on-demand",
)
ALL = [
    ", ".join(each) for count in (1, 2, 3) for each in itertools.permutations(("on-demand", "spot", "reserved"), count)
]


def problems(types: str, suspend: str = "false") -> list[str]:
    resolved = resolve(Bundle("r", (Text("p.yaml", POOL.format(types=types, suspend=suspend).encode()),)))
    return [each.code for each in (*resolved.problems, *resolved.warnings)]


@pytest.mark.parametrize("types", ALL)
def test_an_order_that_karpenter_does_not_keep_is_a_warning(types: str) -> None:
    assert problems(types) == ([] if types in KEPT else ["RC315"])


def test_a_suspended_pool_buys_nothing() -> None:
    assert problems("on-demand, spot", suspend="true") == []


@pytest.mark.parametrize("types", ["spot, spot", "spot, on-demand, spot", "spot, on-demand, on-demand"])
def test_a_repeated_type_is_refused(types: str) -> None:
    assert problems(types) == ["RC108"]


def test_a_repeated_type_hides_no_wrong_order() -> None:
    assert problems("on-demand, on-demand, spot") == ["RC108", "RC315"]
