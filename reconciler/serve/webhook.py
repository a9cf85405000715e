"""The admission webhook as an HTTP application: reads bodies within bounds, and answers AdmissionReviews.

The API server opens a connection for each concurrent request, and sends as many as pods are created at once. Small
bodies are read at once; of large ones only a few at a time, so that memory stays bounded.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from reconciler.protocol.admission.decision import Grounds, NotYetRead, Refusal, claim_title, decide, refuse_name
from reconciler.protocol.admission.review import (
    MOST_BYTES,
    Review,
    ReviewedPod,
    UnreadableReview,
    admitted,
    read_review,
    refused,
)
from reconciler.report.admission_text import refusal_status, warning_text
from reconciler.serve.server import ConnectionLimits

PATH = "/pods"
# The API server may have 200 mutating requests in flight, and uses a connection for each.
LIMITS = ConnectionLimits(connections=600, of_one_client=400)
LOOKUP_SECONDS = 6.0  # below timeoutSeconds of the configuration, so that the user reads a sentence
_SMALL_BODY = 65_536
_LARGE_BODIES = 8  # read at a time
_THREADS = 16
_JSON = "application/json"

Count = Callable[[str], None]  # is called with the result of each review: admitted, unreadable, or a refusal's name


class WebhookMetrics:
    """Counts reviews by their result."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reviews = Counter(
            "reconciler_webhook_reviews",
            "Reviews that the admission webhook answered: admitted, unreadable, or the reason of the refusal.",
            ["result"],
            registry=registry,
        )

    def count(self, result: str) -> None:
        self._reviews.labels(result).inc()


class Lookup(Protocol):
    """Reads what a decision depends on. Called on several threads."""

    def grounds(self, namespace: str, claim: str) -> Grounds | str:
        """The claim and the declared pools; or why they are unknown."""
        ...


class _BadRequest(Exception):
    """The request cannot be answered: a status code and a sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Webhook:
    """Owns the threads that look up claims."""

    def __init__(self, lookup: Lookup, count: Count = lambda _: None) -> None:
        self._lookup = lookup
        self._count = count
        self._large = asyncio.Semaphore(_LARGE_BODIES)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="admission")

    def application(self) -> Starlette:
        return Starlette(routes=[Route(PATH, self._review, methods=["POST"])])

    def stop(self) -> None:
        """Starts no more lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _review(self, request: Request) -> Response:
        try:
            review = await self._read(request)
        except _BadRequest as fault:
            self._count("unreadable")
            return PlainTextResponse(str(fault), status_code=fault.code)
        except ClientDisconnect:
            return Response(status_code=400)
        return Response(await self._answer(review), media_type=_JSON)

    async def _read(self, request: Request) -> Review:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != _JSON:
            raise _BadRequest(400, f"expected an AdmissionReview as {_JSON}")
        declared = request.headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared[:19]) > MOST_BYTES:
            raise _BadRequest(413, f"expected an AdmissionReview of at most {MOST_BYTES} bytes")
        body = bytearray()
        chunks = request.stream()
        async for chunk in chunks:
            body += chunk
            if len(body) > _SMALL_BODY:
                break
        if len(body) > _SMALL_BODY:
            async with self._large:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise _BadRequest(413, f"expected an AdmissionReview of at most {MOST_BYTES} bytes")
        try:
            return read_review(bytes(body))
        except UnreadableReview as fault:
            raise _BadRequest(400, str(fault)) from None

    async def _answer(self, review: Review) -> bytes:
        if review.pod is None:
            self._count("admitted")
            return admitted(review.uid)
        found = refuse_name(review.pod)
        grounds: Grounds | Refusal = found if found is not None else await self._grounds(review.pod)
        result = decide(review.pod, grounds) if isinstance(grounds, Grounds) else grounds
        if isinstance(result, Refusal):
            self._count(type(result).__name__)
            return refused(review.uid, refusal_status(result))
        self._count("admitted")
        return admitted(review.uid, result.patch, [warning_text(each) for each in result.warnings])

    async def _grounds(self, pod: ReviewedPod) -> Grounds | Refusal:
        looking = asyncio.get_running_loop().run_in_executor(
            self._threads, self._lookup.grounds, pod.namespace, pod.claim
        )
        try:
            found = await asyncio.wait_for(looking, LOOKUP_SECONDS)
        except TimeoutError:
            found = "the API server did not send the claim in time"
        except Exception as fault:  # noqa: BLE001 - the user must read a sentence, not a traceback
            found = f"a bug in reconciler: {type(fault).__name__}"
        return NotYetRead(claim_title(pod), found) if isinstance(found, str) else found
