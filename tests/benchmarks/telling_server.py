"""A server that tells of changes at a pace that no API server keeps up on two cores: lists, watches, and an end.

It runs as a process of its own, so that what an observer costs can be measured beside it.
"""

import contextlib
import json
import random
import ssl
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.benchmarks.big_fleet import BigFleet

SLOT_SECONDS = 0.01
KINDS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudget"}
OFTEN = ("Pod",) * 8 + ("Node", "PodDisruptionBudget")


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


class Kind:
    """Owner of the objects of one kind, and of all that was ever told of them."""

    def __init__(self, name: str, objects: list[dict[str, Any]]) -> None:
        self.api_version = "policy/v1" if name == "PodDisruptionBudget" else "v1"
        self.name = name
        by_key = {(each["metadata"].get("namespace"), each["metadata"]["name"]): each for each in objects}
        self.objects = dict(enumerate(by_key.values()))
        self.gone: dict[int, dict[str, Any]] = {}
        self.told: list[tuple[int, bytes]] = []

    def change(self, chance: random.Random, version: int) -> None:
        """One object changed, and now and then one gone or come again."""
        type_ = chance.choices(["MODIFIED", "DELETED", "ADDED"], [18, 1, 1])[0]
        if type_ == "ADDED" and not self.gone:
            type_ = "MODIFIED"
        number = chance.choice(list(self.gone)) if type_ == "ADDED" else self._any(chance)
        held = self.gone.pop(number) if type_ == "ADDED" else self.objects[number]
        held["metadata"]["resourceVersion"] = str(version)
        if type_ == "DELETED":
            self.gone[number] = self.objects.pop(number)
        else:
            self.objects[number] = held
        event = {"type": type_, "object": {"kind": self.name, "apiVersion": self.api_version, **held}}
        self.told.append((version, encoded(event) + b"\n"))

    def _any(self, chance: random.Random) -> int:
        most = len(self.objects) + len(self.gone)
        while (number := chance.randrange(most)) not in self.objects:
            pass
        return number


@dataclass
class Telling:
    """Owner of the kinds, the version that counts their changes, and the thread that makes them."""

    kinds: dict[str, Kind]
    rate: int
    seconds: int
    version: int = 1_000
    changed: threading.Condition = field(default_factory=threading.Condition)
    late_seconds: float = 0.0

    def tell(self) -> None:
        chance = random.Random(1)
        began, told = time.monotonic(), 0
        while told < self.rate * self.seconds:
            due = min(self.rate * self.seconds, int((time.monotonic() - began) * self.rate))
            with self.changed:
                for _ in range(due - told):
                    self.version += 1
                    self.kinds[chance.choice(OFTEN)].change(chance, self.version)
                self.changed.notify_all()
            told = due
            time.sleep(SLOT_SECONDS)
        self.late_seconds = time.monotonic() - began - self.seconds

    def after(self, kind: Kind, place: int, version: int, timeout_seconds: float) -> tuple[int, list[bytes]]:
        """What was told from a place on, and the place after it."""
        with self.changed:
            self.changed.wait_for(lambda: len(kind.told) > place, timeout_seconds)
            return len(kind.told), [line for at, line in kind.told[place:] if at > version]


class Server(ThreadingHTTPServer):
    """Serves one fleet."""

    daemon_threads = True

    def __init__(self, folder: Path, telling: Telling) -> None:
        super().__init__(("127.0.0.1", 0), _Reply)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.telling = telling

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away ends its watches so."""


class _Reply(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Says nothing."""

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(at.query).items()}
        if at.path in KINDS and "watch" in query:
            with contextlib.suppress(OSError):
                self._watch(KINDS[at.path], query)
        elif at.path in KINDS:
            self._answer(self._list(KINDS[at.path], query))
        elif at.path == "/api":
            self._answer(discovery("", "v1", "nodes", "pods"))
        elif at.path == "/apis":
            self._answer(discovery("policy", "v1", "poddisruptionbudgets"))
        else:
            self._answer({"metadata": {"uid": "benchmark"}})

    def _answer(self, told: dict[str, Any]) -> None:
        body = encoded(told)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _list(self, name: str, query: dict[str, str]) -> dict[str, Any]:
        """All on one page: a page that is a moment older would need a history."""
        telling = self.server.telling
        with telling.changed:
            kind = telling.kinds[name]
            items = [dict(each) for each in kind.objects.values()]
            listed = {"kind": f"{name}List", "apiVersion": kind.api_version}
            return {**listed, "metadata": {"resourceVersion": str(telling.version)}, "items": items}

    def _watch(self, name: str, query: dict[str, str]) -> None:
        telling, version = self.server.telling, int(query["resourceVersion"])
        deadline, place = time.monotonic() + int(query["timeoutSeconds"]), 0
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while time.monotonic() < deadline:
            place, lines = telling.after(telling.kinds[name], place, version, 0.5)
            for line in lines:  # each by itself, as an API server sends it
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")


def discovery(group: str, version: str, *plurals: str) -> dict[str, Any]:
    versions = [{"version": version, "resources": [{"resource": each} for each in plurals]}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": group}, "versions": versions}]}


def main(folder: str, rate: str, seconds: str) -> None:
    """Says its port, begins at a line of input, and says how many changes of each kind it told; ends with its input."""
    fleet = BigFleet(nodes=500, pods=5_000)
    kinds = {name: Kind(name, [dict(each) for each in fleet.objects(name)]) for name in KINDS.values()}
    telling = Telling(kinds, int(rate), int(seconds))
    with Server(Path(folder), telling) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.readline()
        telling.tell()
        print(
            json.dumps({"told": sum(len(each.told) for each in kinds.values()), "late": telling.late_seconds}),
            flush=True,
        )
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
