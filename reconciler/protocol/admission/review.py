"""AdmissionReviews of pods on the wire: decoding of requests, encoding of responses.

The body comes from the API server, but anyone who reaches the port can send one. Every field that is used is checked
when the review is decoded; later steps see valid types only. Fields that are not used are not read.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Container, NodeTerm, Pod, PodSpec, ResourceRequirements

API_VERSION = "admission.k8s.io/v1"
MOST_BYTES = 4 * 2**20  # the API server accepts objects of 3 MiB
_LONGEST_UID = 256


class UnreadableReview(ValueError):
    """The body is not an AdmissionReview that can be answered; the message says why."""


# --- The parts of a pod that the webhook reads or patches. None is an absent field: patches depend on it.


class FieldRef(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A reference to a field of the pod."""

    field_path: str = ""
    api_version: str = ""


class EnvSource(msgspec.Struct, frozen=True, rename="camel"):
    """Source of an environment variable."""

    field_ref: FieldRef | None = None


class EnvVar(msgspec.Struct, frozen=True, rename="camel"):
    """An environment variable."""

    name: str = ""
    value: str | None = None
    value_from: EnvSource | None = None


class ContainerResources(msgspec.Struct, frozen=True):
    """Requests and limits of a container."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


class ReviewedContainer(msgspec.Struct, frozen=True, rename="camel"):
    """A container or init container."""

    name: str = ""
    restart_policy: str | None = None
    resources: ContainerResources | None = None
    env: tuple[EnvVar, ...] | None = None


class RequiredTerms(msgspec.Struct, frozen=True, rename="camel"):
    """Terms of a required node affinity, unstructured, so that copies keep fields that are not known here."""

    node_selector_terms: tuple[dict[str, Any], ...] | None = None


class ReviewedNodeAffinity(msgspec.Struct, frozen=True):
    """Required node affinity."""

    required: RequiredTerms | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class ReviewedAffinity(msgspec.Struct, frozen=True, rename="camel"):
    """Node affinity."""

    node_affinity: ReviewedNodeAffinity | None = None


class ReviewedSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a pod."""

    node_name: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: ReviewedAffinity | None = None
    containers: tuple[ReviewedContainer, ...] | None = None
    init_containers: tuple[ReviewedContainer, ...] | None = None

    @property
    def terms(self) -> tuple[dict[str, Any], ...] | None:
        """Terms of the required node affinity; None if there is no required node affinity."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        if node_affinity is None or node_affinity.required is None:
            return None
        return node_affinity.required.node_selector_terms or ()

    @property
    def gpus(self) -> int:
        """GPUs that the pod requests, as kube-scheduler counts them."""
        spec = PodSpec(containers=_counted(self.containers), init_containers=_counted(self.init_containers))
        return Pod(Metadata(name=""), spec).gpus


def _counted(containers: Sequence[ReviewedContainer] | None) -> tuple[Container, ...]:
    return tuple(
        Container(
            restart_policy=each.restart_policy or "",
            resources=ResourceRequirements(each.resources.requests or {}, each.resources.limits or {})
            if each.resources
            else ResourceRequirements(),
        )
        for each in containers or ()
    )


# --- Requests.


class ReviewedPod(msgspec.Struct, frozen=True):
    """A pod with a claim that is being created."""

    namespace: str
    claim: str  # value of the annotation, as written
    annotations: frozenset[str]  # keys
    spec: ReviewedSpec


class Review(msgspec.Struct, frozen=True):
    """A request; `pod` is None if it does not concern a new pod with a claim."""

    uid: str
    pod: ReviewedPod | None = None


class _Resource(msgspec.Struct, frozen=True):
    group: str = ""
    resource: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str = ""
    resource: _Resource = _Resource()
    sub_resource: str | None = None
    namespace: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")


class _Envelope(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _Head(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


class _Body(msgspec.Struct, frozen=True):
    spec: ReviewedSpec = ReviewedSpec()


_ENVELOPE, _HEAD, _BODY = (
    msgspec.json.Decoder(_Envelope),
    msgspec.json.Decoder(_Head),
    msgspec.json.Decoder(_Body),
)
_FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read_review(body: bytes) -> Review:
    """Decodes a request. Raises UnreadableReview."""
    if len(body) > MOST_BYTES:
        raise UnreadableReview(f"the body has more than {MOST_BYTES} bytes")
    try:
        envelope = _ENVELOPE.decode(body)
        if (envelope.api_version, envelope.kind) != (API_VERSION, "AdmissionReview"):
            raise UnreadableReview(f"expected an AdmissionReview of {API_VERSION}")
        request = envelope.request
        if not 0 < len(request.uid) <= _LONGEST_UID:
            raise UnreadableReview(f"expected a request.uid of 1 to {_LONGEST_UID} characters")
        return Review(request.uid, _pod(request) if _creates_pod(request) else None)
    except _FAULTS as fault:
        raise UnreadableReview(f"the body is not an AdmissionReview of a pod: {_short(fault)}") from fault


def _creates_pod(request: _Request) -> bool:
    resource = (request.resource.group, request.resource.resource)
    return request.operation == "CREATE" and resource == ("", "pods") and not request.sub_resource


def _pod(request: _Request) -> ReviewedPod | None:
    head = _HEAD.decode(request.object)
    annotations = head.metadata.annotations or {}
    if names.CLAIM not in annotations:
        return None
    body = _BODY.decode(request.object)
    for term in body.spec.terms or ():
        msgspec.convert(term, NodeTerm)  # the API server refuses other fields later
    return ReviewedPod(request.namespace, annotations[names.CLAIM], frozenset(annotations), body.spec)


def _short(fault: Exception) -> str:
    return "nested too deeply" if isinstance(fault, RecursionError) else str(fault).removesuffix(".")


# --- Responses.


class PatchOperation(msgspec.Struct, frozen=True):
    """An operation of a JSON Patch (RFC 6902)."""

    op: str
    path: str
    value: Any


class Status(msgspec.Struct, frozen=True):
    """Why a pod is refused."""

    code: int
    reason: str
    message: str


def admitted(uid: str, patch: Sequence[PatchOperation] = (), warnings: Sequence[str] = ()) -> bytes:
    """The response that admits the object, with a patch if there is one."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if patch:
        response |= {"patchType": "JSONPatch", "patch": b64encode(msgspec.json.encode(patch)).decode()}
    if warnings:
        response["warnings"] = list(warnings)
    return _encoded(response)


def refused(uid: str, status: Status) -> bytes:
    """The response that refuses the object."""
    return _encoded({"uid": uid, "allowed": False, "status": status})


def _encoded(response: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
