"""Stores the memory in ConfigMaps of reconciler's namespace: a head, and further parts if it is too large for one.

Theory of operation. The memory is one compressed text. The head contains the number of parts and the first part. The
head is written last, with the resourceVersion that was read, so at any time either the old or the new memory is stored.
The names of the other parts contain the digest of their content and the version of the previous head: a part of an
older memory is never used, and a repeated write finds its own parts. Once a head is replaced, parts that follow its
version or an older one can only be referenced by its replacement; all others are deleted.
"""

import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable, Writer, below, folder_in
from reconciler.kube.watch.changes import is_newer, said
from reconciler.model import names
from reconciler.model.plan.memory import Memory
from reconciler.ports import Stale, Unavailable, VersionedMemory

HEAD = names.MEMORY_CONFIG_MAP
PART_LABEL = f"{names.OURS}memory"
PART_BYTES = 600_000  # of the 1 MiB of a ConfigMap, including base64 and other fields
_FORMAT = "reconciler-memory/1"
_ATTEMPTS = 3  # at reading parts that a concurrent writer deletes
_FORGET = f"to go on with an empty memory, delete the ConfigMap {HEAD}"


class _ConfigMapMetadata(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _ConfigMap(msgspec.Struct, rename="camel"):
    metadata: _ConfigMapMetadata
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}


class _List(msgspec.Struct):
    items: list[_ConfigMap] = []


class _Head(msgspec.Struct):
    """The fields of the head besides the first part."""

    format: str = ""
    digest: str = ""  # of the whole compressed text
    parts: tuple[str, ...] = ()  # names of the other ConfigMaps, in order


class ConfigMapMemory:
    """A MemoryStore; stateless between calls."""

    def __init__(self, server: Writer, namespace: str = names.OWN_NAMESPACE, part_bytes: int = PART_BYTES) -> None:
        self._server = server
        self._namespace = namespace
        self._part_bytes = part_bytes

    def load(self) -> VersionedMemory:
        """The last saved memory. Raises Unavailable."""
        for _ in range(_ATTEMPTS):
            head = self._read(HEAD)
            if head is None:
                return VersionedMemory(Memory())
            written = _head(head)
            parts = [head, *(part for name in written.parts if (part := self._read(name)))]
            if len(parts) == 1 + len(written.parts):
                return VersionedMemory(_whole(written, parts), head.metadata.resource_version)
        raise Unavailable(f"a part of the memory is missing from the namespace {self._namespace}: {_FORGET}")

    def save(self, memory: Memory, after: VersionedMemory) -> VersionedMemory:
        """Saves all or nothing. Raises Stale, Unavailable."""
        text = zlib.compress(msgspec.json.encode(memory, order="sorted"))
        digest = sha256(text).hexdigest()
        first, *others = [text[start : start + self._part_bytes] for start in range(0, len(text), self._part_bytes)]
        parts = {f"{HEAD}-{after.version or 0}-{digest[:16]}-{number}": each for number, each in enumerate(others, 1)}
        for name, content in parts.items():
            self._put_part(name, content, after.version)
        sentence = msgspec.json.encode(_Head(_FORMAT, digest, tuple(parts))).decode()
        head = self._configmap(HEAD, first) | {"data": {"head": sentence}}
        saved = VersionedMemory(memory, self._put_head(head, after.version))
        self._sweep(after.version, frozenset(parts))
        return saved

    def _put_part(self, name: str, content: bytes, follows: str) -> None:
        part = self._configmap(name, content)
        part["metadata"] |= {"labels": {PART_LABEL: "part"}, "annotations": {PART_LABEL: follows}}
        answer = self._send(ApiRequest("POST", self._path(), msgspec.json.encode(part)))
        if answer.status not in {200, 201, 409}:  # 409: already written with the same content
            raise _refused(name, answer)

    def _put_head(self, head: dict[str, Any], follows: str) -> str:
        if follows:
            head["metadata"]["resourceVersion"] = follows
            answer = self._send(ApiRequest("PUT", self._path(HEAD), msgspec.json.encode(head)))
        else:
            answer = self._send(ApiRequest("POST", self._path(), msgspec.json.encode(head)))
        if answer.status in {404, 409} and not _lacks_namespace(answer):
            raise Stale
        if answer.status not in {200, 201}:
            raise _refused(HEAD, answer)
        return msgspec.json.decode(answer.body, type=_ConfigMap).metadata.resource_version

    def _sweep(self, replaced: str, kept: frozenset[str]) -> None:
        """Deletes unreferenced parts; parts missed now are deleted the next time."""
        try:
            answer = self._server.get(self._path(), {"labelSelector": PART_LABEL})
            if answer.status != 200:
                return
            for each in msgspec.json.decode(answer.body, type=_List).items:
                follows = each.metadata.annotations.get(PART_LABEL, "")
                if each.metadata.name not in kept and not is_newer(follows or "0", replaced or "0"):
                    self._server.send(ApiRequest("DELETE", self._path(each.metadata.name)))
        except Unreachable:
            return

    def _read(self, name: str) -> _ConfigMap | None:
        try:
            answer = self._server.get(self._path(name))
        except Unreachable as fault:
            raise Unavailable(f"cannot read the memory: {fault}") from fault
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise Unavailable(f"cannot read the ConfigMap {name}: {said(answer)}")
        return msgspec.json.decode(answer.body, type=_ConfigMap)

    def _send(self, request: ApiRequest) -> ApiResponse:
        try:
            return self._server.send(request)
        except Unreachable as fault:
            raise Unavailable(f"cannot write the memory: {fault}") from fault

    def _configmap(self, name: str, content: bytes) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self._namespace}
        binary = {"part": b64encode(content).decode()}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": binary}

    def _path(self, name: str = "") -> str:
        configmaps = folder_in(self._namespace, "", "configmaps")
        return below(configmaps, name) if name else configmaps


def _head(config_map: _ConfigMap) -> _Head:
    try:
        head = msgspec.json.decode(config_map.data.get("head", "{}"), type=_Head)
    except msgspec.MsgspecError:
        head = _Head()
    if head.format != _FORMAT:
        raise Unavailable(f"the ConfigMap {HEAD} has no valid memory for this version of reconciler: {_FORGET}")
    return head


def _whole(head: _Head, parts: list[_ConfigMap]) -> Memory:
    try:
        text = b"".join(b64decode(part.binary_data["part"]) for part in parts)
        if sha256(text).hexdigest() == head.digest:
            return msgspec.json.decode(zlib.decompress(text), type=Memory)
    except (KeyError, ValueError, zlib.error, msgspec.MsgspecError) as fault:
        raise Unavailable(f"the memory in the ConfigMap {HEAD} cannot be read ({fault}): {_FORGET}") from fault
    raise Unavailable(f"the memory in the ConfigMap {HEAD} does not match its digest: {_FORGET}")


def _lacks_namespace(answer: ApiResponse) -> bool:
    """Whether the namespace does not exist. The response is a 404, as for a missing object."""
    return answer.status == 404 and b'"kind":"namespaces"' in answer.body.replace(b" ", b"")


def _refused(name: str, answer: ApiResponse) -> Unavailable:
    hint = "; `reconciler rbac --write` prints the required rights" if answer.status == 403 else ""
    return Unavailable(f"cannot write the ConfigMap {name}: {said(answer)}{hint}")
