"""HTTP endpoints of the scheduler extender: filter, prioritize, preempt and bind.

filter, prioritize and preempt are answered at once, on the main thread that owns the desk. bind waits for the API
server, so its requests run on threads. A request that cannot be decoded is answered with 400: kube-scheduler then
treats the extender as failed for that pod, tries again later, and binds nothing. So does 503, the answer to preempt
while the cluster has not been read.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from reconciler.protocol.extender import (
    BindAnswer,
    BindRequest,
    FilterAnswer,
    FilterRequest,
    NodeScore,
    PreemptAnswer,
    PreemptRequest,
)
from reconciler.serve.server import ConnectionLimits

# A scheduler keeps a connection for each pod that it binds at the time.
LIMITS = ConnectionLimits(connections=1_024, of_one_client=1_024, exchange_seconds=60.0, idle_seconds=90)
LARGEST_BODY = 4 * 2**20  # a pod, and the names of 15,000 nodes of the longest name

T = TypeVar("T")


class Extender(Protocol):
    """The desk, as far as the endpoints need it."""

    def filter(self, request: FilterRequest) -> FilterAnswer: ...

    def prioritize(self, request: FilterRequest) -> list[NodeScore]: ...

    def preempt(self, request: PreemptRequest) -> PreemptAnswer: ...


Bind = Callable[[BindRequest], Awaitable[BindAnswer]]


class BadRequest(Exception):
    """A body that is no such request; the message says why."""


class NotReady(Exception):
    """There is no answer yet, and the answer to this verb has no field for an error; the message says why."""


def extender_routes(extender: Extender, bind: Bind) -> Starlette:
    """All routes of the extender."""

    async def answer_bind(request: Request) -> Response:
        return _json(await bind(await _read(request, BindRequest)))

    def route(path: str, kind: type[T], answer: Callable[[T], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            return _json(answer(await _read(request, kind)))

        return Route(path, endpoint, methods=["POST"])

    routes = [
        route("/filter", FilterRequest, extender.filter),
        route("/prioritize", FilterRequest, extender.prioritize),
        route("/preempt", PreemptRequest, extender.preempt),
        Route("/bind", answer_bind, methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={BadRequest: _bad_request, NotReady: _not_ready})


async def _read(request: Request, kind: type[T]) -> T:
    """The decoded body. Raises BadRequest."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise BadRequest(f"the body has more than {LARGEST_BODY} bytes")
    try:
        return msgspec.json.decode(bytes(body), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body is no {kind.__name__}: {error}") from None


def _json(answer: Any) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


async def _not_ready(_: Request, error: Exception) -> Response:
    return PlainTextResponse(f"reconciler can't answer: {error}", status_code=503)


async def _bad_request(_: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), status_code=400)
