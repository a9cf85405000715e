"""When a replica answers agents: whose tokens, in which terms, and with which permit keys."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from reconciler.controller.agents import AgentAuthenticator, AgentDesk, LeaderTerm, PermitKeyKeeper
from reconciler.controller.desk_feed import DeskFeed, DeskLoop
from reconciler.controller.publishers import Log
from reconciler.kube.api_server import ApiRequest, ApiResponse, Unreachable
from reconciler.kube.leader import LeaderFence
from reconciler.kube.secrets import Secrets
from reconciler.kube.token_keys import TokenKeys
from reconciler.kube.watch.changes import Listed
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.ports import Stale, Unavailable
from reconciler.protocol.agent_identity import AgentIdentity, AgentsAccount
from reconciler.protocol.asks import AskAnswer, AskMessage, PodName, Refusal
from reconciler.protocol.desk import Desk
from reconciler.protocol.leadership import Monotonic
from reconciler.protocol.permits import ROTATION_MS, PermitKeys
from reconciler.protocol.pressure_desk import PressureDesk
from tests.stages.agent_tokens import KeyServer, Signer, claims
from tests.unit.protocol.pressure_stage import elastic, node, policy

SIGNER, NEWER = Signer("key-1", is_elliptic=True), Signer("key-2", is_elliptic=True)
OWN = AgentIdentity(AgentsAccount("team", "default"), PodName("team", "a"), "", "n0")
NOW = Instant(10 * ROTATION_MS)


def fence() -> LeaderFence:
    return LeaderFence(Monotonic(1), lambda: Monotonic(0))


# --- Whose tokens.


def bearer(signer: Signer = SIGNER) -> str:
    return f"Bearer {signer.token(claims())}"


def test_keys_are_read_at_an_unknown_key_and_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    server, now = KeyServer(SIGNER), [100.0]
    monkeypatch.setattr("reconciler.controller.agents.time.monotonic", lambda: now[0])
    authenticator = AgentAuthenticator(TokenKeys(server))

    async def story() -> None:
        found = await asyncio.gather(*(authenticator.authenticate(bearer()) for _ in range(50)))
        assert all(isinstance(each, AgentIdentity) for each in found)
        assert server.reads == 1
        server.signers = (SIGNER, NEWER)
        for _ in range(20):
            assert getattr(await authenticator.authenticate(bearer(NEWER)), "status", 200) == 401
        assert server.reads == 1
        now[0] += 1
        assert isinstance(await authenticator.authenticate(bearer(NEWER)), AgentIdentity)
        assert server.reads == 2

    asyncio.run(story())


def test_known_keys_serve_while_the_api_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    server, now = KeyServer(SIGNER), [100.0]
    monkeypatch.setattr("reconciler.controller.agents.time.monotonic", lambda: now[0])
    authenticator = AgentAuthenticator(TokenKeys(server))

    async def story() -> None:
        await authenticator.authenticate(bearer())
        server.is_away, now[0] = True, now[0] + 1
        for _ in range(3):
            found = await authenticator.authenticate(bearer(NEWER))
            assert isinstance(found, Refusal)
            assert (found.status, found.retry_seconds) == (503, 5)
        assert server.reads == 2
        assert isinstance(await authenticator.authenticate(bearer()), AgentIdentity)

    asyncio.run(story())


# --- Terms.


class Replica:
    """The desk of a replica that has read everything, but for its keys."""

    def __init__(self) -> None:
        self.term: LeaderFence | None = None
        authenticator = AgentAuthenticator(TokenKeys(KeyServer(SIGNER)))
        self.desk = AgentDesk(PressureDesk(), authenticator, LeaderTerm(lambda: self.term, lambda: 3), None)
        self.desk.desk.put_node(node("n0"))
        self.desk.desk.put_pod(elastic("a", "n0", uid="uid-a"))

    def ask(self) -> AskAnswer | Refusal:
        identity = msgspec.structs.replace(OWN, pod_uid="uid-a")
        return self.desk.ask(identity, AskMessage(2, PodName("team", "a"), {"vCPUs": 4_000}))

    def status(self) -> int:
        answer = self.ask()
        return answer.status if isinstance(answer, Refusal) else 200


def test_nothing_is_permitted_before_everything_has_been_read() -> None:
    replica, term = Replica(), fence()
    replica.desk.take_keys(PermitKeys((b"k",)), term)
    assert replica.status() == 503
    replica.term = term
    assert replica.status() == 503
    replica.desk.set_policies((policy(),))
    assert replica.status() == 503
    replica.desk.desk.is_read = True
    assert replica.status() == 200
    assert replica.desk.desk.state().epoch == 3


def test_each_term_begins_with_keys_that_were_read_in_it_and_with_silent_agents() -> None:
    replica, first, second = Replica(), fence(), fence()
    replica.desk.desk.is_read, replica.term = True, first
    replica.desk.set_policies((policy(),))
    replica.desk.take_keys(PermitKeys((b"k",)), first)
    assert replica.status() == 200
    replica.term = second  # lost and won again between two looks
    assert replica.status() == 503
    assert replica.desk.desk.state().epoch is None
    replica.desk.take_keys(PermitKeys((b"k",)), second)
    ledger = replica.desk.desk.ledger("n0")
    assert ledger is not None
    assert [pod.is_silent for pod in ledger.elastic_pods] == [True]
    assert replica.status() == 200
    second.end()
    replica.term = None
    assert replica.status() == 503
    assert replica.desk.figures() == {}


def kind(name: str, field: str) -> Any:
    return next(each for each in RESOURCE_KINDS if (each.kind, each.field) == (name, field))


def test_one_feed_feeds_both_desks_and_each_knows_what_it_needs() -> None:
    gpus, pressure = Desk(), PressureDesk()
    pressure.set_policies((policy(),))
    feed = DeskFeed(gpus, pressure)
    feed.take([Listed(kind("Node", "nodes"), (node("n0"),), "1", NOW)])
    read = [pressure.is_read]
    feed.take([Listed(kind("Pod", "pods"), (elastic("a", "n0"),), "1", NOW)])
    assert [*read, pressure.is_read] == [False, True]
    assert gpus.why_unready
    assert pressure.node_of(PodName("team", "a")) == "n0"
    assert gpus.node("n0") is not None
    feed.take([Listed(kind("Pod", "pods"), (), "2", NOW)])
    assert pressure.node_of(PodName("team", "a")) == ""


def test_policies_and_changes_reach_the_pressure_desk_on_the_loop() -> None:
    replica, term = Replica(), fence()
    replica.term = term
    place = DeskLoop(None, replica.desk)

    async def story() -> None:
        place.start(lambda: None)
        replica.desk.take_keys(PermitKeys((b"k",)), term)
        await asyncio.to_thread(place.set_policies, Desired("r", "base", pressures=(policy(),)))
        nodes = Listed(kind("Node", "nodes"), (node("n0"),), "1", NOW)
        pods = Listed(kind("Pod", "pods"), (elastic("a", "n0", uid="uid-a"),), "1", NOW)
        await asyncio.to_thread(place.pass_on, [nodes, pods])
        await asyncio.sleep(0)
        assert replica.desk.desk.state().epoch == 3
        replica.term = None
        await asyncio.to_thread(place.renew_term)
        await asyncio.sleep(0)
        assert replica.desk.desk.state().epoch is None

    asyncio.run(story())


# --- Permit keys.


class SecretServer:
    """An API server with one Secret."""

    def __init__(self) -> None:
        self.secret: dict[str, Any] | None = None
        self.writes: list[str] = []
        self.is_away = False

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "") -> ApiResponse:
        assert path == f"/api/v1/namespaces/gpu-system/secrets/{names.PERMIT_KEYS}"
        if self.is_away:
            raise Unreachable("no route", "wait")
        return ApiResponse(404, b"{}") if self.secret is None else ApiResponse(200, json.dumps(self.secret).encode())

    def send(self, request: ApiRequest) -> ApiResponse:
        body = json.loads(request.body or b"")
        version = body["metadata"].get("resourceVersion")
        self.writes.append(request.method)
        if version != (self.secret["metadata"]["resourceVersion"] if self.secret else None):
            return ApiResponse(409, b"{}")
        body["metadata"]["resourceVersion"] = f"v{len(self.writes)}"
        self.secret = body
        return ApiResponse(200, b"{}")


class Keeping:
    def __init__(self, server: SecretServer) -> None:
        self.now, self.term = NOW, None
        self.handed: list[tuple[PermitKeys, LeaderFence]] = []
        stored = Secrets(server, "gpu-system", "x has")
        self.keeper = PermitKeyKeeper(stored, lambda: self.term, Log("text"), lambda: self.now)
        self.keeper._hand = lambda keys, term: self.handed.append((keys, term))  # noqa: SLF001

    term: LeaderFence | None

    def step(self) -> tuple[bytes, ...]:
        self.keeper.step()
        return self.handed[-1][0].keys


def test_the_leader_makes_a_key_and_later_leaders_read_it() -> None:
    server = SecretServer()
    standby, leader = Keeping(server), Keeping(server)
    standby.keeper.step()
    assert (server.writes, standby.handed) == ([], [])
    leader.term = fence()
    (key,) = leader.step()
    assert len(key) == 32
    assert leader.step() == (key,)
    assert (server.writes, len(leader.handed)) == (["POST"], 1)
    leader.term = fence()
    leader.step()
    assert len(leader.handed) == 2  # keys are handed over in each term
    standby.term = fence()
    assert standby.step() == (key,)
    assert server.writes == ["POST"]


def test_keys_are_rotated_weekly_and_one_older_key_is_kept() -> None:
    keeping = Keeping(SecretServer())
    keeping.term = fence()
    keys = [keeping.step()[0]]
    for _ in range(3):
        keeping.now = Instant(keeping.now + ROTATION_MS - 1)
        assert keeping.step()[0] == keys[0]
        keeping.now = Instant(keeping.now + 1)
        found = keeping.step()
        assert found[1:] == (keys[0],)
        keys.insert(0, found[0])
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'[{"key": "", "made": 6048000000}]', b'[{"key": "AAAA"}]', b"1"]
)
def test_a_damaged_secret_is_replaced_and_a_short_key_never_signs(content: bytes) -> None:
    server = SecretServer()
    data = {"keys.json": base64.b64encode(content).decode()}
    server.secret = {"metadata": {"resourceVersion": "v0"}, "data": data}
    keeping = Keeping(server)
    keeping.term = fence()
    (key,) = keeping.step()
    assert len(key) == 32
    assert server.writes == ["PUT"]


def test_a_key_of_the_far_future_is_replaced() -> None:
    keeping = Keeping(SecretServer())
    keeping.term = fence()
    (first,) = keeping.step()
    keeping.now = Instant(NOW - 2 * ROTATION_MS)
    assert keeping.step()[1:] == (first,)


class LateServer(SecretServer):
    """Another leader makes a key after this one has read that there is none."""

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "") -> ApiResponse:
        answer = super().get(path, query)
        if self.secret is None:
            self.secret = {"metadata": {"resourceVersion": "v-other"}, "data": {}}
        return answer


def test_of_two_leaders_that_make_a_key_one_wins() -> None:
    keeping = Keeping(LateServer())
    keeping.term = fence()
    with pytest.raises(Stale):
        keeping.keeper.step()
    assert keeping.handed == []
    keeping.keeper.step()
    assert len(keeping.handed) == 1


def test_a_secret_that_cannot_be_read_is_trouble() -> None:
    server = SecretServer()
    keeping = Keeping(server)
    keeping.term, server.is_away = fence(), True
    with pytest.raises(Unavailable, match="cannot read the Secret reconciler-permit-keys"):
        keeping.keeper.step()
