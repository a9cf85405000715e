"""The objects in the API server that hold certificates: the Secret of the replicas, the Secret of the second scheduler,
the configuration of the webhook, and the ConfigMap for agents; and the pods of the scheduler, which must know the
authorities.

A Secret is written with the resourceVersion that was read, so of several replicas one wins. Of the configuration, only
the caBundle of reconciler's own webhook is written.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from reconciler.kube.api_server import STRATEGIC_PATCH, ApiRequest, ApiResponse, Unreachable, Writer, below, folder
from reconciler.kube.api_server import folder_in as namespaced
from reconciler.kube.secrets import OPAQUE, Secrets, StoredSecret
from reconciler.kube.watch.changes import said
from reconciler.model import names
from reconciler.model.instant import Instant, moment
from reconciler.ports import Stale, Unavailable

T = TypeVar("T")

AUTHORITIES_KEY = "ca.crt"  # of the ConfigMap for agents
_RIGHTS = "deploy/webhook/rbac.yaml and deploy/scheduler/rbac.yaml have"

_GROUP, _PLURAL = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"


class _ObjectMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _ObjectMetadata
    data: dict[str, str] | None = None


class _ClientConfig(msgspec.Struct, rename="camel"):
    ca_bundle: str = ""


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Configuration(msgspec.Struct):
    metadata: _ObjectMetadata
    webhooks: tuple[_Webhook, ...] | None = None


class _PodMetadata(msgspec.Struct, rename="camel"):
    name: str
    deletion_timestamp: str | None = None


class _Running(msgspec.Struct, rename="camel"):
    started_at: str = ""


class _ContainerState(msgspec.Struct, frozen=True):
    running: _Running | None = None


class _ContainerStatus(msgspec.Struct):
    state: _ContainerState = _ContainerState()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    container_statuses: tuple[_ContainerStatus, ...] | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMetadata
    status: _PodStatus = _PodStatus()

    @property
    def started(self) -> Instant | None:
        """When its last running container was started."""
        running = (each.state.running for each in self.status.container_statuses or ())
        starts = (moment(each.started_at) for each in running if each is not None)
        return max((each for each in starts if each is not None), default=None)


class _PodList(msgspec.Struct):
    items: tuple[_Pod, ...] = ()


class PublishedBundle(msgspec.Struct, frozen=True):
    """The caBundle of the configuration."""

    bundle: bytes
    version: str


class CertificateObjects:
    """Reads and writes the objects; stateless. Methods raise Unavailable."""

    def __init__(self, server: Writer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._secrets = Secrets(server, namespace, _RIGHTS)

    def read_secret(self, name: str = names.WEBHOOK_CERTIFICATES) -> StoredSecret:
        return self._secrets.read(name)

    def write_secret(
        self,
        content: Mapping[str, bytes],
        version: str,
        name: str = names.WEBHOOK_CERTIFICATES,
        secret_type: str = OPAQUE,
    ) -> None:
        """Replaces the content. Raises Stale if another replica came first."""
        self._secrets.write(name, content, version, secret_type)

    def publish_authorities(self, bundle: bytes) -> None:
        """Writes the authorities into the ConfigMap for agents. Raises Stale if another replica came first."""
        name, text = names.AGENTS_AUTHORITIES, bundle.decode()
        answer = self._get(below(self._config_maps, name))
        version = ""
        if answer.status != 404:
            found = _decoded(answer, _ConfigMap, f"the ConfigMap {name}")
            if found.data == {AUTHORITIES_KEY: text}:
                return
            version = found.metadata.resource_version
        metadata = {"name": name, "namespace": self._namespace, **({"resourceVersion": version} if version else {})}
        content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {AUTHORITIES_KEY: text}}
        method, path = ("PUT", below(self._config_maps, name)) if version else ("POST", self._config_maps)
        answer = self._send(ApiRequest(method, path, msgspec.json.encode(content)))
        if answer.status in {404, 409}:
            raise Stale
        if answer.status not in {200, 201}:
            raise Unavailable(f"cannot write the ConfigMap {name}: {said(answer)}")

    def read_bundle(self) -> PublishedBundle | None:
        """The caBundle of reconciler's webhook; None if there is no configuration, or no such webhook in it."""
        answer = self._get(self._configuration)
        if answer.status == 404:
            return None
        found = _decoded(answer, _Configuration, f"the MutatingWebhookConfiguration {names.WEBHOOK_CONFIGURATION}")
        for each in found.webhooks or ():
            if each.name == names.WEBHOOK:
                try:
                    bundle = b64decode(each.client_config.ca_bundle, validate=True)
                except ValueError:
                    bundle = b""
                return PublishedBundle(bundle, found.metadata.resource_version)
        return None

    def publish_bundle(self, bundle: bytes, before: PublishedBundle) -> None:
        """Replaces the caBundle. Raises Stale if the configuration was changed meanwhile."""
        webhook = {"name": names.WEBHOOK, "clientConfig": {"caBundle": b64encode(bundle).decode()}}
        patch = {"metadata": {"resourceVersion": before.version}, "webhooks": [webhook]}
        query = {"fieldManager": names.FIELD_MANAGER}
        request = ApiRequest("PATCH", self._configuration, msgspec.json.encode(patch), STRATEGIC_PATCH, query)
        answer = self._send(request)
        if answer.status in {404, 409}:
            raise Stale
        if answer.status != 200:
            name = names.WEBHOOK_CONFIGURATION
            raise Unavailable(f"cannot write the MutatingWebhookConfiguration {name}: {said(answer)}{_hint(answer)}")

    # Pods of the scheduler.

    def scheduler_starts(self) -> dict[str, Instant]:
        """When the scheduler was started in each of its pods, by name of the pod."""
        query = {"labelSelector": f"{names.APP_NAME}={names.GPU_SCHEDULER}"}
        found = _decoded(self._get(self._pods, query), _PodList, f"the pods of {names.GPU_SCHEDULER}")
        starts = {each.metadata.name: each.started for each in found.items if not each.metadata.deletion_timestamp}
        return {name: started for name, started in starts.items() if started is not None}

    def evict(self, pod: str) -> None:
        """Evict a pod. Its PodDisruptionBudget may refuse; the next look tries again."""
        name = {"name": pod, "namespace": self._namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": name}
        path = below(self._pods, pod, "eviction")
        answer = self._send(ApiRequest("POST", path, msgspec.json.encode(eviction)))
        if answer.status not in {200, 201, 404, 409, 429}:
            raise Unavailable(f"cannot evict Pod/{pod}: {said(answer)}{_hint(answer)}")

    @property
    def _pods(self) -> str:
        return namespaced(self._namespace, "", "pods")

    @property
    def _config_maps(self) -> str:
        return namespaced(self._namespace, "", "configmaps")

    @property
    def _configuration(self) -> str:
        return below(folder(_GROUP, _PLURAL), names.WEBHOOK_CONFIGURATION)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> ApiResponse:
        try:
            return self._server.get(path, query)
        except Unreachable as fault:
            raise Unavailable(f"cannot read the certificates: {fault}") from fault

    def _send(self, request: ApiRequest) -> ApiResponse:
        try:
            return self._server.send(request)
        except Unreachable as fault:
            raise Unavailable(f"cannot write the certificates: {fault}") from fault


def _decoded(answer: ApiResponse, kind: type[T], title: str) -> T:
    if answer.status != 200:
        raise Unavailable(f"cannot read {title}: {said(answer)}{_hint(answer)}")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise Unavailable(f"cannot read {title}: {type(fault).__name__}") from None


def _hint(answer: ApiResponse) -> str:
    return f"; {_RIGHTS} the required rights" if answer.status == 403 else ""
