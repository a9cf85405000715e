"""Secrets of the controller's namespace. A Secret is written with the resourceVersion that was read, so of several
replicas one wins.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable, Writer, below, folder_in
from reconciler.kube.watch.changes import said
from reconciler.ports import Stale, Unavailable

OPAQUE, TLS = "Opaque", "kubernetes.io/tls"  # types of Secrets


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Secret(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class StoredSecret(msgspec.Struct, frozen=True):
    """The content of a Secret; without a version if there is none."""

    content: Mapping[str, bytes]
    version: str = ""


class Secrets:
    """Reads and writes Secrets; stateless. Methods raise Unavailable. `rights`: the files with the required rights."""

    def __init__(self, server: Writer, namespace: str, rights: str) -> None:
        self._server = server
        self._namespace = namespace
        self._folder = folder_in(namespace, "", "secrets")
        self._rights = rights

    def read(self, name: str) -> StoredSecret:
        """Content that cannot be read counts as absent."""
        try:
            answer = self._server.get(below(self._folder, name))
        except Unreachable as error:
            raise Unavailable(f"cannot read the Secret {name}: {error}") from error
        if answer.status == 404:
            return StoredSecret({})
        if answer.status != 200:
            raise Unavailable(f"cannot read the Secret {name}: {said(answer)}{self._hint(answer)}")
        try:
            secret = msgspec.json.decode(answer.body, type=_Secret)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise Unavailable(f"cannot read the Secret {name}: {type(error).__name__}") from None
        try:
            content = {key: b64decode(text, validate=True) for key, text in (secret.data or {}).items()}
        except ValueError:
            content = {}
        return StoredSecret(content, secret.metadata.resource_version)

    def write(self, name: str, content: Mapping[str, bytes], version: str, secret_type: str = OPAQUE) -> None:
        """Replaces the content. Raises Stale if another replica came first."""
        metadata = {"name": name, "namespace": self._namespace}
        metadata |= {"resourceVersion": version} if version else {}
        data = {key: b64encode(each).decode() for key, each in content.items()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": secret_type, "data": data}
        method, path = ("PUT", below(self._folder, name)) if version else ("POST", self._folder)
        try:
            answer = self._server.send(ApiRequest(method, path, msgspec.json.encode(secret)))
        except Unreachable as error:
            raise Unavailable(f"cannot write the Secret {name}: {error}") from error
        if answer.status == 409 or (version and answer.status == 404):
            raise Stale
        if answer.status not in {200, 201}:
            raise Unavailable(f"cannot write the Secret {name}: {said(answer)}{self._hint(answer)}")

    def _hint(self, answer: ApiResponse) -> str:
        return f"; {self._rights} the required rights" if answer.status == 403 else ""
