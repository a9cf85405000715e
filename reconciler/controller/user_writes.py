"""Writes of people: freezes and approvals."""

import msgspec

from reconciler.controller.cluster import ClusterPlace
from reconciler.model import names
from reconciler.model.policy.guards import ChangeApproval


class Freezing(msgspec.Struct, frozen=True):
    """What to freeze, and until when; empty ends the freeze."""

    kind: str  # node, pool, guard, all
    name: str
    until: str
    reason: str = ""


class FreezeResult(msgspec.Struct, frozen=True):
    """Titles of the frozen objects, and a note."""

    titles: tuple[str, ...]
    note: str = ""


def freeze(place: ClusterPlace, freezing: Freezing) -> FreezeResult:
    """Writes the freeze. Raises NotWritten, Unreachable."""
    from reconciler.kube.client import connect  # noqa: PLC0415
    from reconciler.kube.cluster import annotate, is_without_controller, places_of  # noqa: PLC0415  the client is slow

    entries = {names.FROZEN_UNTIL: freezing.until or None, names.FROZEN_REASON: freezing.reason or None}
    places = places_of(freezing.kind, freezing.name)
    client = connect(place.context)
    # A pool may have been frozen in either place, also by hand.
    titles = annotate(client, places, entries, everywhere=not freezing.until)
    if freezing.kind == "all" and is_without_controller(client, place.namespace):
        told_of = f"no controller has used the namespace {place.namespace}"
        return FreezeResult(
            titles,
            f"{told_of}: a controller in another namespace ignores this freeze; name its namespace with --namespace",
        )
    return FreezeResult(titles)


def approve(context: str | None, approval: ChangeApproval) -> str:
    """Creates the ChangeApproval and returns its name. Raises NotWritten, Unreachable."""
    from reconciler.kube import cluster  # noqa: PLC0415
    from reconciler.kube.client import connect  # noqa: PLC0415

    return cluster.approve(connect(context), approval)
