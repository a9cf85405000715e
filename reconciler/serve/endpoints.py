"""What a running reconciler answers to those who run it: whether it lives, whether it is ready, and its metrics.

Probes may have a server of their own, so that whoever holds the connections of the other one does not have the replica
restarted.
"""

from collections.abc import Callable

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"

Why = Callable[[], str]


class Answers(msgspec.Struct, frozen=True):
    """Asked on the main thread: each only looks, and never waits."""

    why_unhealthy: Why  # nothing when it lives
    why_unready: Why  # nothing when it is ready
    metrics: Callable[[], bytes]
    notices: Callable[[], tuple[str, ...]] = tuple  # what is amiss though it is ready, a line each


def application(answers: Answers) -> Starlette:
    """All routes."""

    async def metrics(_: Request) -> Response:
        return Response(answers.metrics(), media_type=METRICS_TYPE)

    return Starlette(routes=[*_probes(answers), Route("/metrics", metrics)])


def probes(answers: Answers) -> Starlette:
    """Whether the replica lives, and whether it is ready."""
    return Starlette(routes=_probes(answers))


def _probes(answers: Answers) -> list[Route]:

    async def healthz(_: Request) -> Response:
        return _said(answers.why_unhealthy())

    async def readyz(_: Request) -> Response:
        return _said(answers.why_unready(), answers.notices())

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _said(why_not: str, notices: tuple[str, ...] = ()) -> Response:
    """A probe goes by the code, and a person reads on."""
    return PlainTextResponse("\n".join((why_not or "ok", *notices)), status_code=503 if why_not else 200)
