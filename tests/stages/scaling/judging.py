"""What scaling promises, judged by how a simulation went: told in sentences where it is not so.

The formula stands here once more, written by its text alone.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

from reconciler.report.simulation.simulated import PoolStep
from tests.stages.scaling.drawn import Outcome

CONSTANT_SINCE = 100 * 60  # seconds: nothing comes or goes after that, but nodes


def faults_of(outcome: Outcome) -> list[str]:
    """Nothing, where all is as promised."""
    return [told for judge in _judges() for told in judge(outcome)]


def broken_promises(outcome: Outcome) -> frozenset[str]:
    """Which were not kept, by the names of their judges: a smaller story fails with other figures."""
    return frozenset(judge.__name__.strip("_") for judge in _judges() if any(judge(outcome)))


def _judges() -> tuple[Callable[[Outcome], Iterator[str]], ...]:
    return (_unsafe, _sizes, _most, _turns, _waiting)


def _unsafe(outcome: Outcome) -> Iterator[str]:
    yield from (f"{each.rule}: {each.sentence}" for each in outcome.simulated.broken)
    yield from outcome.simulated.troubles


def _sizes(outcome: Outcome) -> Iterator[str]:
    """In the end each pool has the size that follows from its use."""
    for pool in outcome.pools:
        wish, wanted = outcome.wish(pool.pool), _wanted(outcome, pool)
        if pool.target != wanted:
            yield f"{pool.pool}: the target is {pool.target} and should be {wanted}: {pool}"
        # Busy nodes stay whatever the largest size; what the smallest lacks nobody buys for no pod.
        if pool.nodes != max(wanted, pool.busy_nodes) and not pool.nodes < wanted == wish.min_size:
            yield f"{pool.pool}: there are {pool.nodes} nodes and should be {wanted}: {pool}"


def _most(outcome: Outcome) -> Iterator[str]:
    """No pool is wanted larger than its largest size, with what is asked for and on its way.

    Karpenter counts limits.nodes once a look, and may buy more in that one; what it bought goes again once it is empty.
    """
    for size in (each for sizes in outcome.sizes for each in sizes):
        most = outcome.wish(size.pool).max_size
        asked = size.size + size.arriving + size.missing
        if size.target > most or (size.missing and asked > most):
            yield f"{size.pool}: {size.target} nodes are wanted and {size.missing} asked for, and {most} allowed"


def _wanted(outcome: Outcome, pool: PoolStep) -> int:
    wish = outcome.wish(pool.pool)
    used, percent = pool.gpus_used, wish.min_gpu_utilization_percent
    wished = pool.nodes
    if pool.gpus and 100 * used < percent * pool.gpus:
        spare = max(wish.min_unutilized_gpu_nodes, wish.warm_nodes)
        kept = min(max(pool.busy_nodes + spare, 1 if used else 0), pool.nodes)
        wished = max(_full_enough(outcome, pool, percent), kept)
    warm = pool.busy_nodes + wish.warm_nodes if wish.warm_nodes else 0
    return min(max(wished, wish.min_size, warm), wish.max_size)


def _full_enough(outcome: Outcome, pool: PoolStep, percent: int) -> int:
    """Where nodes differ, so many are left once the pool is full enough, or none of them is empty."""
    (spare,) = [each.use.spare for each in outcome.sizes[-1] if each.pool == pool.pool]
    if spare is None:
        return 100 * pool.gpus_used // (percent * (pool.gpus // pool.nodes))
    left = (pool.gpus - sum(spare[:gone]) for gone in range(len(spare) + 1))
    gone = next((at for at, gpus in enumerate(left) if 100 * pool.gpus_used >= percent * gpus), len(spare))
    return pool.nodes - gone


def _turns(outcome: Outcome) -> Iterator[str]:
    """Once the load is constant, sizes go up or down, and turn at most once."""
    since = outcome.when(CONSTANT_SINCE)
    steps = [each for each in outcome.simulated.steps if each.at >= since]
    for number, pool in enumerate(outcome.pools):
        sizes = [step.pools[number].nodes for step in steps]
        moves = [after > before for before, after in pairwise(sizes) if after != before]
        if sum(one != other for one, other in pairwise(moves)) > 1:
            yield f"{pool.pool}: sizes go up and down: {sizes}"


def _waiting(outcome: Outcome) -> Iterator[str]:
    """Pods find a place in the end, unless the largest size forbids it and no node is there that may go."""
    if outcome.simulated.sums.pending_pods and not any(_is_full(outcome, each) for each in outcome.pools):
        yield f"{outcome.simulated.sums.pending_pods} pods wait in the end"


def _is_full(outcome: Outcome, pool: PoolStep) -> bool:
    return pool.nodes >= outcome.wish(pool.pool).max_size and pool.nodes <= max(_wanted(outcome, pool), pool.busy_nodes)
