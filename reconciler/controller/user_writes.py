"""Writes of people: freezes and approvals."""

import msgspec

from reconciler.controller.cluster import ClusterPlace
from reconciler.model import names
from reconciler.model.policy.guards import ChangeApproval


class FreezeResult(msgspec.Struct, frozen=True):
    titles: tuple[str, ...]
    note: str = ""


def freeze(place: ClusterPlace, kind: str, name: str, until: str, reason: str) -> FreezeResult:
    """Freezes a node, pool, guard, or all; without `until`, ends the freeze. Raises NotWritten, Unreachable."""
    from reconciler.kube.client import connect  # noqa: PLC0415
    from reconciler.kube.cluster import annotate, is_without_controller, places_of  # noqa: PLC0415  the client is slow

    entries = {names.FROZEN_UNTIL: until or None, names.FROZEN_REASON: reason or None}
    places = places_of(kind, name)
    client = connect(place.context)
    # A pool may have been frozen in either place, also by hand.
    titles = annotate(client, places, entries, everywhere=not until)
    if kind == "all" and is_without_controller(client, place.namespace):
        told_of = f"no controller has used the namespace {place.namespace}"
        ignored = "a controller in another namespace ignores this freeze; name its namespace with --namespace"
        return FreezeResult(titles, f"{told_of}: {ignored}")
    return FreezeResult(titles)


def approve(context: str | None, approval: ChangeApproval) -> str:
    """Creates the ChangeApproval and returns its name. Raises NotWritten, Unreachable."""
    from reconciler.kube import cluster  # noqa: PLC0415
    from reconciler.kube.client import connect  # noqa: PLC0415

    return cluster.approve(connect(context), approval)
