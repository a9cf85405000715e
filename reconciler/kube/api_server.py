"""The API server as a port: paths, faults, and the backoff after a failure; the real one is in client.py."""

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
    """There is no answer to be had: why, and what a person can do about it."""

    def __init__(self, sentence: str, remedy: str) -> None:
        super().__init__(sentence, remedy)
        self.sentence, self.remedy = sentence, remedy

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"


class ApiResponse(msgspec.Struct, frozen=True):
    """An answer, whatever it says."""

    status: int
    body: bytes = b""
    retry_after_seconds: float = 0.0


class ApiRequest(msgspec.Struct, frozen=True):
    """A write."""

    method: str  # POST, PUT, PATCH, DELETE
    path: str
    body: bytes = b""
    content_type: str = JSON
    query: Mapping[str, str] = {}


class Stream(msgspec.Struct, frozen=True):
    """A watch: lines as they come, or the answer that refuses it."""

    answer: ApiResponse
    lines: Iterator[bytes]


class ApiServer(Protocol):
    """One identity's way to one API server; may be used from several threads. Raises Unreachable."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """One answer, whole."""
        ...

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> AbstractContextManager[Stream]:
        """An answer line by line; Unreachable when nothing comes for that long."""
        ...

    def apart(self) -> "ApiServer":
        """The same identity with connections of its own, which can be closed without harm to others."""
        ...

    def close(self) -> None:
        """Ends what is under way, and refuses what is asked later."""
        ...


class Writer(Protocol):
    """One identity's way to look at single objects and to write; may be used from several threads."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        """One answer, whole. Raises Unreachable."""
        ...

    def send(self, request: ApiRequest) -> ApiResponse:
        """One write, sent once. Raises Unreachable, and then it may have taken effect all the same."""
        ...


# --- Paths of the API server: the only place that puts them together.
#
# Groups, resources and subresources are of a closed set; names and namespaces are held against what the API server
# allows, and quoted. The client refuses every path that could not have been made here: a name that leads out of its
# folder never becomes a request, wherever it came from.

# What is asked for or written, and never looked at as a kind.
_OTHERS = frozenset({("", "configmaps"), ("events.k8s.io", "events"), ("apps", "deployments")})
RESOURCES = frozenset((each.group, each.plural) for each in RESOURCE_KINDS) | _OTHERS
SUBRESOURCES = frozenset({"binding", "eviction", "resize", "status"})

_VERSION = re.compile(r"v[0-9]{1,4}((alpha|beta)[0-9]{1,4})?")
_LONGEST_PATH = 2_000
_PATH = re.compile(r"(/[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?)+")
_UP = re.compile(r"\.\.")


class BadPath(BadName):
    """No path of the API server that is ever asked for; the sentence says what is wrong with it."""


def folder(group: str, plural: str, namespace: str = "", version: str = "v1") -> str:
    """Where objects of a resource are listed and made: those of one namespace, or all. Raises BadPath."""
    if (group, plural) not in RESOURCES:
        raise BadPath(f"{shortened(plural)} of the group {shortened(group)} is no resource that is asked for")
    if not _VERSION.fullmatch(version):
        raise BadPath(f"{shortened(version)} is no version of an API")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    return f"{root}/namespaces/{_namespace(namespace)}/{plural}" if namespace else f"{root}/{plural}"


def folder_in(namespace: str, group: str, plural: str) -> str:
    """Where objects of a resource are made in one namespace. Raises BadPath, also where none is named."""
    _namespace(namespace)
    return folder(group, plural, namespace)


def below(folder_path: str, name: str, subresource: str = "") -> str:
    """An object in a folder, or a subresource of it. Raises BadPath."""
    if not is_object_name(name):
        raise BadPath(f"{shortened(name)} is no name of an object")
    if subresource and subresource not in SUBRESOURCES:
        raise BadPath(f"{shortened(subresource)} is no subresource that is written")
    end = f"/{subresource}" if subresource else ""
    return f"{folder_path}/{quote(name, safe='')}{end}"


def checked(path: str) -> str:
    """The path, where it is one that could have been made here, or is asked by a fixed text. Raises BadPath."""
    if len(path) > _LONGEST_PATH or not _PATH.fullmatch(path) or _UP.search(path):
        raise BadPath(f"{shortened(path)} is no path of an API server")
    return path


def _namespace(namespace: str) -> str:
    if not is_namespace(namespace):
        raise BadPath(f"{shortened(namespace)} is no namespace")
    return quote(namespace, safe="")


# --- How long to wait after a failure: twice as long each time, never all at once. A Backoff owns the count in a row.
#
# A connection that opens and closes at once is no success: only what has lasted a while starts the count afresh, so
# that nothing that fails quickly is asked for in a busy loop.

_MOST_DOUBLINGS = 30  # beyond any bound that could be wished for


class BackoffBounds(msgspec.Struct, frozen=True):
    """The bounds of waiting."""

    first_seconds: float = 0.2
    most_seconds: float = 30.0
    healthy_seconds: float = 10.0  # what lasted that long was no failure


class Backoff:
    """Waits between half of a bound and all of it; the bound doubles with each failure in a row."""

    def __init__(self, waits: BackoffBounds, chance: random.Random) -> None:
        self._waits = waits
        self._chance = chance
        self._failures = 0

    def seconds_after(self, lasted_seconds: float) -> float:
        """How long to wait now that something has failed, or ended, which had lasted that long."""
        if lasted_seconds >= self._waits.healthy_seconds:
            self._failures = 0
        doublings = min(self._failures, _MOST_DOUBLINGS)
        self._failures += 1
        bound = min(self._waits.most_seconds, self._waits.first_seconds * float(2**doublings))
        return bound * (0.5 + self._chance.random() / 2)
