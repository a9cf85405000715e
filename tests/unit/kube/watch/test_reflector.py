"""How long a watcher waits, whatever it is asked to."""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager

from reconciler.kube.api_server import JSON, ApiResponse, BackoffBounds, Stream
from reconciler.kube.watch.discovery import Discovery
from reconciler.kube.watch.reflector import Means, Reflector, ReflectorTiming
from reconciler.model.cluster.kinds import RESOURCE_KINDS


class Busy:
    """An API server that asks to be left alone for longer than any clock counts."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        self.asked.release()
        return ApiResponse(429, b"", 1e30)

    def stream(self, path: str, query: Mapping[str, str], silence_seconds: float) -> AbstractContextManager[Stream]:
        raise AssertionError("nothing is watched before it is listed")

    def apart(self) -> "Busy":
        return self

    def close(self) -> None:
        pass


def test_an_api_server_that_asks_for_ages_is_asked_again() -> None:
    server, stop = Busy(), threading.Event()
    pace = ReflectorTiming(waits=BackoffBounds(first_seconds=0.001, most_seconds=0.002))
    means = Means(server, Discovery(server, "gpu-system"), lambda _: None, pace, stop)
    thread = threading.Thread(target=Reflector(RESOURCE_KINDS[0], means).run, daemon=True)
    thread.start()
    try:
        for _ in range(3):
            assert server.asked.acquire(timeout=20), "it has not come back"
    finally:
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
