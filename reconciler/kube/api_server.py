"""The API server as a port: request paths, errors, and backoff. The implementation is in client.py."""

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol
from urllib.parse import quote

import msgspec

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.parsers import BadName, is_namespace, is_object_name, shortened

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Unreachable(Exception):
    """No response: the reason, and a remedy."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence, remedy)
        self.sentence, self.remedy = sentence, remedy

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"


class ApiResponse(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    retry_after_seconds: float = 0.0


class ApiRequest(msgspec.Struct, frozen=True):
    """A write request."""

    method: str  # POST, PUT, PATCH, DELETE
    path: str
    body: bytes = b""
    content_type: str = JSON
    query: Mapping[str, str] = {}


class _WrittenMetadata(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class WrittenObject(msgspec.Struct, frozen=True):
    """What a response says about the identity of an object."""

    metadata: _WrittenMetadata = _WrittenMetadata()


class Stream(msgspec.Struct, frozen=True):
    """A watch: lines as they arrive, or the response that refused the watch."""

    answer: ApiResponse
    lines: Iterator[bytes]


class ApiServer(Protocol):
    """A client of one API server with one identity; thread-safe. Methods raise Unreachable."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """Returns one complete response."""

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> AbstractContextManager[Stream]:
        """Streams a response line by line; raises Unreachable if no line arrives within `silence_seconds`."""

    def apart(self) -> "ApiServer":
        """A client with the same identity and separate connections, which can be closed without affecting others."""

    def close(self) -> None:
        """Aborts running requests, and refuses later ones."""


class Writer(Protocol):
    """A client that reads single objects and writes, with one identity; thread-safe."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """Returns one complete response. Raises Unreachable."""

    def send(self, request: ApiRequest) -> ApiResponse:
        """Sends one write, once. Raises Unreachable; the write may then have taken effect."""


# --- Paths of the API server; no other code builds paths.
#
# Groups, resources and subresources come from a closed set; names and namespaces are validated and quoted. The client
# refuses every path that this module cannot build, so no name, whatever its source, can lead outside its collection.

# Resources that are read or written, but not watched.
_OTHERS = frozenset(
    {
        ("", "configmaps"),
        ("", "secrets"),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("apps", "deployments"),
        ("events.k8s.io", "events"),
    }
)
RESOURCES = frozenset((each.group, each.plural) for each in RESOURCE_KINDS) | _OTHERS
SUBRESOURCES = frozenset({"binding", "eviction", "resize", "status"})

_VERSION = re.compile(r"v[0-9]{1,4}((alpha|beta)[0-9]{1,4})?")
_LONGEST_PATH = 2_000
_PATH = re.compile(r"(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+")
_UP = re.compile(r"\.\.")


class BadPath(BadName):
    """A path that reconciler never requests; the message says why."""


def folder(group: str, plural: str, namespace: str = "", version: str = "v1") -> str:
    """Path of a resource's collection, in one namespace or in all. Raises BadPath."""
    if (group, plural) not in RESOURCES:
        raise BadPath(f"{shortened(plural)} of the group {shortened(group)} is not a resource that reconciler requests")
    if not _VERSION.fullmatch(version):
        raise BadPath(f"{shortened(version)} is not an API version")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{_namespace(namespace)}/{plural}" if namespace else f"{root}/{plural}"


def folder_in(namespace: str, group: str, plural: str) -> str:
    """Path of a resource's collection in one namespace. Raises BadPath, also for an empty namespace."""
    _namespace(namespace)
    return folder(group, plural, namespace)


def below(folder_path: str, name: str, subresource: str = "") -> str:
    """Path of an object in a collection, or of its subresource. Raises BadPath."""
    if not is_object_name(name):
        raise BadPath(f"{shortened(name)} is not a valid object name")
    if subresource and subresource not in SUBRESOURCES:
        raise BadPath(f"{shortened(subresource)} is not a subresource that reconciler writes")
    end = f"/{subresource}" if subresource else ""
    return f"{folder_path}/{quote(name, safe='')}{end}"


def checked(path: str) -> str:
    """The path, if it is a fixed path or one that this module can build. Raises BadPath otherwise."""
    if len(path) > _LONGEST_PATH or not _PATH.fullmatch(path) or _UP.search(path):
        raise BadPath(f"{shortened(path)} is not a valid API server path")
    return path


def _namespace(namespace: str) -> str:
    if not is_namespace(namespace):
        raise BadPath(f"{shortened(namespace)} is not a valid namespace")
    return quote(namespace, safe="")


# --- Exponential backoff with jitter. A Backoff owns the number of consecutive failures.
#
# A connection that opens and closes immediately is not a success: only a connection that lasted a while resets the
# count, so that quick failures never cause a busy loop.

_MOST_DOUBLINGS = 30  # more than any configured bound


class BackoffBounds(msgspec.Struct, frozen=True):
    first_seconds: float = 0.2
    most_seconds: float = 30.0
    healthy_seconds: float = 10.0  # an attempt that lasted this long was not a failure


class Backoff:
    """A random delay between half of a bound and the bound; the bound doubles with each consecutive failure."""

    def __init__(self, waits: BackoffBounds, chance: random.Random) -> None:
        self._waits = waits
        self._chance = chance
        self._failures = 0

    def seconds_after(self, lasted_seconds: float) -> float:
        """The delay after an attempt that failed or ended after `lasted_seconds`."""
        if lasted_seconds >= self._waits.healthy_seconds:
            self._failures = 0
        doublings = min(self._failures, _MOST_DOUBLINGS)
        self._failures += 1
        bound = min(self._waits.most_seconds, self._waits.first_seconds * float(2**doublings))
        return bound * (0.5 + self._chance.random() / 2)
