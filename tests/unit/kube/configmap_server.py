"""The ConfigMaps of an API server, in memory: names, versions, labels, and connections that break at a chosen write."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse, Unreachable

Manifest = dict[str, Any]


class Killed(BaseException):
    """The writer is no more."""


class ConfigMaps:
    """A Writer. `writes_left`: after so many, `then` happens instead of an answer; `takes_effect`: before or after."""

    def __init__(self) -> None:
        self.objects: dict[str, Manifest] = {}
        self.version = 0
        self.writes_left: int | None = None
        self.takes_effect = False
        self.then: BaseException = Killed()
        self._meanwhile: tuple[Callable[[int, ApiRequest], bool], Callable[[], None]] | None = None
        self._sent = 0
        self.before_list: Callable[[], object] = lambda: None

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        name = path.rpartition("/")[2]
        if name == "configmaps":
            self.before_list()
            label = (query or {})["labelSelector"]
            return _told(200, {"items": [each for each in self.objects.values() if label in _labels(each)]})
        return _told(200, self.objects[name]) if name in self.objects else _told(404, {})

    def send(self, request: ApiRequest) -> ApiResponse:
        if self._meanwhile and self._meanwhile[0](self._sent, request):
            self.interfere()
        self._sent += 1
        if self.writes_left == 0:
            if self.takes_effect:
                self._write(request)
            raise self.then
        if self.writes_left is not None:
            self.writes_left -= 1
        return self._write(request)

    def meanwhile(self, when: Callable[[int, ApiRequest], bool], do: Callable[[], None]) -> None:
        """To be done once, just before the write of which this is so; writes are counted from here."""
        self._meanwhile, self._sent = (when, do), 0

    def interfere(self) -> None:
        """Now, if it was not done already."""
        if self._meanwhile:
            (_, do), self._meanwhile = self._meanwhile, None
            do()

    def _write(self, request: ApiRequest) -> ApiResponse:
        if request.method == "DELETE":
            gone = self.objects.pop(request.path.rpartition("/")[2], None)
            return _told(200 if gone else 404, {})
        sent: Manifest = json.loads(request.body)
        name = sent["metadata"]["name"]
        found = self.objects.get(name)
        if request.method == "POST" and found:
            return _told(409, {"reason": "AlreadyExists"})
        if request.method == "PUT" and not found:
            return _told(404, {})
        if found and request.method == "PUT" and found["metadata"]["resourceVersion"] != _version(sent):
            return _told(409, {"reason": "Conflict"})
        assert len(request.body) <= 1 << 20, "the API server takes no more"
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.objects[name] = sent
        return _told(201, sent)


def broken_connection() -> Unreachable:
    return Unreachable("the API server closed the connection", "check the network")


def _told(status: int, body: Manifest) -> ApiResponse:
    return ApiResponse(status, json.dumps(body).encode())


def _labels(manifest: Manifest) -> Manifest:
    found: Manifest = manifest["metadata"].get("labels", {})
    return found


def _version(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("resourceVersion", ""))
