"""Measures the answers to filter on a large fleet: decoding, the desk, encoding; while observed changes arrive.

`inside` calls the extender in this process. `https` serves it on loopback as a replica does, beside a process that is
always busy, as the planner may be.
"""

import asyncio
import gc
import http.client
import json
import random
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from reconciler.controller.extender import SchedulerExtender
from reconciler.fleet.devices.device_lease import lease_name
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import Devices, GpuPool, NodeClassRef
from reconciler.model.quantity import Quantity
from reconciler.protocol.desk import Desk
from reconciler.protocol.extender import FilterRequest
from reconciler.serve.extender import LIMITS, extender_routes
from reconciler.serve.server import ListenAddress, Server
from reconciler.serve.tls import CertificatePair, TlsContext
from tests import builders
from tests.lab.certificates import Authority

GPUS, POOLS, CHANGES = 8, 5, 8  # GPUs of a node; pools; Leases that change between two questions
QUESTIONS, MIX_RENEWED, RENEWED_AT_ONCE = 2_000, 500, 20
HAS = {"cpu": "96", "memory": "1024Gi"}
ASKS = tuple({"cpu": cpu, "memory": f"{gib}Gi"} for cpu, gib in (("4", 16), ("8", 64), ("11500m", 100), ("16", 32)))
ASKS_OF = {"one": ASKS[:2], "two": ASKS[2:3], "board": ({"cpu": "88", "memory": "800Gi"},)}
ASKS_OF |= {"model": ({"cpu": "40", "memory": "400Gi"},), "four": ASKS[3:]}  # by claim, as pods of one template ask
WARM = 50  # questions of a process that has just started are not counted
CLAIMS = {"one": {"count": 1}, "two": {"count": 2, "policy": "contiguous"}, "board": {"count": 8}}
CLAIMS |= {"model": {"count": 4, "model": "model-1"}, "four": {"count": 4, "policy": "requireContiguous"}}


class Fleet:
    """A desk of a fleet of which some GPUs are lent, and what happens to it."""

    def __init__(self, nodes: int, draw: random.Random) -> None:
        self._draw, self.desk = draw, Desk()
        self.names = [f"node-{number:05}" for number in range(nodes)]
        self._lent: dict[str, Lease] = {}
        pools = [Declared("GpuPool", f"pool-{number}", _pool(number), ()) for number in range(POOLS)]
        for number, name in enumerate(self.names):
            self.desk.put_policy(_report(name, number))
            labels = {names.POOL: f"pool-{number % POOLS}"}
            self.desk.put_node(builders.node(name, gpus=GPUS, has=HAS, labels=labels, uid=f"uid-{name}"))
        for name, devices in CLAIMS.items():
            metadata = UnstructuredMetadata(name, "default")
            self.desk.put_policy(
                Unstructured("gpu.scheduling/v1", "GpuClaim", metadata, {"spec": {"devices": devices}})
            )
        for number in range(1_000):
            claim = list(CLAIMS)[number % len(CLAIMS)]
            annotations = Annotations(claim=claim)
            uid = f"waits-{number}"
            asks = draw.choice(ASKS_OF[claim])
            self.desk.put_pod(builders.pod(uid, asks=asks, annotations=annotations, namespace="default", uid=uid))
        self.desk.set_pools(pools)
        self.desk.is_read = True
        for _ in range(2 * nodes):
            self.change()
        self.desk.look_at_mix()

    def change(self) -> None:
        """A GPU is lent to a pod, or the pod ends."""
        node, device = self._draw.choice(self.names), self._draw.randrange(GPUS)
        lease = _lease(node, device)
        if self._lent.pop(lease.metadata.name, None) is not None:
            self.desk.drop_pod(builders.pod("holds", uid=lease.spec.holder_identity))
            self.desk.drop_lease(lease)
        else:
            self._lent[lease.metadata.name] = lease
            self.desk.put_lease(lease)
            uid = lease.spec.holder_identity
            self.desk.put_pod(
                builders.pod("holds", asks=self._draw.choice(ASKS), node_name=node, uid=uid, namespace="default")
            )

    def question(self) -> bytes:
        claim = self._draw.choice(list(CLAIMS))
        metadata = {"name": "asks", "namespace": "default", "uid": "asks", "annotations": {names.CLAIM: claim}}
        requests = {**self._draw.choice(ASKS_OF[claim]), "nvidia.com/gpu": "1"}
        container = {"name": "main", "image": "example.com/train:1", "resources": {"requests": requests}}
        pod = {"metadata": metadata, "spec": {"containers": [container]}}
        return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": self.names}).encode()


def _pool(number: int) -> GpuPool:
    devices = Devices(model=f"model-{number}", count=GPUS, memory=Quantity.parse("80Gi"))
    node_class = NodeClassRef(group="karpenter.example.com", kind="NodeClass", name="default")
    return GpuPool(mode="Enforce", allocation="agent", devices=devices, instance_types=[], node_class_ref=node_class)


def _report(name: str, number: int) -> Unstructured:
    """Half of the boards have one island, the others two."""
    devices = [
        {"id": at, "uuid": f"GPU-{name}-{at}", "island": f"nvlink-{at // 4 if number % 2 else 0}", "bandwidthGBps": 600}
        for at in range(GPUS)
    ]
    rest = {"spec": {}, "status": {"devices": devices}}
    return Unstructured("gpu.scheduling/v1", "GpuNodeStatus", UnstructuredMetadata(name), rest)


def _lease(node: str, device: int) -> Lease:
    annotations = Annotations(device=str(device), device_uuid=f"GPU-{node}-{device}")
    owner = (OwnerReference("Node", node, f"uid-{node}"),)
    metadata = Metadata(
        lease_name(node, device), names.LEASES_NAMESPACE, annotations=annotations, owner_references=owner
    )
    return Lease(metadata, LeaseSpec(f"pod-{node}-{device}"))


class _NoBinder:
    """The benchmark binds nothing."""


def inside(fleet: Fleet) -> dict[str, float]:
    extender = SchedulerExtender(fleet.desk, _NoBinder())  # type: ignore[arg-type]

    def answer(body: bytes) -> None:
        msgspec.json.encode(extender.filter(msgspec.json.decode(body, type=FilterRequest)))

    return _percentiles("inside", _asked(fleet, answer, lambda change: change()))


def https(fleet: Fleet) -> dict[str, float]:
    extender = SchedulerExtender(fleet.desk, _NoBinder())  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as folder, busy():
        authority = Authority(Path(folder))
        pair, own = authority.server("extender"), authority.client("gpu-scheduler")
        tls = TlsContext(authority.certificate.read_bytes())
        tls.load(CertificatePair(pair.certificate.read_bytes(), pair.key.read_bytes()))
        routes = extender_routes(extender, extender.bind)
        server = Server(ListenAddress("127.0.0.1", 0), routes, LIMITS, tls)
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.load_cert_chain(own.certificate, own.key)
        with _serving(server) as loop:
            connection = http.client.HTTPSConnection("127.0.0.1", server.address.port, context=context)

            def answer(body: bytes) -> None:
                connection.request("POST", "/filter", body)
                response = connection.getresponse()
                assert response.status == 200, response.read()
                response.read()

            times = _asked(fleet, answer, loop.call_soon_threadsafe)
            connection.close()
    return _percentiles("https", times)


def _asked(
    fleet: Fleet, answer: Callable[[bytes], None], pass_on: Callable[[Callable[[], object]], object]
) -> list[float]:
    """Milliseconds of each answer."""
    times = []
    for number in range(QUESTIONS):
        for _ in range(CHANGES):
            pass_on(fleet.change)
        if number % MIX_RENEWED == 0:
            pass_on(fleet.desk.look_at_mix)
        pass_on(lambda: fleet.desk.renew_answers(RENEWED_AT_ONCE))
        body = fleet.question()
        began = time.perf_counter()
        answer(body)
        if number >= WARM:
            times.append(1_000 * (time.perf_counter() - began))
    return times


def _percentiles(name: str, times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    places = {"p50": 0.5, "p99": 0.99}
    found = {f"{name}_{place}_ms": round(ordered[int(part * len(ordered))], 2) for place, part in places.items()}
    return {**found, f"{name}_slowest_ms": round(ordered[-1], 2)}


@contextmanager
def _serving(server: Server) -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()


@contextmanager
def busy() -> Iterator[None]:
    """A process as nice as the planner is."""
    program = "import os\nos.nice(10)\nwhile True: sum(range(10_000))"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            yield
        finally:
            process.kill()


def main(nodes: int, seed: int) -> dict[str, float | int]:
    fleet = Fleet(nodes, random.Random(seed))
    gc.collect()
    gc.freeze()
    began = time.perf_counter()
    fleet.desk.look_at_mix()
    renewed = round(1_000 * (time.perf_counter() - began), 1)
    return {"gpus": nodes * GPUS, "questions": QUESTIONS, "mix_renewed_ms": renewed, **inside(fleet), **https(fleet)}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
