"""The one way by which anything is written while a plan is carried out: fenced, paced, and patient.

The fence is asked just before each request is sent, retries included, and while something is waited for.
"""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from reconciler.kube.api_server import ApiRequest, ApiResponse, Writer
from reconciler.kube.apply.resource_paths import path_of
from reconciler.kube.apply.token_bucket import Bucket
from reconciler.kube.decode import Undecodable, page, refused_words
from reconciler.kube.paths import BadPath, folder
from reconciler.kube.placeholders import StandIn
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.pod import Pod
from reconciler.model.object_names import is_object_name, shortened
from reconciler.model.plan.action import Ref
from reconciler.ports import Fence

_PODS = next(each for each in RESOURCE_KINDS if each.field == "pods")
_PODS_PATH = folder("", "pods")
_PAGE = 500
_SLICE_SECONDS = 0.1  # a fence that falls is noticed within that while something is waited for


class WriteLimits(msgspec.Struct, frozen=True):
    """How much is written at once, and how patiently."""

    threads: int = 16
    writes_per_second: float = 20.0
    burst: int = 40
    events_per_second: float = 10.0
    burst_of_events: int = 60
    attempts: int = 5
    longest_wait_seconds: float = 10.0
    patience_seconds: float = 20.0  # with one write: no try begins later, since the next plan waits for all of them
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time  # against which times on objects are held


class FenceFell(Exception):
    """Somebody else may be writing by now."""


class NotSeen(Exception):
    """To look at an object was answered with something else than the object, or than that it is not there."""

    def __init__(self, answer: ApiResponse) -> None:
        super().__init__(str(answer.status))
        self.answer = answer


class FencedWriter:
    """Holds no state of its own; the bucket is shared by all that write."""

    def __init__(self, server: Writer, bucket: Bucket, fence: Fence, limits: WriteLimits) -> None:
        self._server, self._bucket, self._fence = server, bucket, fence
        self.limits = limits

    @property
    def may_write(self) -> bool:
        return self._fence.holds()

    def look(self, ref: Ref) -> dict[str, Any] | None:
        """The object as it stands, most recently. Raises BadPath, Unreachable, NotSeen and FenceFell."""
        self._mind_fence()
        answer = self._server.get(path_of(ref))
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise NotSeen(answer)
        result: dict[str, Any] = msgspec.json.decode(answer.body)
        return result

    def pods_on(self, node: str) -> list[Pod]:
        """The pods of a node, most recently: read page by page, and from nobody's cache. Raises as `look`, and
        Undecodable."""
        if not is_object_name(node):  # a comma in it would be another selector
            raise BadPath(f"{shortened(node)} is no name of a Node")
        pods: list[Pod] = []
        query = {"fieldSelector": f"spec.nodeName={node}", "limit": str(_PAGE)}
        while True:
            self._mind_fence()
            answer = self._server.get(_PODS_PATH, query)
            if answer.status != 200:
                raise NotSeen(answer)
            listed = page(_PODS, answer.body)
            pods += [_counting(each) for each in listed.items]
            if not listed.continue_token:
                return pods
            query = {**query, "continue": listed.continue_token}

    def await_token(self) -> None:
        """Waits until another write may be sent. Raises FenceFell."""
        self.wait(self._bucket.reserve())

    def send(self, request: ApiRequest, has_turn: bool = False) -> ApiResponse:
        """Raises Unreachable, where it may have taken effect all the same, and FenceFell, where nothing was sent."""
        if not has_turn:
            self.await_token()
        self._mind_fence()
        return self._server.send(request)

    def wait(self, seconds: float) -> None:
        """Raises FenceFell."""
        left_seconds = seconds
        while left_seconds > 0:
            self._mind_fence()
            self.limits.pause(min(left_seconds, _SLICE_SECONDS))
            left_seconds -= _SLICE_SECONDS

    def _mind_fence(self) -> None:
        if not self.may_write:
            raise FenceFell


def _counting(result: Pod | StandIn) -> Pod:
    """A pod that is set aside counts as what stands in its place. Raises Undecodable."""
    if not isinstance(result, StandIn):
        return result
    if not isinstance(result.object, Pod):
        raise Undecodable(refused_words(result))
    return result.object
