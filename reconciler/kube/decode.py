"""Decodes API responses into structs of the model; reads only the fields that are used."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Generic, TypeVar

import msgspec

from reconciler.kube.normalize import loosened, shallow, without_nulls
from reconciler.kube.placeholders import StandIn, served_version, stand_in
from reconciler.kube.watch.interning import Interning
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import NodeClass
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.refusal import DecodeRefusal, why_refused
from reconciler.model.cluster.unstructured import (
    Unstructured,
    UnstructuredMetadata,
    class_without_secrets,
    metadata_without_secrets,
    without_secrets,
)
from reconciler.model.cluster.workload import Workload

T = TypeVar("T")

# msgspec's exceptions for bytes that are not JSON, not UTF-8, nested too deeply, or of another structure.
_FAULTS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)


class Undecodable(ValueError):
    """Not the expected content; the message names the kind, and the object if possible."""


class ListPage(msgspec.Struct, frozen=True):
    items: tuple[Any, ...]
    resource_version: str
    continue_token: str  # empty on the last page


class WatchEvent(msgspec.Struct, frozen=True):
    """A line of a watch."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    object: Any | None = None  # for ADDED, MODIFIED and DELETED
    resource_version: str = ""
    code: int = 0  # for ERROR
    message: str = ""


class _ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(name="continue", default="")


class _Listed(msgspec.Struct, Generic[T], rename="camel"):
    items: tuple[T, ...] | None
    kind: str = ""
    api_version: str = ""
    metadata: _ListMetadata = _ListMetadata()


class _WatchLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Mark(msgspec.Struct, rename="camel"):
    """The fields of a BOOKMARK or an ERROR that are used."""

    metadata: _ListMetadata | None = None
    code: int | None = None
    message: str | None = None


class _NodeClassBody(msgspec.Struct):
    """A NodeClass before its images are extracted from the status."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


def page(resource_kind: ResourceKind, raw: bytes) -> ListPage:
    """A list of one kind; an object that cannot be decoded is a StandIn. Raises Undecodable."""
    try:
        listed = _list_decoder(_wire_type(resource_kind)).decode(raw)
        items = _finished(resource_kind, listed)
    except (*_FAULTS, Undecodable):
        listed, items = _raw_list(resource_kind, raw), None
    if listed.kind not in {"", "List", f"{resource_kind.kind}List"}:
        raise Undecodable(f"expected a list of {resource_kind.title}, got a {listed.kind}")
    if items is None:
        items = tuple(understood(resource_kind, each, listed.api_version) for each in listed.items or ())
    elif refused := [at for at, each in enumerate(items) if why_refused(each, resource_kind.kind) is not None]:
        raws, kept = _raw_list(resource_kind, raw).items or (), list(items)
        for at in refused:
            kept[at] = understood(resource_kind, raws[at], listed.api_version)
        items = tuple(kept)
    return ListPage(items, listed.metadata.resource_version, listed.metadata.continue_token)


def _finished(resource_kind: ResourceKind, listed: "_Listed[Any]") -> tuple[Any, ...]:
    finish = _finisher(resource_kind, listed.api_version)
    return tuple(map(finish, listed.items or ())) if finish else listed.items or ()


def understood(resource_kind: ResourceKind, raw: bytes | msgspec.Raw, api_version: str = "") -> Any:
    """One object, or the StandIn for an object that cannot be decoded.

    `api_version` is that of the surrounding list.
    """
    try:
        return _whole_or_stand_in(resource_kind, raw, api_version)
    except RecursionError:
        return _whole_or_stand_in(resource_kind, shallow(bytes(raw)), api_version)


def _whole_or_stand_in(resource_kind: ResourceKind, raw: bytes | msgspec.Raw, api_version: str) -> Any:
    try:
        found = _decoded(resource_kind, raw, api_version)
    except (msgspec.MsgspecError, UnicodeDecodeError, OverflowError) as fault:
        return stand_in(resource_kind, _plain(raw), DecodeRefusal("Malformed", detail=_short(fault)))
    refusal = why_refused(found, resource_kind.kind)
    return found if refusal is None else stand_in(resource_kind, _plain(raw), refusal)


def one(resource_kind: ResourceKind, raw: bytes | msgspec.Raw) -> Any:
    """Like `understood`, but raises Undecodable for an object that cannot be decoded."""
    result = understood(resource_kind, raw)
    if isinstance(result, StandIn):
        raise Undecodable(refused_words(result))
    return result


def refused_words(found: StandIn) -> str:
    """Node/b: Expected `object`, got `int` - at `$.status`."""
    about = found.set_aside
    return f"{about.title if about.name else f'a {about.kind} without a name'}: {about.refusal.why}"


def event(resource_kind: ResourceKind, line: bytes) -> WatchEvent:
    """A line of a watch. Raises Undecodable."""
    try:
        watch_line = _decode_line(line)
        if watch_line.type in {"BOOKMARK", "ERROR"}:
            mark = _MARK.decode(watch_line.object)
            version = mark.metadata.resource_version if mark.metadata else ""
            return WatchEvent(watch_line.type, None, version, mark.code or 0, mark.message or "")
    except _FAULTS as fault:
        raise Undecodable(f"a watch of {resource_kind.title} sent an invalid event: {_short(fault)}") from fault
    found = understood(resource_kind, watch_line.object)
    if isinstance(found, StandIn) and not found.metadata.name:
        raise Undecodable(refused_words(found))
    return WatchEvent(watch_line.type, found, found.metadata.resource_version)


def _decode_line(line: bytes) -> _WatchLine:
    try:
        return _LINE_DECODER.decode(line)
    except RecursionError:
        return _LINE_DECODER.decode(shallow(line))


def _decoded(resource_kind: ResourceKind, raw: bytes | msgspec.Raw, api_version: str) -> Any:
    try:
        wire = _decoder(_wire_type(resource_kind)).decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # Go writes null for empty values, and users write numbers as quantities: both are normalized.
        wire = msgspec.convert(loosened(msgspec.json.decode(raw)), _wire_type(resource_kind))
    finish = _finisher(resource_kind, api_version)
    return finish(wire) if finish else wire


def _plain(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """The JSON of an object that could not be decoded; empty if it is not an object."""
    for text in (bytes(raw), shallow(bytes(raw))):
        try:
            found = msgspec.json.decode(text)
        except _FAULTS:
            continue
        return found if isinstance(found, dict) else {}
    return {}


_LINE_DECODER = msgspec.json.Decoder(_WatchLine)
_MARK = msgspec.json.Decoder(_Mark)


def _raw_list(resource_kind: ResourceKind, raw: bytes) -> "_Listed[msgspec.Raw]":
    """Decodes each object separately, so that an unusual or broken object does not affect others."""
    try:
        return _RAW_LIST.decode(raw)
    except _FAULTS as fault:
        try:
            listed = msgspec.convert(without_nulls(msgspec.json.decode(shallow(raw))), _Listed[Any])
        except _FAULTS:
            raise Undecodable(f"expected a list of {resource_kind.title}: {_short(fault)}") from fault
        items = tuple(msgspec.Raw(msgspec.json.encode(each)) for each in listed.items or ())
        return _Listed(items, listed.kind, listed.api_version, listed.metadata)


_RAW_LIST = msgspec.json.Decoder(_Listed[msgspec.Raw])


def _short(fault: Exception) -> str:
    return "nested too deeply" if isinstance(fault, RecursionError) else str(fault).removesuffix(".")


@cache
def _wire_type(resource_kind: ResourceKind) -> Any:
    if resource_kind.type is Unstructured:
        return dict[str, Any]
    return _NodeClassBody if resource_kind.type is NodeClass else resource_kind.type


@cache
def _decoder(wire_type: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(wire_type)


@cache
def _list_decoder(wire_type: Any) -> "msgspec.json.Decoder[_Listed[Any]]":
    listed: Any = _Listed
    return msgspec.json.Decoder(listed[wire_type])


def know_kinds() -> None:
    """Creates all decoders before threads use them."""
    for each in (Any, *{_wire_type(resource_kind) for resource_kind in RESOURCE_KINDS}):
        _decoder(each)
        _list_decoder(each)


# One decoder per kind, since a separate thread reads each kind.
_SHARING: defaultdict[ResourceKind, Interning] = defaultdict(Interning)


def _finisher(resource_kind: ResourceKind, api_version: str) -> Callable[[Any], Any] | None:
    """Fills in what items of a list omit; None for most kinds."""
    if resource_kind.type is Pod:
        return _SHARING[resource_kind].pod
    if resource_kind.type is Workload:
        return partial(_workload, resource_kind)
    if resource_kind.type is NodeClass:
        return partial(_node_class, resource_kind)
    return partial(_whole, resource_kind, api_version) if resource_kind.type is Unstructured else None


def _workload(resource_kind: ResourceKind, wire: Workload) -> Workload:
    _SHARING[resource_kind].workload(wire)
    return msgspec.structs.replace(wire, kind=resource_kind.kind)


def _node_class(resource_kind: ResourceKind, wire: _NodeClassBody) -> NodeClass:
    return NodeClass(wire.metadata, resource_kind.kind, class_without_secrets(wire.spec), _images(wire.status))


def _whole(resource_kind: ResourceKind, api_version: str, wire: dict[str, Any]) -> Unstructured:
    rest = {key: value for key, value in wire.items() if key not in {"apiVersion", "kind", "metadata"}}
    metadata = metadata_without_secrets(_whole_metadata(wire))
    version = str(wire.get("apiVersion") or api_version or served_version(resource_kind))
    return Unstructured(version, resource_kind.kind, metadata, without_secrets(resource_kind.kind, rest))


def _whole_metadata(wire: dict[str, Any]) -> UnstructuredMetadata:
    plain = wire.get("metadata")
    try:
        return msgspec.convert(plain, UnstructuredMetadata)
    except _FAULTS:
        return msgspec.convert(without_nulls(plain), UnstructuredMetadata)


def _images(status: dict[str, Any]) -> tuple[str, ...]:
    """EC2NodeClass lists amis; others have a list of images, or one imageID."""
    lists = [status.get(key) for key in ("amis", "images")]
    listed = [each for some in lists if isinstance(some, list) for each in some]
    found = {str(each.get("id") or "") if isinstance(each, dict) else str(each) for each in listed}
    found.add(str(status.get("imageID") or ""))
    return tuple(sorted(found - {""}))
