"""For how many nodes at once a NodePool's limits let Karpenter launch replacements.

A replacement is launched before the node that it is for goes. Yet that node does not count when room is looked for, nor
does one that is leaving: nodes go one for one, any number at a time, as long as no limit is exceeded beforehand; where
one is, no replacement is launched at all. That machines are replaced by equals is taken for granted here.

A NodePool of a fixed size (spec.replicas) is stricter: all its nodes count until they are gone, so that it takes room
above them for each replacement.
"""

from collections.abc import Collection, Mapping
from typing import Any

from reconciler.model.resource_quantity import billionths
from reconciler.plan.karpenter.survey import NodePoolSurvey, Surveyed

_NODES = "nodes"


def room(spec: Mapping[str, Any], survey: NodePoolSurvey, gone: Collection[str]) -> int | None:
    """How many at once, when some nodes are gone; 0 is none at all, None is any number."""
    limits = {name: _milli(most) for name, most in (spec.get("limits") or {}).items()}
    if not limits:
        return None
    left = [surveyed_node for surveyed_node in survey.all() if surveyed_node.name not in gone]
    if spec.get("replicas") is not None:
        most = limits.get(_NODES)
        return None if most is None else max(0, most // 1000 - len(left))
    counted = [surveyed_node for surveyed_node in left if not surveyed_node.is_leaving]
    exceeded = any(
        most is not None and sum(_amount(surveyed_node, name) for surveyed_node in counted) > most
        for name, most in limits.items()
    )
    return 0 if exceeded else None


def _amount(surveyed_node: Surveyed, resource: str) -> int:
    """In thousandths."""
    return 1000 if resource == _NODES else _milli(surveyed_node.capacity.get(resource, "0")) or 0


def _milli(written: Any) -> int | None:
    """Rounded up; nothing where it can't be read: then it limits nothing here."""
    amount = billionths(str(written))
    return None if amount is None else -(-amount // 1_000_000)
