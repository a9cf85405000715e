"""Owner of a scheduler extender that only listens: a small server on the loopback, from start to stop.

A scheduler hands an extender the nodes that passed its own filters. The witness writes them down and refuses them all,
so that the pod stays pending, the cluster stays as it is, and the next pod meets the same nodes.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_LARGEST_BODY = 16 * 1024 * 1024
_MOST_PODS = 20_000
_IDLE_SECONDS = 60
_STOP_SECONDS = 10
_GLANCE_SECONDS = 0.02  # between looks whether it shall stop

Manifest = dict[str, Any]


class Witness:
    """Which nodes passed the built-in filters of the scheduler, by pod."""

    def __init__(self) -> None:
        self._heard: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Ear)
        self._server.witness = self
        # A thread, since the scheduler asks while the test waits for what it says.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_GLANCE_SECONDS,), name="witness", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(_STOP_SECONDS)
        self._server.server_close()

    def extender(self) -> Manifest:
        """The entry of a KubeSchedulerConfiguration that makes a scheduler ask here."""
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "10s",
        }

    def heard(self, uid: str) -> frozenset[str]:
        """The nodes that passed when the pod was last tried; the scheduler does not ask when there are none."""
        with self._lock:
            return self._heard.get(uid, frozenset())

    def forget(self) -> None:
        """Makes room: what was heard is no longer of interest."""
        with self._lock:
            self._heard.clear()

    def note(self, uid: str, nodes: list[str]) -> None:
        with self._lock:
            if len(self._heard) >= _MOST_PODS:
                raise ValueError(f"{_MOST_PODS} pods heard and none forgotten")
            self._heard[uid] = frozenset(nodes)


class _Server(ThreadingHTTPServer):
    """A thread a connection; the scheduler keeps one or two."""

    daemon_threads = True
    witness: Witness


class _Ear(BaseHTTPRequestHandler):
    """Hears one connection of the scheduler."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if length > _LARGEST_BODY:
            self.send_error(413)
            return
        asked = json.loads(self.rfile.read(length))
        self.server.witness.note(asked["Pod"]["metadata"]["uid"], asked["NodeNames"])
        answer = json.dumps({"NodeNames": [], "FailedNodes": {}, "Error": ""}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Thousands of requests: nobody would read it."""
