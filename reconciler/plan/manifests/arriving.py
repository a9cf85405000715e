"""The startup taint that holds new nodes back until they can be used: of NodePools that we make, and fixed at that.

To put it into a template that lacks it would drift every node. So where a live NodePool lacks it, adopted or made
before there was such a taint, it is no part of the wish. One that has it keeps it, as long as its template says so.
"""

from typing import Any

from reconciler.model import names
from reconciler.model.cluster.whole import Whole

_FIELD = "startupTaints"


def leave_out_arriving(body: dict[str, Any], live: Whole) -> None:
    """Takes it out of what is wished of a NodePool that stands without it."""
    wished, there = _node(body.get("spec")), _node(live.spec)
    if any(_is_arriving(each) for each in there.get(_FIELD) or ()):
        return
    left = [each for each in wished.get(_FIELD) or () if not _is_arriving(each)]
    if left:
        wished[_FIELD] = left
    elif wished.get(_FIELD):  # to say that there are none would take away those of others
        del wished[_FIELD]


def _is_arriving(taint: Any) -> bool:
    return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (names.ARRIVING, "NoSchedule")


def _node(spec: Any) -> dict[str, Any]:
    return ((spec or {}).get("template") or {}).get("spec") or {}
