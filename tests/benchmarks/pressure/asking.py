"""Measures the answers to asks: decoding, the desk and encoding inside one process, and over authenticated TLS.

`inside` calls the pure core. `server` serves the endpoint in a process of its own, as a replica does. `steady` asks it
at a fixed rate over kept connections, beside a process that is always busy, as the planner may be. `reconnecting` is
all agents at once: each opens a connection, with a handshake, and asks once. Clients are a process of their own.
"""

import asyncio
import gc
import json
import os
import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from reconciler.controller.agents import AgentAuthenticator, AgentDesk, LeaderTerm
from reconciler.controller.run import SWITCH_SECONDS
from reconciler.kube.leader import LeaderFence
from reconciler.kube.token_keys import TokenKeys
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.policy.scaling import Pressure, PressurePolicy
from reconciler.model.quantity import Percent, Quantity
from reconciler.protocol.agent_identity import AgentsAccount
from reconciler.protocol.asks import AskAnswer, AskMessage, Refusal, read_ask
from reconciler.protocol.leadership import Monotonic
from reconciler.protocol.permits import PermitKeys
from reconciler.protocol.pressure_desk import PressureDesk
from reconciler.serve.agents import LIMITS, agent_routes
from reconciler.serve.server import ListenAddress, Server
from reconciler.serve.tls import CertificatePair, TlsContext
from tests import builders
from tests.benchmarks.binding.answering import busy
from tests.lab.certificates import Authority
from tests.stages.agent_tokens import KeyServer, Signer, claims

AGENTS, PODS_OF_NODE = 5_000, 10
INSIDE = 50_000  # asks
RATE, SECONDS, CONNECTIONS = 1_000, 15, 500
WARM_SECONDS = 2
NODES = AGENTS // PODS_OF_NODE
GI = 2**30
NOW = Instant(1_000_000)


def pressure_desk() -> PressureDesk:
    """A fleet of elastic pods that has just been read."""
    desk = PressureDesk()
    desk.set_policies(policies())
    for number in range(NODES):
        has = {"cpu": "64", "memory": "512Gi"}
        desk.put_node(builders.node(f"node-{number}", has=has, labels={names.POOL: f"pool-{number % 5}"}))
    for number in range(AGENTS):
        desk.put_pod(elastic_pod(number))
    desk.keys, desk.is_read = PermitKeys((b"k" * 32,)), True
    return desk


def policies() -> list[Declared[PressurePolicy]]:
    resources = {
        "cpu": Pressure(system=Quantity.parse("2"), watermark=Percent.parse("85%")),
        "memory": Pressure(system=Quantity.parse("8Gi"), watermark=Percent.parse("85%")),
    }
    unit = {"cpu": Quantity.parse("250m"), "memory": Quantity.parse("1Gi")}
    policy = PressurePolicy(pool_names=["*"], resources=resources, compute_unit=unit)
    return [Declared("PressurePolicy", "watch", policy, ())]


def elastic_pod(number: int) -> Pod:
    built = builders.pod("x", asks={"cpu": "2", "memory": "4Gi"})
    return builders.pod(
        f"pod-{number}",
        containers=built.spec.containers,
        annotations=Annotations(elastic="cpu=250m..8,memory=1Gi..32Gi"),
        node_name=f"node-{number % NODES}",
        namespace="team",
        uid=f"uid-{number}",
        scheduler_name=names.GPU_SCHEDULER,
    )


def body(number: int, cpu_milli: int) -> bytes:
    message = {
        "protoVersion": 2,
        "pod": {"namespace": "team", "name": f"pod-{number}"},
        "computeUnit": {"vCPUs": 250, "mem": GI},
        "resources": {"vCPUs": cpu_milli, "mem": 4 * GI},
        "lastPermit": {"vCPUs": 2_000, "mem": 4 * GI},
        "metrics": {"loadAvg1M": 0.5, "loadAvg5M": 0.4, "memoryUsageBytes": 2 * GI},
    }
    return json.dumps(message).encode()


def inside() -> dict[str, float]:
    """Asks a second, by the time of the processor."""
    desk = pressure_desk()
    desk.begin_term(1)
    bodies = [body(number % AGENTS, 1_000 + 250 * (number // AGENTS % 8)) for number in range(INSIDE)]
    decoder, encoder = msgspec.json.Decoder(AskMessage), msgspec.json.Encoder()
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for each in bodies:
        ask = read_ask(decoder.decode(each))
        assert not isinstance(ask, Refusal)
        answer = desk.ask(ask, NOW)
        assert isinstance(answer, AskAnswer)
        encoder.encode(answer)
    return {"inside_asks_a_second": round(INSIDE / (time.process_time() - began))}


# --- The server, in a process of its own.


def serve(folder: Path) -> None:
    """Until its standard input ends."""
    sys.setswitchinterval(SWITCH_SECONDS)
    allow_files()
    term = LeaderFence(Monotonic(1), lambda: Monotonic(0))
    signer = Signer()
    authority = Authority(folder)
    pair = authority.server("agents")
    tls = TlsContext()
    tls.load(CertificatePair(pair.certificate.read_bytes(), pair.key.read_bytes()))
    leader = LeaderTerm(lambda: term, lambda: 1)
    authenticator = AgentAuthenticator(TokenKeys(KeyServer(signer)))
    desk = AgentDesk(pressure_desk(), authenticator, leader, AgentsAccount("gpu-agents", "agent"))
    desk.set_policies(policies())
    desk.take_keys(desk.desk.keys, term)
    tokens = [
        signer.token(claims(f"pod-{number}", f"uid-{number}", f"node-{number % NODES}")) for number in range(AGENTS)
    ]
    (folder / "tokens.json").write_text(json.dumps(tokens))
    limits = msgspec.structs.replace(LIMITS, of_one_client=LIMITS.connections, exchange_seconds=60.0)
    server = Server(ListenAddress("127.0.0.1", 0), agent_routes(desk), limits, tls)
    gc.collect()
    gc.freeze()
    print(json.dumps({"port": server.address.port, "authority": str(authority.certificate)}), flush=True)

    async def until_told() -> None:
        task = asyncio.create_task(server.serve())
        await asyncio.to_thread(sys.stdin.read)
        server.stop()
        await task

    asyncio.run(until_told())


def allow_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def served(folder: Path) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.benchmarks.pressure.asking", "serve", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        try:
            yield {**json.loads(process.stdout.readline()), "tokens": json.loads((folder / "tokens.json").read_text())}
        finally:
            process.stdin.close()
            process.wait(30)


# --- The clients.


class Agent:
    """A connection that asks for one pod."""

    def __init__(self, served_at: dict[str, Any], number: int) -> None:
        self._port, self._number, self._token = served_at["port"], number, served_at["tokens"][number]
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self, context: ssl.SSLContext) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=context)

    async def ask(self, cpu_milli: int) -> int:
        assert self._reader
        assert self._writer
        content = body(self._number, cpu_milli)
        head = f"POST /ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\nContent-Length: {len(content)}"
        self._writer.write(f"{head}\r\n\r\n".encode() + content)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await self._reader.readexactly(int(length.split(b":")[1]))
        return int(answer.split(b" ", 2)[1])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()


async def steady(served_at: dict[str, Any], rate: int) -> dict[str, float]:
    """Asks at a fixed rate: the time of an answer begins when its ask was due, also if the client is late."""
    context = ssl.create_default_context(cafile=served_at["authority"])
    agents = [Agent(served_at, number) for number in range(CONNECTIONS)]
    for agent in agents:
        await agent.connect(context)
    free: asyncio.Queue[Agent] = asyncio.Queue()
    for agent in agents:
        free.put_nowait(agent)
    times: list[float] = []
    statuses: list[int] = []

    async def one(due: float, number: int) -> None:
        agent = await free.get()
        statuses.append(await agent.ask(1_000 + 250 * (number % 8)))
        free.put_nowait(agent)
        if number >= WARM_SECONDS * rate:
            times.append(1_000 * (time.perf_counter() - due))

    began, tasks = time.perf_counter(), []
    for number in range(rate * (SECONDS + WARM_SECONDS)):
        due = began + number / rate
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(due, number)))
    await asyncio.gather(*tasks)
    seconds = time.perf_counter() - began
    for agent in agents:
        agent.close()
    assert set(statuses) == {200}, set(statuses)
    ordered = sorted(times)
    places = {f"p{part}": ordered[int(part / 100 * len(ordered))] for part in (50, 99)}
    figures = {f"tls_{name}_ms": round(each, 2) for name, each in places.items()}
    return {**figures, "tls_slowest_ms": round(ordered[-1], 2), "tls_asks_a_second": round(len(statuses) / seconds)}


async def reconnecting(served_at: dict[str, Any]) -> dict[str, float]:
    context = ssl.create_default_context(cafile=served_at["authority"])
    agents = [Agent(served_at, number) for number in range(AGENTS)]

    async def one(agent: Agent) -> int:
        await agent.connect(context)
        return await agent.ask(2_000)

    began = time.perf_counter()
    statuses = await asyncio.gather(*(one(each) for each in agents))
    seconds = time.perf_counter() - began
    for agent in agents:
        agent.close()
    assert set(statuses) == {200}, set(statuses)
    return {"agents": AGENTS, "reconnected_seconds": round(seconds, 2)}


def over_tls(rate: int) -> dict[str, float]:
    allow_files()
    gc.disable()  # the pauses of the client are not those of the server
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as served_at:
        with busy():
            found = asyncio.run(steady(served_at, rate))
        return {**found, **asyncio.run(reconnecting(served_at))}


def main(rate: int) -> dict[str, float]:
    return {**inside(), **over_tls(rate)}


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]))
    else:
        print(json.dumps(main(int(sys.argv[1]))))
    sys.stdout.flush()
    os._exit(0)
