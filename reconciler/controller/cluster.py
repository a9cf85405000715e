"""Reads the cluster: from a file, or live with the current kubeconfig."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.ports import Unavailable
from reconciler.sources.input_file import MOST_CLUSTER_BYTES, MOST_MANIFEST_BYTES, read_file

if TYPE_CHECKING:
    from reconciler.importer.autoscaler import Flags


class ClusterPlace(msgspec.Struct, frozen=True):
    """A file, or the cluster of a kubeconfig context. `complete`: the file lists all objects of every kind.
    `namespace`: the controller's namespace; a dump contains its own."""

    file: Path | None = None
    complete: bool = False
    context: str | None = None
    namespace: str = names.OWN_NAMESPACE


class ClusterView(msgspec.Struct, frozen=True):
    """A snapshot of a cluster, its display name, and its evaluation time."""

    observed: Observed
    name: str
    now: Instant
    dumped: Inputs | None = None  # all content, if the file is a dump
    notes: tuple[str, ...] = ()  # caveats about the file
    memory: Memory = Memory()  # memory of the cluster's controller, or of the dump
    why_no_memory: str = ""  # why the memory could not be read


def observed_cluster(place: ClusterPlace) -> ClusterView:
    """Reads the cluster once. Never writes."""
    # Reading files does not need the client, whose import alone takes a quarter of a second.
    if place.file:
        from reconciler.kube.cluster_file import read_cluster  # noqa: PLC0415

        content = read_file(place.file, MOST_CLUSTER_BYTES)
        read = read_cluster(place.file.as_posix(), content, place.complete, place.namespace)
        now = read.inputs.now if read.inputs else read.observed.seen_at or current_instant()
        memory = read.inputs.memory if read.inputs else Memory()
        return ClusterView(read.observed, place.file.name, now, read.inputs, read.notes, memory)
    from reconciler.kube.client import connect, context_name  # noqa: PLC0415
    from reconciler.kube.memory_store import ConfigMapMemory  # noqa: PLC0415
    from reconciler.kube.observe import observe_once  # noqa: PLC0415

    client = connect(place.context)
    cluster_view = ClusterView(observe_once(client, place.namespace), context_name(place.context), current_instant())
    try:
        return msgspec.structs.replace(cluster_view, memory=ConfigMapMemory(client, place.namespace).load().memory)
    except Unavailable as fault:  # read-only users need no right to the memory
        return msgspec.structs.replace(cluster_view, why_no_memory=str(fault))


def current_instant() -> Instant:
    """The current time. The only clock of a command; everything else takes the time as an argument."""
    return Instant(time.time_ns() // 1_000_000)


# --- Flags of a Cluster Autoscaler: from a manifest file, or from a Deployment of the cluster.

_NAMED = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def autoscaler_flags(place: ClusterPlace, where: str) -> "Flags":
    """`where` is a file, or NAMESPACE/NAME of a Deployment. Raises NoFlags, Unreachable, OSError."""
    from reconciler.importer.autoscaler import NoFlags, documents, flags_in  # noqa: PLC0415  the importer is of no other use

    if Path(where).is_file():
        return flags_in(documents(read_file(Path(where), MOST_MANIFEST_BYTES)))
    if not _NAMED.fullmatch(where):
        raise NoFlags(f"{where} is neither a file nor NAMESPACE/NAME of a Deployment")
    content = read_file(place.file, MOST_CLUSTER_BYTES) if place.file else _deployment(place.context, where)
    return flags_in(documents(content), where)


def _deployment(context: str | None, where: str) -> bytes:
    from reconciler.importer.autoscaler import NoFlags  # noqa: PLC0415
    from reconciler.kube.api_server import folder_in  # noqa: PLC0415
    from reconciler.kube.client import connect  # noqa: PLC0415  it alone takes a quarter of a second
    from reconciler.kube.watch.changes import said  # noqa: PLC0415

    namespace, _, name = where.partition("/")
    # A list with one item: read-only users may list, and may lack the right to get single objects.
    query = {"fieldSelector": f"metadata.name={name}"}
    answer = connect(context).get(folder_in(namespace, "apps", "deployments"), query)
    if answer.status != 200:
        raise NoFlags(f"no right to read Deployment {where} ({said(answer)})")
    return answer.body
