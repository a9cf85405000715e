"""How many nodes a pool shall keep: the table of cases, and what holds for every pool."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.plan.evaluation import Use
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.scaling.size import decide_size
from tests import folders

CASES = yaml.safe_load((folders.CASES / "scaling" / "size.yaml").read_text())


def keeping(least: int, most: int, percent: int, unutilized: int) -> NodeProvisioner:
    return NodeProvisioner(
        pool_name="a100",
        min_size=least,
        max_size=most,
        min_gpu_utilization_percent=percent,
        min_unutilized_gpu_nodes=unutilized,
    )


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    size = decide_size(Use(*case["use"]), keeping(*case["keep"]))
    assert size.target == case["target"], size.reason
    assert size.surplus == max(0, case["use"][0] - size.target)


@some.composite
def uses(draw: some.DrawFn) -> Use:
    nodes, gpus = draw(some.integers(0, 300)), draw(some.sampled_from([1, 2, 4, 8]))
    busy = draw(some.integers(0, nodes))
    used = draw(some.integers(busy, busy * gpus))
    return Use(nodes=nodes, busy_nodes=busy, gpus_used=used, gpus_total=nodes * gpus, gpus_per_node=gpus)


@some.composite
def bounds(draw: some.DrawFn) -> NodeProvisioner:
    least, most = sorted((draw(some.integers(0, 300)), draw(some.integers(0, 300))))
    return keeping(least, most, draw(some.integers(0, 100)), draw(some.integers(0, 20)))


@given(uses(), bounds())
def test_the_target_is_within_bounds(use: Use, keep: NodeProvisioner) -> None:
    assert keep.min_size <= decide_size(use, keep).target <= keep.max_size


@given(uses(), bounds())
def test_busy_nodes_are_undercut_only_by_the_largest_size(use: Use, keep: NodeProvisioner) -> None:
    assert decide_size(use, keep).target >= min(use.busy_nodes, keep.max_size)


@given(uses(), bounds())
def test_once_the_surplus_is_gone_the_target_stays(use: Use, keep: NodeProvisioner) -> None:
    """Reaching the target is the end of it: a pool does not shrink step by step for one and the same load."""
    first = decide_size(use, keep)
    gone = min(first.surplus, use.nodes - use.busy_nodes)
    left = use.nodes - gone
    then = decide_size(Use(left, use.busy_nodes, use.gpus_used, left * use.gpus_per_node, use.gpus_per_node), keep)
    assert then.target == first.target
