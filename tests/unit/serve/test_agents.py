"""The endpoints of agents: who is answered, and which bodies are refused; over HTTP on loopback."""

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from reconciler.controller.agents import AgentAuthenticator, AgentDesk, LeaderTerm
from reconciler.kube.leader import LeaderFence, monotonic_ms
from reconciler.kube.token_keys import TokenKeys
from reconciler.protocol.agent_identity import AgentsAccount
from reconciler.protocol.leadership import Monotonic
from reconciler.protocol.permits import PermitKeys
from reconciler.protocol.pressure_desk import PressureDesk
from reconciler.protocol.pressure_state import LedgerDump
from reconciler.serve.agent_metrics import AgentMetrics, PressureMetrics
from reconciler.serve.agents import LARGEST_BODY, agent_routes
from reconciler.serve.server import ConnectionLimits, ListenAddress, Server
from tests.stages.agent_tokens import KeyServer, Signer, claims
from tests.unit.protocol.pressure_stage import elastic, node, policy

SIGNER, STRANGER = Signer(), Signer()
LIMITS = ConnectionLimits(connections=40, of_one_client=40, exchange_seconds=5.0, idle_seconds=1)
AGENTS = AgentsAccount("gpu-agents", "reconciler-agent")
GI = 2**30
ASK = {"protoVersion": 2, "pod": {"namespace": "team", "name": "a"}, "resources": {"vCPUs": 4_000, "mem": 8 * GI}}


class World:
    """A replica that leads, with two elastic pods on two nodes."""

    def __init__(self) -> None:
        self.keys = KeyServer(SIGNER)
        self.term: LeaderFence | None = LeaderFence(Monotonic(monotonic_ms() + 600_000))
        pods = (elastic("a", "n0"), elastic("b", "n1"), elastic("c", "n0"))
        self.uids = {pod.metadata.name: pod.metadata.uid for pod in pods}
        leader = LeaderTerm(lambda: self.term, lambda: 7)
        self.desk = AgentDesk(PressureDesk(), AgentAuthenticator(TokenKeys(self.keys)), leader, AGENTS)
        for name in ("n0", "n1"):
            self.desk.desk.put_node(node(name))
        for pod in pods:
            self.desk.desk.put_pod(pod)
        self.desk.desk.is_read = True
        self.desk.set_policies((policy(),))
        self.desk.take_keys(PermitKeys((b"k" * 32,)), self.term)
        self.registry = CollectorRegistry()
        self.address = ListenAddress("127.0.0.1", 0)

    def token(self, pod: str = "a", **fields: Any) -> str:
        return SIGNER.token(claims(pod, fields.pop("uid", self.uids.get(pod, "uid")), **fields))

    def agent(self, node_name: str = "n0") -> str:
        return self.token("agent-0", node=node_name, namespace=AGENTS.namespace, account=AGENTS.name)

    def send(self, body: Any, token: str | None = None, method: str = "POST", path: str = "/ask") -> "Sent":
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.address.host, self.address.port, timeout=10)
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        sent = Sent(response.status, response.read(), dict(response.getheaders()))
        connection.close()
        return sent


class Sent:
    def __init__(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.status, self.headers, self.text = status, {key.lower(): each for key, each in headers.items()}, body
        self.content: Any = json.loads(body) if "json" in self.headers.get("content-type", "") else None


@pytest.fixture
def world() -> Iterator[World]:
    with serving(World()) as found:
        yield found


@contextlib.contextmanager
def serving(world: World) -> Iterator[World]:
    PressureMetrics(world.desk.figures, world.registry)
    server = Server(ListenAddress("127.0.0.1", 0), agent_routes(world.desk, AgentMetrics(world.registry)), LIMITS)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    world.address = server.address
    try:
        yield world
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()


def test_an_agent_gets_a_permit_for_its_own_pod(world: World) -> None:
    sent = world.send(ASK, world.token())
    assert sent.status == 200
    assert sent.content["permit"] == {"vCPUs": 4_000, "mem": 8 * GI}
    assert sent.content["computeUnit"] == {"vCPUs": 250, "mem": GI}
    assert sent.content["permitToken"]
    assert world.keys.reads == 1


def test_the_agent_of_a_node_asks_for_all_pods_of_its_node(world: World) -> None:
    for name, status in (("a", 200), ("c", 200), ("b", 403), ("nobody", 404)):
        body = {**ASK, "pod": {"namespace": "team", "name": name}}
        assert world.send(body, world.agent("n0")).status == status, name


def forged(world: World) -> dict[str, str | None]:
    own = world.token()
    head, body, signature = own.split(".")
    other = SIGNER.token(claims("b", world.uids["b"])).split(".")[1]
    return {
        "no token": None,
        "an empty token": "",
        "no web token": "opaque",
        "the key of a stranger": STRANGER.token(claims("a", world.uids["a"])),
        "no signature": f"{head}.{body}.",
        "the claims of another token": f"{head}.{other}.{signature}",
        "no algorithm": SIGNER.token(claims("a", world.uids["a"]), {"alg": "none"}),
        "a symmetric algorithm": SIGNER.token(claims("a", world.uids["a"]), {"alg": "HS256"}),
        "an unknown key": SIGNER.token(claims("a", world.uids["a"]), {"kid": "key-9"}),
        "another audience": world.token(aud=["https://kubernetes.default.svc"]),
        "an expired token": world.token(exp=1),
        "a token of tomorrow": world.token(nbf=2**40),
    }


def test_a_forged_token_gets_nothing(world: World) -> None:
    for name, token in forged(world).items():
        sent = world.send(ASK, token)
        assert sent.status == 401, name
        assert sent.headers["www-authenticate"] == "Bearer"
        assert 20 < len(sent.content["error"]) < 200
        assert sent.content.keys() == {"error"}
    ledger = world.desk.desk.ledger("n0")
    assert ledger is not None
    assert {pod.is_silent for pod in ledger.elastic_pods} == {True}


def test_the_token_of_another_pod_is_forbidden(world: World) -> None:
    for token in (world.token("b", node="n1"), world.token("c"), world.token("agent-0", account="reconciler-agent")):
        sent = world.send(ASK, token)
        assert sent.status == 403
        assert "Pod/team/a" in sent.content["error"]


def test_the_token_of_an_earlier_pod_of_the_same_name_is_refused(world: World) -> None:
    sent = world.send(ASK, world.token(uid="uid-before"))
    assert (sent.status, "another pod of the same name" in sent.content["error"]) == (409, True)


BODIES: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "no ask"),
    "no text": (b"\xff\xfe", "no ask"),
    "no JSON": (b"{", "no ask"),
    "brackets": (b"[" * 60_000, "no ask"),
    "a list": ([], "no ask"),
    "no fields": ({}, "protoVersion"),
    "no pod": ({key: each for key, each in ASK.items() if key != "pod"}, "`pod`"),
    "a version as a text": ({**ASK, "protoVersion": "2"}, "$.protoVersion"),
    "a version that is true": ({**ASK, "protoVersion": True}, "$.protoVersion"),
    "an old version": ({**ASK, "protoVersion": 0}, "protoVersion 0"),
    "a new version": ({**ASK, "protoVersion": 3}, "protoVersion 3"),
    "a version beyond all numbers": ({**ASK, "protoVersion": 10**400}, "$.protoVersion"),
    "a negative version": ({**ASK, "protoVersion": -1}, "$.protoVersion"),
    "a version of many digits": (json.dumps(ASK).replace("2", "9" * 6_000, 1).encode(), "no ask"),
    "an amount of many digits": (json.dumps(ASK).replace("4000", "9" * 6_000, 1).encode(), "no ask"),
    "a load of many digits": (
        json.dumps({**ASK, "metrics": {"loadAvg1M": 123}}).replace("123", "9" * 6_000).encode(),
        "",
    ),
    "a pod as a text": ({**ASK, "pod": "team/a"}, "$.pod"),
    "a name as a number": ({**ASK, "pod": {"namespace": "team", "name": 1}}, "$.pod.name"),
    "a long name": ({**ASK, "pod": {"namespace": "team", "name": "a" * 60_000}}, "pod.namespace or pod.name"),
    "a long namespace": ({**ASK, "pod": {"namespace": "a" * 64, "name": "a"}}, "pod.namespace or pod.name"),
    "resources as a list": ({**ASK, "resources": []}, "$.resources"),
    "a fraction": ({**ASK, "resources": {"vCPUs": 0.5}}, "$.resources"),
    "a negative amount": ({**ASK, "resources": {"vCPUs": -250}}, "resources.vCPUs"),
    "a huge amount": ({**ASK, "resources": {"mem": 2**62}}, "resources.mem"),
    "many resources": ({**ASK, "resources": {f"r{n}": 1 for n in range(5_000)}}, "5000 resources"),
    "a unit as a number": ({**ASK, "computeUnit": 250}, "$.computeUnit"),
    "a token as a list": ({**ASK, "permitToken": []}, "$.permitToken"),
    "metrics as a list": ({**ASK, "metrics": []}, "$.metrics"),
    "a load as a text": ({**ASK, "metrics": {"loadAvg1M": "1"}}, "metrics.loadAvg1M"),
    "a load that is no number": (b'{"protoVersion": NaN}', "no ask"),
}


def test_hostile_bodies_change_nothing_and_name_the_field(world: World) -> None:
    before = msgspec.json.encode(world.desk.desk.state())
    for name, (body, part) in BODIES.items():
        sent = world.send(body, world.token())
        assert sent.status == 400, name
        assert part in sent.content["error"], name
        assert len(sent.content["error"]) < 400
    assert msgspec.json.encode(world.desk.desk.state()) == before


def test_a_body_that_is_too_large_is_refused(world: World) -> None:
    body = json.dumps(ASK).encode()
    assert world.send(body + b" " * (LARGEST_BODY - len(body)), world.token()).status == 200
    sent = world.send(body + b" " * (LARGEST_BODY + 1 - len(body)), world.token())
    assert (sent.status, "65536 bytes" in sent.content["error"]) == (413, True)


def test_an_ask_off_the_compute_unit_says_the_unit(world: World) -> None:
    assert world.send(ASK, world.token()).status == 200
    sent = world.send({**ASK, "resources": {"vCPUs": 4_001}}, world.token())
    assert sent.status == 400
    assert sent.content["computeUnit"] == {"vCPUs": 250, "mem": GI}


def test_a_replica_that_does_not_lead_refuses_and_says_when_to_ask_again(world: World) -> None:
    assert world.send(ASK, world.token()).status == 200
    world.term = None
    for path, method, token in (("/ask", "POST", world.token()), ("/debug/state", "GET", world.agent())):
        sent = world.send(ASK, token, method, path)
        assert (sent.status, sent.headers["retry-after"]) == (503, "5")
    world.term = LeaderFence(Monotonic(monotonic_ms() + 600_000))
    sent = world.send(ASK, world.token())
    assert (sent.status, "has begun to lead" in sent.content["error"]) == (503, True)


def test_the_state_is_for_the_account_of_the_agents_only(world: World) -> None:
    assert world.send(ASK, world.token()).status == 200
    sent = world.send(b"", world.agent(), "GET", "/debug/state")
    assert sent.status == 200
    assert msgspec.json.decode(sent.text, type=LedgerDump) == world.desk.desk.state()
    assert [each["node"] for each in sent.content["nodes"]] == ["n0", "n1"]
    assert sent.content["epoch"] == 7
    for token, status in ((world.token(), 403), (None, 401)):
        assert world.send(b"", token, "GET", "/debug/state").status == status


def test_other_paths_and_methods_are_refused(world: World) -> None:
    for method, path, status in (("GET", "/ask", 405), ("POST", "/debug/state", 405), ("POST", "/", 404)):
        assert world.send(ASK, world.token(), method, path).status == status


def test_asks_are_counted_by_outcome_and_pressure_by_pool(world: World) -> None:
    for body, token in ((ASK, world.token()), ({}, world.token()), (ASK, None), (ASK, world.token("b"))):
        world.send(body, token)
    text = generate_latest(world.registry).decode()
    for status in (200, 400, 401, 403):
        assert f'reconciler_asks_total{{status="{status}"}} 1.0' in text
    assert "reconciler_ask_duration_seconds_count 4.0" in text
    # a: 4 by its permit; b and c are silent, and may use 8 each of which they have 2.
    assert 'reconciler_pressure_reserved{pool="cpus",resource="cpu"} 20000.0' in text
    assert 'reconciler_pressure_buffer{pool="cpus",resource="cpu"} 12000.0' in text
    assert 'reconciler_pressure_left{pool="cpus",resource="memory"} 0.0' in text
    world.term = None
    assert 'pool="cpus"' not in generate_latest(world.registry).decode()
