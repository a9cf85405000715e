"""The objects with certificates in an API server, and the pods of the second scheduler; in memory."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse, Unreachable
from reconciler.model import names

SECRETS = "/api/v1/namespaces/gpu-system/secrets"
PODS = "/api/v1/namespaces/gpu-system/pods"
CONFIGURATION = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{names.WEBHOOK_CONFIGURATION}"
OTHER = "other.example.com"  # a webhook of others in the same configuration


class WebhookServer:
    """A Writer. `refused`: the status of requests whose path begins so."""

    def __init__(self) -> None:
        self.secrets: dict[str, dict[str, Any]] = {}  # and ConfigMaps
        self.started: dict[str, str] = {}  # pods of the scheduler, and when they were started
        self.evicted: list[str] = []
        self.configuration: dict[str, Any] | None = None
        self.claims: dict[str, Any] = {}  # by namespace/name
        self.refused: dict[str, int] = {}
        self.is_away = False
        self.before_write: Callable[[], None] = lambda: None
        self.reads: list[str] = []
        self.writes: list[str] = []
        self._version = 0

    @property
    def secret(self) -> dict[str, Any] | None:
        return self.secrets.get(names.WEBHOOK_CERTIFICATES)

    def install(self) -> None:
        """Someone applies deploy/webhook."""
        webhooks = [
            {"name": OTHER, "clientConfig": {"caBundle": "b3RoZXI="}},
            {"name": names.WEBHOOK, "clientConfig": {"service": {"name": names.WEBHOOK_SERVICE}}},
        ]
        self.configuration = {"metadata": {"resourceVersion": self._next()}, "webhooks": webhooks}

    @property
    def bundle(self) -> bytes:
        assert self.configuration is not None
        other, ours = self.configuration["webhooks"]
        assert other["clientConfig"] == {"caBundle": "b3RoZXI="}
        assert ours["clientConfig"]["service"] == {"name": names.WEBHOOK_SERVICE}
        return b64decode(ours["clientConfig"].get("caBundle", ""))

    def damage(self, key: str, content: bytes | None, name: str = names.WEBHOOK_CERTIFICATES) -> None:
        data = self.secrets[name]["data"]
        if content is None:
            del data[key]
        else:
            data[key] = b64encode(content).decode()

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        self._check(path)
        self.reads.append(path)
        if status := self._refusal(path):
            return _answer(status, {"message": "no right"})
        found = self.configuration if path == CONFIGURATION else self.secrets.get(path.rpartition("/")[2])
        if path == PODS:
            assert query == {"labelSelector": f"app.kubernetes.io/name={names.GPU_SCHEDULER}"}
            found = {"items": [_pod(name, started) for name, started in self.started.items()]}
        if "/gpuclaims/" in path:
            *_, namespace, _, name = path.split("/")
            found = self.claims.get(f"{namespace}/{name}")
        return _answer(200, found) if found is not None else _answer(404, {})

    def send(self, request: ApiRequest) -> ApiResponse:
        self._check(request.path)
        act, self.before_write = self.before_write, lambda: None
        act()
        if status := self._refusal(request.path):
            return _answer(status, {"message": "no right"})
        self.writes.append(f"{request.method} {request.path}")
        body = json.loads(request.body)
        if request.path.startswith(PODS):
            self.evicted.append(body["metadata"]["name"])
            self.started.pop(self.evicted[-1])
            return _answer(201, {})
        return self._patch(body) if request.path == CONFIGURATION else self._put(request.method, body)

    def _put(self, method: str, body: dict[str, Any]) -> ApiResponse:
        name = body["metadata"]["name"]
        found = self.secrets.get(name)
        if method == "POST" and found is not None:
            return _answer(409, {})
        if method == "PUT" and found is None:
            return _answer(404, {})
        if found is not None and body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return _answer(409, {})
        body["metadata"]["resourceVersion"] = self._next()
        self.secrets[name] = body
        return _answer(200, body)

    def _patch(self, patch: dict[str, Any]) -> ApiResponse:
        """A strategic merge patch: webhooks are merged by name."""
        assert self.configuration is not None
        if patch["metadata"]["resourceVersion"] != self.configuration["metadata"]["resourceVersion"]:
            return _answer(409, {})
        for each in patch["webhooks"]:
            (found,) = [one for one in self.configuration["webhooks"] if one["name"] == each["name"]]
            found["clientConfig"] |= each["clientConfig"]
        self.configuration["metadata"]["resourceVersion"] = self._next()
        return _answer(200, self.configuration)

    def _next(self) -> str:
        self._version += 1
        return str(self._version)

    def _check(self, path: str) -> None:
        if self.is_away:
            raise Unreachable("the API server cannot be reached", "wait")

    def _refusal(self, path: str) -> int:
        return next((status for start, status in self.refused.items() if path.startswith(start)), 0)


def _pod(name: str, started: str) -> dict[str, Any]:
    state = {"running": {"startedAt": started}} if started else {"waiting": {"reason": "ContainerCreating"}}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [{"name": "kube-scheduler", "state": state}]}}


def _answer(status: int, body: Any) -> ApiResponse:
    return ApiResponse(status, json.dumps(body).encode())
