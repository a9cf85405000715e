"""One kind listed: page by page, all of one moment, and never older than what was seen before."""

from typing import Any

import msgspec

from reconciler.kube.api_server import ApiServer
from reconciler.kube.decode import Page, Undecodable, page
from reconciler.kube.watch.changes import Clock, Listed
from reconciler.kube.watch.list_result import Outcome, Setback, What, setback_of
from reconciler.kube.watch.resource_versions import is_older
from reconciler.model.cluster.kinds import ResourceKind

PAGE = 500
_ATTEMPTS = 3  # while pages expire under our hands
_GONE = "pages of the list expire faster than they can be read"


class Asked(msgspec.Struct, frozen=True):
    """What is listed, and the newest version that was seen of it."""

    seen: ResourceKind
    path: str
    seen_version: str = ""

    def query(self, **more: str) -> dict[str, str]:
        """What makes a list, or a watch, one of this kind and nothing else."""
        return {**({"labelSelector": self.seen.selector} if self.seen.selector else {}), **more}


def list_all(server: ApiServer, asked: Asked, clock: Clock) -> Listed:
    """All objects as of one moment. Raises Setback and Unreachable."""
    for _ in range(_ATTEMPTS):
        at = clock()
        first = _page(server, asked, "")
        if is_older(first.resource_version, asked.seen_version):
            raise Setback(Outcome(What.OLDER, _older(first.resource_version, asked.seen_version)))
        items = _with_the_rest(server, asked, first)
        if items is not None:
            return Listed(asked.seen, items, first.resource_version, at)
    raise Setback(Outcome(What.EXPIRED, _GONE))


def _with_the_rest(server: ApiServer, asked: Asked, first: Page) -> tuple[Any, ...] | None:
    """The items of all pages; None when a later page is of another moment, or of none any more."""
    pages = [first.items]
    last = first
    while last.continue_token:
        try:
            last = _page(server, asked, last.continue_token)
        except Setback as setback:
            if setback.outcome.what is What.EXPIRED:
                return None
            raise
        if last.resource_version != first.resource_version:
            return None
        pages.append(last.items)
    return tuple(item for each in pages for item in each)


def _page(server: ApiServer, asked: Asked, token: str) -> Page:
    query = asked.query(limit=str(PAGE), **({"continue": token} if token else {}))
    answer = server.get(asked.path, query)
    if answer.status != 200:
        raise setback_of(answer, asked.seen, "list")
    try:
        return page(asked.seen, answer.body)
    except Undecodable as fault:
        raise Setback(Outcome(What.FAILED, str(fault))) from fault


def _older(version: str, seen_version: str) -> str:
    return (
        f"the API server lists it as it was at version {version}, and version {seen_version} was seen already: "
        "if etcd was restored from a backup, start the reconciler again"
    )
