"""What is said to keep a node does keep it, and nothing less would."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.plan.evaluation import SizeEvaluation, Use
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.scaling.size import KeptIf, decide_size, kept_if
from tests.unit.plan.some_reasons import some_reason

WISH = NodeProvisioner(pool_name="p", min_size=60, max_size=120, min_gpu_utilization_percent=70)


def evaluated(use: Use, wish: NodeProvisioner, otherwise: int = 0) -> SizeEvaluation:
    target = decide_size(use, wish).target
    surplus = max(0, use.nodes - otherwise - target)
    return SizeEvaluation("p", "p", use, target, some_reason("x"), surplus=surplus, leaving_otherwise=otherwise)


def is_kept(use: Use, wish: NodeProvisioner, rank: int, otherwise: int) -> bool:
    return evaluated(use, wish, otherwise).surplus < rank


@pytest.mark.parametrize(
    ("rank", "told"),
    [(3, KeptIf(661, 67, 38)), (1, KeptIf(672, 66, 40)), (6, KeptIf(644, 69, 35))],
)
def test_the_screen_of_the_design_has_these_figures(rank: int, told: KeptIf) -> None:
    assert kept_if(evaluated(Use(120, 80, 640, 960, 8), WISH), WISH, rank) == told


def test_nothing_keeps_a_node_above_the_largest_size() -> None:
    wish = msgspec.structs.replace(WISH, max_size=100)
    assert kept_if(evaluated(Use(120, 80, 640, 960, 8), wish), wish, 20) == KeptIf(None, None, None)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Use, NodeProvisioner, int, int]:
    """A pool that is too large, and the rank of a node that goes."""
    sizes = draw(st.lists(st.sampled_from([4, 8]) if draw(st.booleans()) else st.just(8), min_size=1, max_size=30))
    busy = draw(st.integers(0, len(sizes)))
    used = sum(draw(st.integers(1, gpus)) for gpus in sizes[:busy])
    spare = tuple(sizes[busy:]) if len(set(sizes)) > 1 else None
    use = Use(len(sizes), busy, used, sum(sizes), sizes[0] if spare is None else 8, spare)
    least = draw(st.integers(0, 5))
    wish = NodeProvisioner(
        pool_name="p",
        min_size=least,
        max_size=draw(st.integers(least, 40)),
        min_gpu_utilization_percent=draw(st.integers(0, 100)),
        min_unutilized_gpu_nodes=draw(st.integers(0, 3)),
    )
    otherwise = draw(st.integers(0, 3))
    return use, wish, draw(st.integers(1, len(sizes))), otherwise


@given(cases())
def test_each_figure_keeps_the_node_and_the_next_smaller_change_does_not(
    case: tuple[Use, NodeProvisioner, int, int],
) -> None:
    use, wish, rank, otherwise = case
    if is_kept(use, wish, rank, otherwise):
        return
    found = kept_if(evaluated(use, wish, otherwise), wish, rank)
    replace = msgspec.structs.replace
    most = use.gpus_total if found.gpus_used is None else found.gpus_used - 1
    assert not is_kept(replace(use, gpus_used=most), wish, rank, otherwise)
    if found.gpus_used is not None:
        assert is_kept(replace(use, gpus_used=found.gpus_used), wish, rank, otherwise)
    least = 0 if found.percent is None else found.percent + 1
    assert not is_kept(use, replace(wish, min_gpu_utilization_percent=least), rank, otherwise)
    if found.percent is not None:
        assert is_kept(use, replace(wish, min_gpu_utilization_percent=found.percent), rank, otherwise)
    fewest = use.nodes if found.unutilized is None else found.unutilized - 1
    assert fewest <= wish.min_unutilized_gpu_nodes or not is_kept(
        use, replace(wish, min_unutilized_gpu_nodes=fewest), rank, otherwise
    )
    if found.unutilized is not None:
        assert is_kept(use, replace(wish, min_unutilized_gpu_nodes=found.unutilized), rank, otherwise)
