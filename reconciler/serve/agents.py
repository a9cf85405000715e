"""HTTP endpoints for the agents of elastic pods: asks for permits, and the state of all ledgers.

Asks are answered at once, on the main thread that owns the pressure desk. Only the verification of a token may wait: a
token with an unknown key makes the keys be read again. Every refusal is JSON with one sentence.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from reconciler.protocol.agent_identity import AgentIdentity
from reconciler.protocol.asks import AskAnswer, AskMessage, Refusal
from reconciler.protocol.pressure_state import LedgerDump
from reconciler.serve.agent_metrics import AgentMetrics
from reconciler.serve.server import ConnectionLimits

# Each agent keeps a connection. Agents behind one address, such as that of a node, share the limit of a client.
LIMITS = ConnectionLimits(connections=12_288, of_one_client=1_024, exchange_seconds=10.0, idle_seconds=90)
LARGEST_BODY = 64 * 2**10

_JSON = "application/json"
_TOO_LARGE = Refusal(413, f"the body has more than {LARGEST_BODY} bytes")


class Agents(Protocol):
    """What the endpoints answer from."""

    async def authenticate(self, authorization: str) -> AgentIdentity | Refusal: ...

    def ask(self, identity: AgentIdentity, message: AskMessage) -> AskAnswer | Refusal: ...

    def state(self, identity: AgentIdentity) -> LedgerDump | Refusal: ...


Answer = AskAnswer | LedgerDump | Refusal

_decoder = msgspec.json.Decoder(AskMessage)
_encoder = msgspec.json.Encoder()


class _RefusalBody(msgspec.Struct, rename="camel", omit_defaults=True):
    error: str
    compute_unit: dict[str, int] | None = None


def agent_routes(agents: Agents, metrics: AgentMetrics | None = None) -> Starlette:
    """All routes for agents."""
    counted = metrics or AgentMetrics()

    async def ask(request: Request) -> Response:
        began = time.monotonic()
        answer = await _answered(agents, request, _ask)
        response = _response(answer)
        counted.answered(response.status_code, time.monotonic() - began)
        return response

    async def state(request: Request) -> Response:
        return _response(await _answered(agents, request, _state))

    return Starlette(
        routes=[Route("/ask", ask, methods=["POST"]), Route("/debug/state", state, methods=["GET"])],
    )


async def _answered(
    agents: Agents, request: Request, answer: Callable[[Agents, AgentIdentity, Request], Awaitable[Answer]]
) -> Answer:
    """The body is not read before the agent is known."""
    identity = await agents.authenticate(request.headers.get("authorization", ""))
    return identity if isinstance(identity, Refusal) else await answer(agents, identity, request)


async def _ask(agents: Agents, identity: AgentIdentity, request: Request) -> Answer:
    message = await _read(request)
    return message if isinstance(message, Refusal) else agents.ask(identity, message)


async def _state(agents: Agents, identity: AgentIdentity, _: Request) -> Answer:
    return agents.state(identity)


async def _read(request: Request) -> AskMessage | Refusal:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            return _TOO_LARGE
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Refusal(400, f"the body is no ask: {error}")


def _response(answer: Answer) -> Response:
    if not isinstance(answer, Refusal):
        return Response(_encoder.encode(answer), media_type=_JSON)
    headers = {"Retry-After": str(answer.retry_seconds)} if answer.retry_seconds else {}
    if answer.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = _encoder.encode(_RefusalBody(answer.sentence, answer.compute_unit))
    return Response(body, answer.status, headers, _JSON)
