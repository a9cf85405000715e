"""The tests' own client of the API server: small, verified TLS, and none of the code that it helps to judge."""

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from tests.lab.certificates import Pair

Manifest = dict[str, Any]

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"


class Refused(Exception):
    """The API server said no."""

    def __init__(self, code: int, told: Mapping[str, Any]) -> None:
        self.code = code
        self.reason = str(told.get("reason", ""))
        self.message = str(told.get("message", told))
        super().__init__(f"{code} {self.reason}: {self.message}")


@dataclass(frozen=True)
class Answer:
    """One answer, whatever it says."""

    code: int
    body: Manifest


@dataclass(frozen=True)
class Resource:
    """How the API server calls a kind, and where it serves it."""

    kind: str
    plural: str
    prefix: str
    namespaced: bool


@dataclass(frozen=True)
class Credential:
    """What an identity shows: a client certificate or a bearer token."""

    pair: Pair | None = None
    token: str = ""


class Api:
    """One identity's connection to one API server; may be used from several threads."""

    def __init__(self, url: str, authority: Path, credential: Credential) -> None:
        self.url, self.authority, self.credential = url, authority, credential
        context = ssl.create_default_context(cafile=str(authority))
        if credential.pair:
            context.load_cert_chain(credential.pair.certificate, credential.pair.key)
        headers = {"Authorization": f"Bearer {credential.token}"} if credential.token else {}
        self._pool = urllib3.PoolManager(maxsize=32, ssl_context=context, headers=headers, retries=False)
        self._resources: dict[str, Resource] = {}

    def at(self, url: str) -> "Api":
        """The same identity through another door: a proxy, say."""
        return Api(url, self.authority, self.credential)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request, whatever comes of it."""
        headers = {**self._pool.headers, "Accept": "application/json", "Content-Type": content_type, **(headers or {})}
        sent = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(method, self.url + path, body=sent, headers=headers, timeout=60)
        try:
            told = json.loads(answer.data) if answer.data else {}
        except ValueError:
            told = {"message": answer.data.decode(errors="replace")}
        return Answer(answer.status, told)

    def must(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Manifest:
        """One request that is expected to succeed."""
        answer = self.request(method, path, body, content_type)
        if answer.code >= 300:
            raise Refused(answer.code, answer.body)
        return answer.body

    def get(self, plural: str, name: str, namespace: str = "") -> Manifest | None:
        answer = self.request("GET", self.path(plural, name, namespace))
        if answer.code == 404:
            return None
        if answer.code >= 300:
            raise Refused(answer.code, answer.body)
        return answer.body

    def list(self, plural: str, namespace: str = "", **query: str) -> list[Manifest]:
        path = self.path(plural, namespace=namespace)
        told = self.must("GET", f"{path}?{urlencode(query)}")
        # Items of a list come without their kind, which `apply` of one of them would need.
        kinds = {"apiVersion": told["apiVersion"], "kind": str(told["kind"]).removesuffix("List")}
        return [{**kinds, **item} for item in told["items"]]

    def create(self, manifest: Manifest) -> Manifest:
        return self.must("POST", self._home(manifest), manifest)

    def apply(self, manifest: Manifest, owner: str = "lab") -> Manifest:
        """Server-side apply; conflicts are forced, since tests know what they want."""
        path = f"{self._home(manifest)}/{manifest['metadata']['name']}?fieldManager={owner}&force=true"
        return self.must("PATCH", path, manifest, _APPLY)

    def merge(self, path: str, patch: Manifest) -> Manifest:
        """A JSON merge patch of what stands at `path`, which may be a subresource."""
        return self.must("PATCH", path, patch, _MERGE)

    def delete(self, plural: str, name: str, namespace: str = "", grace_seconds: int | None = None) -> None:
        """Deletes it; that it is gone already is as good."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        answer = self.request("DELETE", self.path(plural, name, namespace), options)
        if answer.code >= 300 and answer.code != 404:
            raise Refused(answer.code, answer.body)

    def watch(self, plural: str, namespace: str = "", timeout_seconds: int = 60) -> Iterator[Manifest]:
        """Events from now on, what is there first, until the server ends the watch."""
        query = urlencode({"watch": "true", "timeoutSeconds": timeout_seconds})
        answer = self._pool.request(
            "GET", f"{self.url}{self.path(plural, namespace=namespace)}?{query}", preload_content=False
        )
        try:
            for line in answer:
                yield json.loads(line)
        finally:
            answer.close()

    def wait_for(
        self, plural: str, name: str, is_so: Callable[[Manifest | None], Any], namespace: str = "", within: float = 60
    ) -> Manifest:
        """Asks until `is_so` holds of it (None when it isn't there), and gives it as it then stood."""
        deadline = time.monotonic() + within
        while not is_so(found := self.get(plural, name, namespace)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{plural}/{name}: not within {within:g} s; last seen {json.dumps(found)[:2000]}")
            time.sleep(0.05)
        return found or {}

    def path(self, plural: str, name: str = "", namespace: str = "") -> str:
        resource = self._resource(plural)
        folder = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
        return f"{resource.prefix}{folder}/{resource.plural}" + (f"/{name}" if name else "")

    def _home(self, manifest: Manifest) -> str:
        resource = self._resource(f"{manifest['kind']}@{manifest['apiVersion']}")
        return self.path(resource.plural, namespace=manifest["metadata"].get("namespace", "default"))

    def _resource(self, name: str) -> Resource:
        if name not in self._resources:
            self._discover()
        if name not in self._resources:
            raise Refused(404, {"reason": "NotFound", "message": f"the API server serves no {name}"})
        return self._resources[name]

    def _discover(self) -> None:
        """Asks what is served: two requests, again only when something unknown is asked for."""
        for root in ("/api", "/apis"):
            headers = {**self._pool.headers, "Accept": _DISCOVERY}
            told = json.loads(self._pool.request("GET", self.url + root, headers=headers).data)
            for group in told.get("items", ()):
                self._resources |= _served(root, group)


def _served(root: str, group: Mapping[str, Any]) -> dict[str, Resource]:
    """Resources of one API group by plural (preferred version) and by Kind@apiVersion (each version)."""
    found: dict[str, Resource] = {}
    name = group.get("metadata", {}).get("name", "")
    for version in group["versions"]:
        api_version = f"{name}/{version['version']}" if name else version["version"]
        for each in version.get("resources", ()):
            kind, plural = each["responseKind"]["kind"], each["resource"]
            resource = Resource(kind, plural, f"{root}/{api_version}", each["scope"] == "Namespaced")
            found.setdefault(plural, resource)
            found[f"{kind}@{api_version}"] = resource
    return found
