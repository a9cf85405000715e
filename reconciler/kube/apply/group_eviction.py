"""Pods that leave together or not at all: all are asked by dry runs first, and in earnest only if all of them may go.

There are no transactions: once the first was asked in earnest the others are asked whatever comes of it, since what is
left of a gang is of no use to anybody. The pod that the decision is about goes last: while it is there, not all have
been asked.
"""

from collections.abc import Iterator

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse
from reconciler.kube.apply.fenced_writer import FencedWriter
from reconciler.kube.apply.verbs import eviction
from reconciler.model.plan.action import Evict
from reconciler.protocol.group_eviction import leaves, no_longer_whole
from reconciler.protocol.preconditions import WriteResult


class GroupEviction:
    """Owner of whether any of them was asked in earnest."""

    def __init__(self, act: Evict, pen: FencedWriter) -> None:
        self._others, self._pen = act.others, pen
        self._has_begun = False

    def requests(self) -> WriteResult | tuple[ApiRequest, ...]:
        """How the others are asked that are there; or how it ends where one left before any was asked. Raises
        Unreachable, NotSeen and FenceFell."""
        api_requests = []
        for each in self._others:
            there = self._pen.look(each.ref)
            if there is None or leaves(each.ref, there):
                if not self._has_begun:
                    return no_longer_whole(each.ref)
                continue
            api_requests.append(eviction(each.ref, each.grace_seconds, {"uid": str(there["metadata"]["uid"])}))
        return tuple(api_requests)

    def answers(self, requests: tuple[ApiRequest, ...]) -> Iterator[ApiResponse]:
        """What is said to dry runs of all. Raises Unreachable and FenceFell."""
        for each in () if self._has_begun else requests:
            yield self._pen.send(_dry(each))
        self._has_begun = True


def _dry(request: ApiRequest) -> ApiRequest:
    body = msgspec.json.decode(request.body)
    body["deleteOptions"]["dryRun"] = ["All"]
    return msgspec.structs.replace(request, body=msgspec.json.encode(body, order="sorted"))
