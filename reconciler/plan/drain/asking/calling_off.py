"""Pods that were told to save their work, and stay: what they were told is taken back.

That is so once their node is not being emptied any more: it was given back, or its DrainPolicy is suspended or gone. As
it goes by what is seen on the node, it also comes of a drain that was broken off while nobody was there.
"""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.planned.action import Annotate
from reconciler.model.planned.decision import Decision
from reconciler.plan.drain.marks import draining_mark
from reconciler.plan.drain.reasons import CALLED_OFF, PLANNER
from reconciler.plan.drain.site import Site, ref_of_pod
from reconciler.plan.removal import untouchable

_OFF = Annotate(annotations=((names.EVICT_AT, None),))


def called_off(site: Site) -> Iterator[Decision]:
    """What somebody else takes away is left to them."""
    for pod in site.fleet.occupancy.told:
        node = site.fleet.node(pod.node)
        pool = site.pools.get(node.pool) if node is not None else None
        if node is None or pool is None or untouchable(node) is not None or _is_emptied(site, node):
            continue
        if not pod.metadata.leaving and not site.is_claimed(ref_of_pod(pod)):
            because = CALLED_OFF.reason(pool.origin(), pod=f"Pod/{pod.title}", node=node.name)
            yield Decision(PLANNER, ref_of_pod(pod), _OFF, because, pool.name)


def _is_emptied(site: Site, node: Node) -> bool:
    return node.pool in site.policy_of and draining_mark(node) is not None
