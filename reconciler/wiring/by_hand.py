"""What a person writes with their own kubeconfig: freezes and approvals."""

import msgspec

from reconciler.model import names
from reconciler.model.kinds.change_approval import ChangeApproval


class Freezing(msgspec.Struct, frozen=True):
    """What is frozen, and until when; nothing ends its freeze."""

    kind: str  # node, pool, guard, all
    name: str
    until: str
    reason: str = ""


def freeze(context: str | None, freezing: Freezing) -> tuple[str, ...]:
    """Titles of the objects that say so now. Raises NotWritten, Unreachable."""
    from reconciler.kube.by_hand import annotate, places_of  # noqa: PLC0415  the client costs a quarter of a second
    from reconciler.kube.client import connect  # noqa: PLC0415

    told = {names.FROZEN_UNTIL: freezing.until or None, names.FROZEN_REASON: freezing.reason or None}
    places = places_of(freezing.kind, freezing.name)
    # A pool may have been frozen in either place, by hand too.
    return annotate(connect(context), places, told, everywhere=not freezing.until)


def approve(context: str | None, approval: ChangeApproval) -> str:
    """The name of the ChangeApproval. Raises NotWritten, Unreachable."""
    from reconciler.kube import by_hand  # noqa: PLC0415
    from reconciler.kube.client import connect  # noqa: PLC0415

    return by_hand.approve(connect(context), approval)
