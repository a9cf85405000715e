"""One kind listed: page by page, all of one moment, and never older than what was seen before."""

from typing import Any

import msgspec

from reconciler.kube.api_server import ApiServer
from reconciler.kube.decode import ListPage, Undecodable, page
from reconciler.kube.watch.changes import Clock, Listed
from reconciler.kube.watch.list_result import ListEnding, ListFailed, ListResult, setback_of
from reconciler.kube.watch.resource_versions import is_older
from reconciler.model.cluster.kinds import ResourceKind

PAGE = 500
_ATTEMPTS = 3  # while pages expire under our hands
_GONE = "pages of the list expire faster than they can be read"


class ListRequest(msgspec.Struct, frozen=True):
    """What is listed, and the newest version that was seen of it."""

    resource_kind: ResourceKind
    path: str
    known_version: str = ""

    def query(self, **more: str) -> dict[str, str]:
        """What makes a list, or a watch, one of this kind and nothing else."""
        return {**({"labelSelector": self.resource_kind.selector} if self.resource_kind.selector else {}), **more}


def list_all(server: ApiServer, request: ListRequest, clock: Clock) -> Listed:
    """All objects as of one moment. Raises Setback and Unreachable."""
    for _ in range(_ATTEMPTS):
        at = clock()
        first = _page(server, request, "")
        if is_older(first.resource_version, request.known_version):
            raise ListFailed(ListResult(ListEnding.OLDER, _older(first.resource_version, request.known_version)))
        items = _with_the_rest(server, request, first)
        if items is not None:
            return Listed(request.resource_kind, items, first.resource_version, at)
    raise ListFailed(ListResult(ListEnding.EXPIRED, _GONE))


def _with_the_rest(server: ApiServer, request: ListRequest, first: ListPage) -> tuple[Any, ...] | None:
    """The items of all pages; None when a later page is of another moment, or of none any more."""
    pages = [first.items]
    last = first
    while last.continue_token:
        try:
            last = _page(server, request, last.continue_token)
        except ListFailed as setback:
            if setback.outcome.ending is ListEnding.EXPIRED:
                return None
            raise
        if last.resource_version != first.resource_version:
            return None
        pages.append(last.items)
    return tuple(item for each in pages for item in each)


def _page(server: ApiServer, request: ListRequest, token: str) -> ListPage:
    query = request.query(limit=str(PAGE), **({"continue": token} if token else {}))
    answer = server.get(request.path, query)
    if answer.status != 200:
        raise setback_of(answer, request.resource_kind, "list")
    try:
        return page(request.resource_kind, answer.body)
    except Undecodable as fault:
        raise ListFailed(ListResult(ListEnding.FAILED, str(fault))) from fault


def _older(version: str, seen_version: str) -> str:
    return (
        f"the API server lists it as it was at version {version}, and version {seen_version} was seen already: "
        "if etcd was restored from a backup, start the reconciler again"
    )
