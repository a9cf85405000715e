"""Writes of a person: freezes and approvals."""

import msgspec

from reconciler.controller.cluster import ClusterPlace
from reconciler.model import names
from reconciler.model.policy.guards import ChangeApproval


class Freezing(msgspec.Struct, frozen=True):
    """What is frozen, and until when; nothing ends its freeze."""

    kind: str  # node, pool, guard, all
    name: str
    until: str
    reason: str = ""


class FreezeResult(msgspec.Struct, frozen=True):
    """Titles of the objects that say so now, and what a person must know of them."""

    titles: tuple[str, ...]
    note: str = ""


def freeze(place: ClusterPlace, freezing: Freezing) -> FreezeResult:
    """Raises NotWritten, Unreachable."""
    from reconciler.kube.client import connect  # noqa: PLC0415
    from reconciler.kube.cluster import annotate, is_without_controller, places_of  # noqa: PLC0415  the client is slow

    entries = {names.FROZEN_UNTIL: freezing.until or None, names.FROZEN_REASON: freezing.reason or None}
    places = places_of(freezing.kind, freezing.name)
    client = connect(place.context)
    # A pool may have been frozen in either place, by hand too.
    titles = annotate(client, places, entries, everywhere=not freezing.until)
    if freezing.kind == "all" and is_without_controller(client, place.namespace):
        told_of = f"no controller has ever led from the namespace {place.namespace}"
        return FreezeResult(
            titles, f"{told_of}: one that runs in another follows another freeze; name its own with --namespace"
        )
    return FreezeResult(titles)


def approve(context: str | None, approval: ChangeApproval) -> str:
    """The name of the ChangeApproval. Raises NotWritten, Unreachable."""
    from reconciler.kube import cluster  # noqa: PLC0415
    from reconciler.kube.client import connect  # noqa: PLC0415

    return cluster.approve(connect(context), approval)
