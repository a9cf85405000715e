"""`release`: reads the cluster and removes objects, repeatedly, until nothing of reconciler is left to remove."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from reconciler.controller.apply_once import Acting, leading
from reconciler.controller.cluster import ClusterView, current_instant
from reconciler.kube.api_server import Writer
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import connect, context_name
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.observe import observe_once
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.decision import Decision, Hold, Outcome
from reconciler.plan.release import release
from reconciler.ports import Cluster, Fence

# One action per subject in each round: after more rounds than this, something else recreates the objects.
_MOST_ROUNDS = 12


class ReleaseResult(msgspec.Struct, frozen=True):
    observed: Observed
    carried_out: tuple[tuple[Decision, Outcome], ...] = ()
    left: tuple[Decision, ...] = ()


def release_all(acting: Acting, pool: str = "") -> tuple[ClusterView, ReleaseResult]:
    """Raises Occupied if a running controller would recreate the objects, and Unreachable."""
    client = connect(acting.context)
    try:
        with _fence(client, acting, pool) as fence:
            taken = take_off(
                LiveCluster(partial(observe_once, client, acting.namespace), Executor(client)), fence, pool
            )
    finally:
        client.close()
    return ClusterView(taken.observed, context_name(acting.context), current_instant()), taken


def take_off(cluster: Cluster, fence: Fence, pool: str = "") -> ReleaseResult:
    """Repeats until nothing is left, or nothing more can be removed."""
    carried_out: list[tuple[Decision, Outcome]] = []
    observed = cluster.observe()
    decisions: tuple[Decision, ...] = ()
    for _ in range(_MOST_ROUNDS):
        decisions = release(observed, pool)
        due = {each.subject: each for each in decisions if not isinstance(each.act, Hold)}
        outcomes = list(cluster.apply(list(due.values()), fence)) if due else []
        carried_out += [(due[each.subject], each) for each in outcomes]
        if not any(each.result == "done" for each in outcomes):
            break
        observed = cluster.observe()
    return ReleaseResult(observed, tuple(carried_out), decisions)


@contextmanager
def _fence(client: Writer, acting: Acting, pool: str) -> Iterator[Fence]:
    """The leader's fence for a full release. Beside a running controller, a pool that the controller does not act on
    can be released."""
    if pool:
        yield _Unfenced()
        return
    with leading(client, acting.namespace, acting.tell) as fence:
        yield fence


class _Unfenced:
    """A fence for writes whose preconditions suffice."""

    def holds(self) -> bool:
        return True
