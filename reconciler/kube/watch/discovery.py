"""Discovers the served kinds and the cluster's identity. A Discovery owns the last result, shared by all reflectors."""

import threading
import time
from collections.abc import Mapping

import msgspec

from reconciler.kube.api_server import ApiResponse, ApiServer, Unreachable, WrittenObject, below, folder
from reconciler.kube.watch.changes import Identity, ListEnding, ListFailed, ListResult, said
from reconciler.model.cluster.kinds import ResourceKind

_LIST = "APIGroupDiscoveryList"
_ACCEPT = ",".join(f"application/json;g=apidiscovery.k8s.io;v={version};as={_LIST}" for version in ("v2", "v2beta1"))
_TOO_OLD = "has no aggregated discovery: Kubernetes 1.26 or newer is required"
_KUBE_SYSTEM = below(folder("", "namespaces"), "kube-system")


class Served(msgspec.Struct, frozen=True):
    """Versions by group and plural, preferred first; and groups that are temporarily unknown."""

    versions: Mapping[tuple[str, str], tuple[str, ...]]
    unknown_groups: frozenset[str] = frozenset()

    def path(self, resource_kind: ResourceKind, namespace: str) -> str:
        """The path to list and watch a kind. Raises ListFailed."""
        names = self.versions.get((resource_kind.group, resource_kind.plural), ())
        version = resource_kind.version or next(iter(names), "")
        if not names:
            raise ListFailed(self._why_not(resource_kind))
        if version not in names:
            why = f"is served as {', '.join(names)} and not as {version}, the only supported version"
            raise ListFailed(ListResult(ListEnding.UNSUITED, why))
        return folder(resource_kind.group, resource_kind.plural, resource_kind.namespace_for(namespace), version)

    def _why_not(self, resource_kind: ResourceKind) -> ListResult:
        if resource_kind.group in self.unknown_groups:
            return ListResult(ListEnding.FAILED, f"the API server cannot discover the group {resource_kind.group}")
        if resource_kind.optional:
            return ListResult(ListEnding.NOT_SERVED, f"the cluster serves no {resource_kind.resource}")
        return ListResult(
            ListEnding.UNSUITED, f"the cluster serves no {resource_kind.resource}, which every cluster must serve"
        )


class _Resource(msgspec.Struct, frozen=True):
    resource: str


class _Version(msgspec.Struct, frozen=True):
    version: str
    resources: tuple[_Resource, ...] | None = ()
    freshness: str = ""


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    versions: tuple[_Version, ...] | None = ()
    metadata: _Name = _Name()


class _Groups(msgspec.Struct, frozen=True):
    kind: str
    items: tuple[_Group, ...] | None = ()


def served(answers: Mapping[str, ApiResponse]) -> Served:
    """Parses the responses by request path. Raises ListFailed."""
    versions: dict[tuple[str, str], tuple[str, ...]] = {}
    unknown: set[str] = set()
    for path, answer in answers.items():
        for group in _groups(path, answer).items or ():
            for version in group.versions or ():
                if version.freshness == "Stale":
                    unknown.add(group.metadata.name)
                for each in version.resources or ():
                    key = (group.metadata.name, each.resource)
                    versions[key] = (*versions.get(key, ()), version.version)
    return Served(versions, frozenset(unknown))


def _groups(path: str, answer: ApiResponse) -> _Groups:
    if answer.status == 406:
        raise ListFailed(ListResult(ListEnding.FAILED, f"the API server {_TOO_OLD}"))
    if answer.status == 403:
        why = f"may not read {path}: bind the identity to the role system:discovery, as clusters do by default"
        raise ListFailed(ListResult(ListEnding.FORBIDDEN, why))
    if answer.status != 200:
        why = f"reading {path} failed: {said(answer)}"
        raise ListFailed(ListResult(ListEnding.FAILED, why, answer.retry_after_seconds))
    try:
        groups = msgspec.json.decode(answer.body, type=_Groups)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ListFailed(ListResult(ListEnding.FAILED, f"{path} has no valid response: {fault}")) from fault
    if groups.kind != _LIST:
        raise ListFailed(ListResult(ListEnding.FAILED, f"the API server {_TOO_OLD}"))
    return groups


class Discovery:
    """One request serves all concurrent callers, including its failure."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._lock = threading.Lock()
        self._asked = float("-inf")
        self._found: Served | ListFailed | Unreachable = Served({})

    def path(self, resource_kind: ResourceKind, age_seconds: float) -> str:
        """The kind's path, from a result of at most that age. Raises ListFailed and Unreachable."""
        called = time.monotonic()
        with self._lock:
            # A failure is shared only with callers that waited for it.
            if self._asked < (called - age_seconds if isinstance(self._found, Served) else called):
                self._ask()
            return self._served().path(resource_kind, self._namespace)

    def ask(self) -> None:
        """Sends the request. Raises ListFailed and Unreachable."""
        with self._lock:
            self._ask()
            self._served()

    def _served(self) -> Served:
        if isinstance(self._found, Served):
            return self._found
        raise self._found.with_traceback(None)

    def _ask(self) -> None:
        began = time.monotonic()
        try:
            answers = {path: self._server.get(path, accept=_ACCEPT) for path in ("/api", "/apis")}
            self._found, self._asked = served(answers), began
        except (ListFailed, Unreachable) as fault:
            self._found, self._asked = fault, time.monotonic()


def identity(server: ApiServer) -> Identity:
    """The cluster's identity: the uid of kube-system, which lives as long as the cluster.

    Raises Unreachable and Setback.
    """
    answer = server.get(_KUBE_SYSTEM)
    if answer.status == 403:
        return Identity(
            why="may not get kube-system, whose uid names the cluster: the role needs get, see `reconciler rbac`"
        )
    try:
        uid = msgspec.json.decode(answer.body, type=WrittenObject).metadata.uid if answer.status == 200 else ""
    except (msgspec.MsgspecError, UnicodeDecodeError):
        uid = ""
    if uid:
        return Identity(uid)
    why = f"reading the namespace kube-system failed: {said(answer)}"
    raise ListFailed(ListResult(ListEnding.FAILED, why, answer.retry_after_seconds))
