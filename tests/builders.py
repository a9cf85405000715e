"""Builders of nodes, pods and NodeClaims for tests, and of the manifests that an API server has of them.

A keyword sets the field of that name in the metadata, the spec or the status. Fields that a test leaves out have the
defaults of the model, but for the uid, which is `uid-NAME`.
"""

from typing import Any, TypeVar

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata, OwnerReference
from reconciler.model.cluster.node import ClaimSpec, Node, NodeClaim, NodeClaimStatus, NodeSpec, NodeStatus
from reconciler.model.cluster.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements

Json = dict[str, Any]

_API_VERSIONS = {Node: "v1", Pod: "v1", NodeClaim: "karpenter.sh/v1"}
_Part = TypeVar("_Part", bound=msgspec.Struct)
_Other = TypeVar("_Other", bound=msgspec.Struct)


def node(name: str, *, gpus: int | None = None, has: dict[str, str] | None = None, **fields: Any) -> Node:
    """A node with the capacity `has` and `gpus` GPUs, all of it allocatable."""
    metadata, spec, status = _parts(name, fields, NodeSpec, NodeStatus, _with_amounts(gpus, has))
    return Node(metadata, spec, status)


def pod(name: str, *, gpus: int | None = None, asks: dict[str, str] | None = None, **fields: Any) -> Pod:
    """A pod with one container that requests `asks` and `gpus` GPUs; its phase is Running if it has a node."""
    requests = _amounts(gpus, asks)
    containers = (Container(resources=ResourceRequirements(requests)),) if requests else ()
    phase = "Running" if fields.get("node_name") else "Pending"
    metadata, spec, status = _parts(name, fields, PodSpec, PodStatus, {"containers": containers, "phase": phase})
    return Pod(metadata, spec, status)


def claim(name: str, *, gpus: int | None = None, has: dict[str, str] | None = None, **fields: Any) -> NodeClaim:
    """A NodeClaim with the capacity `has` and `gpus` GPUs, all of it allocatable."""
    metadata, spec, status = _parts(name, fields, ClaimSpec, NodeClaimStatus, _with_amounts(gpus, has))
    return NodeClaim(metadata, spec, status)


def controlled_by(kind: str, name: str, api_version: str = "") -> tuple[OwnerReference, ...]:
    """The owner references of an object whose controller is this one."""
    return (OwnerReference(kind, name, f"uid-{name}", controller=True, api_version=api_version),)


def manifest(built: Node | Pod | NodeClaim) -> Json:
    """The object as JSON of Kubernetes, without a uid: the API server sets that."""
    body: Json = msgspec.to_builtins(built)
    del body["metadata"]["uid"]
    for container in body.get("spec", {}).get("containers", ()):
        container.setdefault("name", "main")
    return {"apiVersion": _API_VERSIONS[type(built)], "kind": type(built).__name__, "spec": {}, "status": {}, **body}


def _with_amounts(gpus: int | None, has: dict[str, str] | None) -> Json:
    amounts = _amounts(gpus, has)
    return {"capacity": amounts, "allocatable": amounts}


def _amounts(gpus: int | None, others: dict[str, str] | None) -> dict[str, str]:
    return {**(others or {}), **({} if gpus is None else {names.NVIDIA_GPU: str(gpus)})}


def _parts(
    name: str, fields: Json, spec: type[_Part], status: type[_Other], defaults: Json
) -> tuple[Metadata, _Part, _Other]:
    """The metadata, spec and status of an object."""
    left = {"name": name, "uid": f"uid-{name}", **defaults, **fields}
    found = _taken(Metadata, left), _taken(spec, left), _taken(status, left)
    if left:
        raise TypeError(
            f"neither metadata, {spec.__name__} nor {status.__name__} has a field {', '.join(sorted(left))}"
        )
    return found


def _taken(part: type[_Part], fields: Json) -> _Part:
    return part(**{key: fields.pop(key) for key in part.__struct_fields__ if key in fields})
