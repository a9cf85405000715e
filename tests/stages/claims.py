"""A lab whose second scheduler asks a replica's extender: nodes with GPUs and their reports, claims, and their pods."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from reconciler.model import names
from reconciler.schema.scheduler import ExtenderFiles, scheduler_configuration
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.lab.ports import free_ports
from tests.lab.proxy.door import Proxy
from tests.stages.controlled import Site
from tests.stages.definitions import defined
from tests.stages.replica import Replica

POOL = "a100"
SHAPE = fleet.Shape(pool="", labels={names.POOL: POOL})  # nodes without Karpenter
GROUP = "/apis/gpu.scheduling/v1"


class ClaimSite:
    """Policies, one pool with allocation: agent, and the extender's place."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.admin = lab, lab.admin
        self.site = Site(lab, folder)
        self.site.write(POOL, allocation="agent")
        (self.port,) = free_ports(1)
        self.server, self.client = lab.site.authority.server("extender"), lab.site.authority.client("gpu-scheduler")

    @contextmanager
    def running(self, through: Proxy | None = None) -> Iterator[Replica]:
        """A leading replica with the extender, and the scheduler that asks it."""
        own = self.extender_arguments(self.port)
        with self.site.behind(through, *own) if through else self.site.replica(*own) as replica:
            replica.wait_until_leading()
            self.until(lambda: replica.get("/readyz")[0] == 200)  # the Service leads only to replicas that are ready
            self.start_scheduler()
            try:
                yield replica
            finally:
                self.lab.stop_part(names.GPU_SCHEDULER)

    @contextmanager
    def with_standby(self) -> Iterator[None]:
        """Two replicas with the extender, and the scheduler, whose connections lead to one and the other in turn."""
        (second,) = free_ports(1)
        with self.running(), self.site.replica(*self.extender_arguments(second)) as standby:
            self.until(lambda: standby.get("/readyz")[0] == 200)
            self.lab.stop_part(names.GPU_SCHEDULER)
            with RoundRobin([self.port, second]) as service:
                self.start_scheduler(service.port)
                yield

    def extender_arguments(self, port: int) -> list[str]:
        files = {"tls-certificate": self.server.certificate, "tls-key": self.server.key}
        files["client-authority"] = self.lab.site.authority.certificate
        return [f"--extender=127.0.0.1:{port}", *(f"--{name}={path}" for name, path in files.items())]

    def start_scheduler(self, port: int | None = None) -> None:
        authority = self.lab.site.authority.certificate
        files = ExtenderFiles(str(authority), str(self.client.certificate), str(self.client.key))
        url = f"https://127.0.0.1:{port or self.port}"
        self.lab.add_scheduler(names.GPU_SCHEDULER, scheduler_configuration(url, files))

    def nodes(self, count: int, devices: list[Mapping[str, Any]] | None = None) -> None:
        """Ready nodes of the pool, whose agents report their GPUs: by default eight of one island."""
        self.lab.load(fleet.nodes(count, SHAPE))
        for number in range(count):
            name = f"gpu-{number}"
            self.report(name, devices or [{"island": "nvlink-0", "bandwidthGBps": 600}] * 8)
        for number in range(count):
            self.admin.wait_for("nodes", f"gpu-{number}", fleet.is_ready)

    def report(self, node: str, devices: list[Mapping[str, Any]]) -> None:
        head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuNodeStatus", "metadata": {"name": node}, "spec": {}}
        reported = [
            {"id": at, "uuid": f"GPU-{node}-{at}", "health": "Healthy", **each} for at, each in enumerate(devices)
        ]
        path = f"{GROUP}/gpunodestatuses"
        self.admin.request("POST", path, head)
        body = {"status": {"devices": reported}}
        answer = self.admin.request("PATCH", f"{path}/{node}/status", body, "application/merge-patch+json")
        assert answer.code == 200, answer.body

    def claim(self, name: str, namespace: str = "default", **devices: Any) -> None:
        head = {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuClaim",
            "metadata": {"name": name, "namespace": namespace},
        }
        answer = self.admin.request(
            "POST", f"{GROUP}/namespaces/{namespace}/gpuclaims", head | {"spec": {"devices": devices}}
        )
        assert answer.code == 201, answer.body

    def pod(self, name: str, claim: str, gpus: int, **spec: Any) -> Manifest:
        pod = fleet.Pod(name, gpus=gpus, annotations={names.CLAIM: claim})
        return self.admin.create(pod.with_spec(schedulerName=names.GPU_SCHEDULER, **spec).manifest())

    def pods(self, wanted: Sequence[tuple[str, str, int]]) -> list[str]:
        """Many pods at once: name, claim and GPUs of each."""
        made = [
            fleet.Pod(name, gpus=gpus, annotations={names.CLAIM: claim})
            .with_spec(schedulerName=names.GPU_SCHEDULER)
            .manifest()
            for name, claim, gpus in wanted
        ]
        self.lab.load(made)
        return [name for name, _, _ in wanted]

    def until_bound(self, wanted: Sequence[str], within: float = 60) -> list[Manifest]:
        """The pods, once all of them have a node."""
        deadline = time.monotonic() + within
        while True:
            pods = {each["metadata"]["name"]: each for each in self.admin.list("pods", "default")}
            waiting = [name for name in wanted if not pods[name]["spec"].get("nodeName")]
            if not waiting:
                return [pods[name] for name in wanted]
            assert time.monotonic() < deadline, f"{len(waiting)} wait: {pods[waiting[0]]['status']}"
            time.sleep(0.3)

    def until(self, is_so: Callable[[], bool], within: float = 120) -> None:
        deadline = time.monotonic() + within
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def leases(self) -> dict[str, str]:
        """Holders by name."""
        found = self.admin.list("leases", names.LEASES_NAMESPACE)
        return {each["metadata"]["name"]: each["spec"]["holderIdentity"] for each in found}


@contextmanager
def claim_site(lab: Lab, folder: Path) -> Iterator[ClaimSite]:
    """A clean lab with our kinds, the default scheduler and kubelets."""
    with defined(lab):
        lab.start("scheduler", "kwok")
        site = ClaimSite(lab, folder)
        try:
            yield site
        finally:
            site.site.clean()


# --- A Service in front of several replicas.


class RoundRobin:
    """Passes each connection on to the next address, while in a `with` block. Owner of its threads."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._next = itertools.cycle(ports)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        """A replica that is gone refuses: the client is told by the end of its connection."""
        try:
            server = socket.create_connection(("127.0.0.1", next(self._next)), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        self._open += [client, server]
        for one, other in ((client, server), (server, client)):
            threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while received := one.recv(2**16):
            other.sendall(received)
    for each in (one, other):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
