"""The startup taint that holds new nodes back until they can be used: of NodePools that we make, and fixed at that.

To put it into a template that lacks it would drift every node, and so would taking it out. So where a live NodePool
lacks it, adopted or made before there was such a taint, it is no part of the wish; and one that has it keeps it.
"""

from typing import Any

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured

_FIELD = "startupTaints"


def keep_arriving_as_it_is(body: dict[str, Any], live: Unstructured) -> None:
    """Takes it out of what is wished of a NodePool that stands without it, and puts it in where it stands with it."""
    wished, there = _node(body.get("spec")), _node(live.spec)
    kept = [each for each in there.get(_FIELD) or () if _is_arriving(each)]
    left = [each for each in wished.get(_FIELD) or () if not _is_arriving(each)]
    if kept:
        is_wished = len(left) < len(wished.get(_FIELD) or ())
        wished[_FIELD] = wished[_FIELD] if is_wished else [*left, *kept]
    elif left:
        wished[_FIELD] = left
    elif wished.get(_FIELD):  # to say that there are none would take away those of others
        del wished[_FIELD]


def _is_arriving(taint: Any) -> bool:
    return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (names.ARRIVING, "NoSchedule")


def _node(spec: Any) -> dict[str, Any]:
    return ((spec or {}).get("template") or {}).get("spec") or {}
