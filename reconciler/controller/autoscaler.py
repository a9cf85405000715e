"""Where the flags of a Cluster Autoscaler are read: its manifest in a file, or its Deployment in the cluster."""

import re
from pathlib import Path

from reconciler.controller.cluster import ClusterPlace
from reconciler.importer.autoscaler.flags import Flags, NoFlags, documents, flags_in
from reconciler.sources.input_file import MOST_CLUSTER_BYTES, MOST_MANIFEST_BYTES, read_file

_NAMED = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def autoscaler_flags(place: ClusterPlace, where: str) -> Flags:
    """`where`: a file, or NAMESPACE/NAME of a Deployment of the cluster. Raises NoFlags, Unreachable, OSError."""
    if Path(where).is_file():
        return flags_in(documents(read_file(Path(where), MOST_MANIFEST_BYTES)))
    if not _NAMED.fullmatch(where):
        raise NoFlags(f"{where} is neither a file nor NAMESPACE/NAME of a Deployment")
    content = read_file(place.file, MOST_CLUSTER_BYTES) if place.file else _deployment(place.context, where)
    return flags_in(documents(content), where)


def _deployment(context: str | None, where: str) -> bytes:
    from reconciler.kube.client import connect  # noqa: PLC0415  it alone takes a quarter of a second
    from reconciler.kube.paths import folder_in  # noqa: PLC0415
    from reconciler.kube.watch.list_result import said  # noqa: PLC0415

    namespace, _, name = where.partition("/")
    # A list of one: who may look at a cluster may list, and need not have the right to single objects.
    query = {"fieldSelector": f"metadata.name={name}"}
    answer = connect(context).get(folder_in(namespace, "apps", "deployments"), query)
    if answer.status != 200:
        raise NoFlags(f"may not read Deployment {where} ({said(answer)})")
    return answer.body
