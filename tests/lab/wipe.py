"""Takes everything off a lab's cluster that tests put there, quickest way first."""

import time

from reconciler.model.names import LEASES_NAMESPACE
from tests.lab.api import Api, Manifest, Refused
from tests.lab.identities import NAMESPACES, TENANT_NAMESPACE

_KEPT_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease", *NAMESPACES, TENANT_NAMESPACE}
# Owners before what they own, or controllers would make new ones while we delete.
_NAMESPACED = (
    "cronjobs",
    "jobs",
    "deployments",
    "statefulsets",
    "daemonsets",
    "replicasets",
    "replicationcontrollers",
    "poddisruptionbudgets",
    "pods",
    "persistentvolumeclaims",
    "resourceclaims",
)
_LEASES_OF_GPUS = f"/apis/coordination.k8s.io/v1/namespaces/{LEASES_NAMESPACE}/leases"
_CLUSTER = (
    "nodepools",
    "nodeclaims",
    "nodes",
    "volumeattachments",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "csidrivers",
    "resourceslices",
    "deviceclasses",
    "priorityclasses",
)
_SECONDS = 60


def wipe(admin: Api) -> None:
    """Deletes, takes off finalizers, and looks again until nothing is left."""
    deadline = time.monotonic() + _SECONDS
    while left := _leftovers(admin, deadline):
        if time.monotonic() > deadline:
            names = sorted(f"{each['kind']}/{each['metadata']['name']}" for _, each in left)
            raise AssertionError(f"still there after {_SECONDS} s of deleting: {', '.join(names[:10])}")
        for plural, each in left:
            _remove(admin, plural, each)
        time.sleep(0.05)
    for each in admin.list("namespaces"):
        if each["metadata"]["name"] not in _KEPT_NAMESPACES:
            admin.delete("namespaces", each["metadata"]["name"])
    admin.request("DELETE", _LEASES_OF_GPUS)  # a Lease whose node never existed has no owner to go with


def _leftovers(admin: Api, deadline: float) -> list[tuple[str, Manifest]]:
    """Everything of the listed kinds that does not belong to the system."""
    found = [(plural, each) for plural in (*_NAMESPACED, *_CLUSTER) for each in _listed(admin, plural, deadline)]
    return [(plural, each) for plural, each in found if not each["metadata"]["name"].startswith("system-")]


def _listed(admin: Api, plural: str, deadline: float) -> list[Manifest]:
    """Of a kind that was defined a moment ago, the API server says for a while that it is not ready."""
    while True:
        try:
            return admin.list(plural)
        except Refused as refused:
            if refused.code != 429 or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _remove(admin: Api, plural: str, each: Manifest) -> None:
    metadata = each["metadata"]
    namespace = metadata.get("namespace", "")
    try:
        if metadata.get("finalizers"):
            path = admin.path(plural, metadata["name"], namespace)
            admin.merge(path, {"metadata": {"finalizers": None}})
        admin.delete(plural, metadata["name"], namespace, grace_seconds=0)
    except Refused as refused:
        if refused.code not in {404, 409}:  # gone meanwhile, or changed meanwhile: the next look tells
            raise
