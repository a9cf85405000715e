"""The reference agent against a server of asks: what it says, and when it decides alone."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from reconciler.agent import elastic
from reconciler.agent.elastic import Controller, ElasticAgent
from reconciler.agent.negotiation import Negotiation
from reconciler.agent.sizing import Usage
from reconciler.protocol.asks import PodName
from tests.lab.certificates import Authority

GI = 2**30
BOUNDS = {"cpu": (250, 8_000), "memory": (GI, 32 * GI)}
PERMIT = {"permit": {"vCPUs": 2_000, "mem": 4 * GI}, "computeUnit": {"vCPUs": 250, "mem": GI}, "permitToken": "t"}
AWAY = (503, {"error": "away"})


class Served:
    """A server on loopback that answers as a test says, and remembers the asks."""

    def __init__(self, folder: Path) -> None:
        self.answers: list[tuple[int, Any]] = []
        self.asks: list[Any] = []
        self.authority = Authority(folder)
        pair = self.authority.server("controller")
        served = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                served.asks.append((self.headers["Authorization"], body))
                status, answer = served.answers.pop(0)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answering)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    yield server
    server.server.shutdown()
    server.server.server_close()


class Agent:
    """An agent, what it says, and the resizes that it makes."""

    def __init__(self, served: Served, folder: Path) -> None:
        self.said: list[str] = []
        self.resized: list[Any] = []
        self.usage = Usage(1_800, 3 * GI)
        token = folder / "token"
        token.write_text("secret\n")
        port = served.server.server_address[1]
        self.agent = ElasticAgent(
            Controller("127.0.0.1", port, served.authority.certificate, token),
            Negotiation(PodName("team", "a"), BOUNDS),
            self.read,
            self.said.append,
            self.resized.append,
        )

    def read(self) -> Usage:
        if self.usage.memory < 0:
            raise OSError("no such file")
        return self.usage


def test_it_asks_with_its_token_and_returns_its_permit(served: Served, tmp_path: Path) -> None:
    agent = Agent(served, tmp_path)
    served.answers += [(200, PERMIT), (200, PERMIT)]
    agent.agent.once()
    agent.agent.once()
    (by, first), (_, second) = served.asks
    assert by == "Bearer secret"
    assert (first["protoVersion"], first["resources"]["mem"], first.get("permitToken", "")) == (2, 4 * GI, "")
    assert (second["permitToken"], second["computeUnit"]) == ("t", {"vCPUs": 250, "mem": GI})
    assert agent.said == [f'permitted: {{"cpu": 2000, "memory": {4 * GI}}}']


REFUSALS: dict[str, tuple[int, Any, str]] = {
    "a refusal": (404, {"error": "nobody"}, "refused (404): nobody"),
    "no JSON": (200, b"no", "the answer can't be read"),
    "JSON of something else": (400, b"[1]", "the answer can't be read"),
    "another leader": (503, {"error": "does not lead"}, "refused (503): does not lead"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_said_once_and_changes_nothing(name: str, served: Served, tmp_path: Path) -> None:
    status, body, words = REFUSALS[name]
    agent = Agent(served, tmp_path)
    served.answers += [(status, body)] * 2
    agent.agent.once()
    agent.agent.once()
    assert len(agent.said) == 1
    assert words in agent.said[0]
    assert agent.resized == []


def test_a_refused_unit_is_learned(served: Served, tmp_path: Path) -> None:
    agent = Agent(served, tmp_path)
    served.answers += [(400, {"error": "no multiple", "computeUnit": {"vCPUs": 300}}), (200, PERMIT)]
    agent.agent.once()
    agent.agent.once()
    assert served.asks[1][1]["resources"]["vCPUs"] == 2_100


def test_while_the_controller_is_away_it_decides_within_its_last_permit(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(served, tmp_path)
    served.answers += [(200, PERMIT), AWAY, AWAY, AWAY]
    agent.agent.once()
    agent.agent.once()
    assert agent.resized == []  # not for long yet
    monkeypatch.setattr(elastic, "AWAY_SECONDS", 0.0)
    agent.usage = Usage(8_000, GI)
    agent.agent.once()
    agent.usage = Usage(200, 30 * GI)
    agent.agent.once()
    assert agent.resized == [{"cpu": 2_000, "memory": 2 * GI}, {"cpu": 250, "memory": 4 * GI}]


def test_without_any_permit_it_decides_nothing(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic, "AWAY_SECONDS", 0.0)
    agent = Agent(served, tmp_path)
    served.answers += [AWAY]
    agent.agent.once()
    assert agent.resized == []


def test_a_controller_that_is_gone_is_away(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(served, tmp_path)
    served.answers += [(200, PERMIT)]
    agent.agent.once()
    served.server.server_close()
    monkeypatch.setattr(elastic, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(elastic, "TIMEOUT_SECONDS", 0.5)
    agent.agent.once()
    assert agent.resized == [{"cpu": 2_000, "memory": 4 * GI}]
    assert "does not answer" in agent.said[-1]


def test_a_use_that_cannot_be_read_asks_for_nothing(served: Served, tmp_path: Path) -> None:
    agent = Agent(served, tmp_path)
    agent.usage = Usage(0, -1)
    agent.agent.once()
    assert served.asks == []
    assert "can't be read" in agent.said[0]
