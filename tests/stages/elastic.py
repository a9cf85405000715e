"""Elastic pods on the lab, and their agents: real tokens of the API server, and asks over TLS to a replica."""

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from reconciler.model import names
from reconciler.protocol.agent_identity import AUDIENCE
from reconciler.protocol.certificates import service_names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.identities import AGENT, NAMESPACE
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.lab.ports import free_ports
from tests.stages.controlled import Site, taken_away
from tests.stages.definitions import defined
from tests.stages.replica import Replica
from tests.stages.webhook import shipped

POOL = "a100"
SHAPE = fleet.Shape(pool="", labels={names.POOL: POOL})  # nodes without Karpenter
FOLDER = REPOSITORY / "deploy" / "pressure"
ACCOUNT = AGENT.removeprefix("system:serviceaccount:").replace(":", "/")
GI = 2**30
POLICY = {
    "poolNames": [POOL],
    "resources": {"cpu": {"system": "1", "watermark": "80%"}, "memory": {"system": "1Gi", "watermark": "80%"}},
    "computeUnit": {"cpu": "250m", "memory": "1Gi"},
}
BOUNDS = "cpu=250m..8,memory=1Gi..32Gi"

Answer = tuple[int, dict[str, Any]]


class ElasticSite:
    """Nodes of one pool with a PressurePolicy, and the place where a replica answers agents."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.admin = lab, lab.admin
        self.rights = [*shipped("rbac.yaml"), *shipped("rbac.yaml", FOLDER)]
        self.site = Site(lab, folder)
        for each in self.rights:
            lab.admin.apply(each)
        self.site.write(POOL)
        head = {"apiVersion": "gpu.scheduling/v1", "kind": "PressurePolicy", "metadata": {"name": "watch"}}
        self.site.put("watch.yaml", yaml.safe_dump({**head, "spec": POLICY}))
        self.port, self.second_port = free_ports(2)

    def clean(self) -> None:
        taken_away(self.admin, self.rights)
        for name in (names.WEBHOOK_CERTIFICATES, names.PERMIT_KEYS):
            self.admin.delete("secrets", name, NAMESPACE)
        self.site.clean()

    def nodes(self, count: int) -> None:
        self.lab.load(fleet.nodes(count, SHAPE))
        for number in range(count):
            self.admin.wait_for("nodes", f"gpu-{number}", fleet.is_ready)

    def pod(self, name: str, node: str, cpu: str = "1", memory: str = "2Gi", resize: str = "") -> Manifest:
        """An elastic pod that is bound already. `resize`: what the kubelet makes of a resize; by default, nothing."""
        pod = fleet.Pod(name, cpu=cpu, memory=memory, annotations={names.ELASTIC: BOUNDS}).on(node)
        pod = pod.resizing(resize) if resize else pod
        return self.admin.create(pod.with_spec(schedulerName=names.GPU_SCHEDULER).manifest())

    @contextmanager
    def answering(self) -> Iterator[Replica]:
        with self.site.replica(*self.arguments) as replica:
            self.wait_until_answering(replica)
            yield replica

    @property
    def arguments(self) -> tuple[str, ...]:
        return f"--agents=127.0.0.1:{self.port}", f"--agents-account={ACCOUNT}"

    def wait_until_answering(self, replica: Replica) -> None:
        replica.wait_until_leading()
        self.wait_until_ready(replica)
        deadline = time.monotonic() + 60
        while (answer := self.state(self.node_agent("gpu-0")))[0] == 503:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def wait_until_ready(self, replica: Replica) -> None:
        deadline = time.monotonic() + 60
        while (answer := replica.get("/readyz"))[0] != 200:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    # Identities

    def token(self, pod: Manifest, audience: str = AUDIENCE) -> str:
        """The token that the kubelet would project into the pod."""
        metadata = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        return self._token("default", "default", bound, audience)

    def node_agent(self, node: str) -> str:
        """A token of the account of the agents, bound to a node."""
        found = self.admin.get("nodes", node)
        assert found
        bound = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": found["metadata"]["uid"]}
        namespace, name = ACCOUNT.split("/")
        return self._token(namespace, name, bound, AUDIENCE)

    def _token(self, namespace: str, account: str, bound: Manifest, audience: str) -> str:
        spec = {"audiences": [audience], "boundObjectRef": bound, "expirationSeconds": 3_600}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self.admin.must("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request)
        return str(answer["status"]["token"])

    # Asks

    def until_asked(self, pod: str, token: str, **resources: int) -> None:
        """Until the replica has observed the pod."""
        deadline = time.monotonic() + 30
        while (answer := self.ask(pod, token, "", **resources))[0] != 200:
            assert time.monotonic() < deadline, answer
            time.sleep(0.1)

    def ask(self, pod: str, token: str, permit_token: str = "", **resources: int) -> Answer:
        body = {"protoVersion": 2, "pod": {"namespace": "default", "name": pod}, "resources": resources}
        body |= {"permitToken": permit_token, "metrics": {"loadAvg1M": 0.5}}
        return self._exchange("POST", "/ask", token, json.dumps(body).encode())

    def state(self, token: str) -> Answer:
        return self._exchange("GET", "/debug/state", token)

    def _exchange(self, method: str, path: str, token: str, body: bytes = b"") -> Answer:
        """Over TLS, verified with the authorities that the replicas publish for agents."""
        published = self.admin.wait_for(
            "configmaps", names.AGENTS_AUTHORITIES, lambda found: found is not None, NAMESPACE
        )
        context = ssl.create_default_context(cadata=published["data"]["ca.crt"])
        connection = _Named("127.0.0.1", self.port, context=context, timeout=10)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


class _Named(http.client.HTTPSConnection):
    """Verifies the name of the Service, although the lab has no network for pods."""

    _context: ssl.SSLContext

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        name = min(service_names(names.AGENTS_SERVICE, NAMESPACE), key=len)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=name)


@contextmanager
def elastic_site(lab: Lab, folder: Path) -> Iterator[ElasticSite]:
    with defined(lab):
        lab.start("kwok")
        site = ElasticSite(lab, folder)
        try:
            yield site
        finally:
            site.clean()
