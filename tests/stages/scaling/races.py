"""Pods that are bound while their node is found empty and deleted, on the lab, and what became of each.

Theory of operation. A node goes by three requests: it is looked at, its pods are listed, and it is deleted. Every write
to the API server has a version of one count, and a list says as of which it is: so it is known exactly whether a pod
was bound before the list, between it and the deletion, or after that. For that nodes without a kubelet bear a finalizer
that nobody takes off: so the answer to their deletion has its version. Owner of the nodes and pods of one run.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum, auto
from typing import Any

import msgspec

from reconciler.kube.api_server import JSON, ApiRequest, ApiResponse, Writer
from reconciler.kube.apply.execute import Executor
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.model import names
from reconciler.model.plan.decision import Act, Decision, Delete, Outcome, Preconditions, Ref, Taint
from reconciler.plan.scaling import marks
from tests.contract.ground import STANDING, client_of, decision
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab

VALUE = "1795013520"
_FINALIZER = "lab.example.com/stays"
_RACED = "lab.example.com/raced"
_SPREAD_SECONDS = 0.012  # a node goes within about that: a Binding is sent so much earlier or later
_LEAD_SECONDS = 0.25  # within which a scheduler that is not busy has placed a pod, or has not


class Fate(Enum):
    """Of a pod."""

    KEPT = auto()  # it is on its node, and that stays
    WAITING = auto()  # it was bound to nothing
    OVERLOOKED = auto()  # it was bound before its node was found empty, and that was deleted
    SLIPPED = auto()  # it was bound after its node was found empty, and before that was deleted
    LATE = auto()  # it was bound to a node that was deleted already


LOST = frozenset({Fate.OVERLOOKED, Fate.SLIPPED, Fate.LATE})


class Timing(msgspec.Struct):
    """What was told of one node as it went: versions, and seconds."""

    listed: int = 0
    deleted: int = 0
    listed_at: float = 0.0
    sent_at: float = 0.0


class Witness:
    """A Writer that notes what it hears, and lets somebody in just before a node is written to."""

    def __init__(self, server: Writer) -> None:
        self._server = server
        self.of: dict[str, Timing] = {}
        self.before: Callable[[str, ApiRequest], None] = _nothing

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = JSON) -> ApiResponse:
        answer = self._server.get(path, query, accept)
        if query and "fieldSelector" in query:
            timing = self._timing(query["fieldSelector"].rpartition("=")[2])
            timing.listed, timing.listed_at = _version(answer), time.monotonic()
        return answer

    def send(self, request: ApiRequest) -> ApiResponse:
        if "/nodes/" not in request.path:
            return self._server.send(request)
        name = request.path.rpartition("/")[2]
        self.before(name, request)
        sent_at = time.monotonic()
        answer = self._server.send(request)
        if request.method == "DELETE" and answer.status < 300:
            timing = self._timing(name)
            timing.deleted, timing.sent_at = _version(answer), sent_at
        return answer

    def _timing(self, name: str) -> Timing:
        return self.of.setdefault(name, Timing())


class Races:
    """So many nodes, and a pod for each that fits nowhere else."""

    def __init__(self, lab: Lab, count: int, effect: str, seed: int = 1) -> None:
        """The nodes are ready if KWOK runs."""
        self.admin, self._count = lab.admin, count
        self._chance = random.Random(seed)
        self._client = client_of(lab.admin)
        self.witness = Witness(self._client)
        self._applying = Executor(self.witness, limits=WriteLimits(writes_per_second=500.0, burst=1_000))
        is_alive = lab.running("kwok") is not None
        made = lab.load(_node(number, effect, is_alive) for number in range(count))
        self._nodes = {each["metadata"]["name"]: each for each in made}
        for name in self._nodes if is_alive else ():
            self.admin.wait_for("nodes", name, fleet.is_ready)

    def close(self) -> None:
        """Takes all away in few requests, as far as no finalizer is in the way."""
        for plural, namespace in (("pods", "default"), ("nodes", "")):
            path = f"{self.admin.path(plural, namespace=namespace)}?labelSelector={_RACED}"
            self.admin.must("DELETE", path, {"gracePeriodSeconds": 0})
        self._client.close()

    @property
    def names(self) -> list[str]:
        return sorted(self._nodes)

    # By Bindings that ask nobody

    def bind_at_random(self) -> dict[str, Fate]:
        """For each pod a Binding is posted, at random shortly before, while or after its node is deleted."""
        with ThreadPoolExecutor(1) as other:
            for name in self.names:
                self.admin.create(_pod(name).unseen().manifest())
                late = self._chance.uniform(-_SPREAD_SECONDS, _SPREAD_SECONDS)
                binding = other.submit(self._bound_after, name, max(0.0, late))
                time.sleep(max(0.0, -late))
                self.delete([name])
                assert binding.result() < 300
        return self.fates()

    def _bound_after(self, name: str, seconds: float) -> int:
        time.sleep(seconds)
        return self.bind(name)

    def bind(self, name: str) -> int:
        target = {"apiVersion": "v1", "kind": "Node", "name": name}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        path = f"{self.admin.path('pods', name, 'default')}/binding"
        return self.admin.request("POST", path, body).code

    # By the scheduler

    def schedule_at_random(self) -> dict[str, Fate]:
        """Pods come while taints are made hard and while nodes are deleted, each just as its node's turn comes."""
        at_last = set(self._chance.sample(self.names, self._count // 3))
        with ThreadPoolExecutor(8) as others:
            coming: list[Future[Any]] = []

            def come(name: str, request: ApiRequest) -> None:
                if (request.method == "DELETE") == (name in at_last):
                    coming.append(others.submit(self.comes, name))
                    self._lead(name)

            self.witness.before = come
            self.harden()
            # As for the 30 s for which a taint is hard: whoever did not know of it is done.
            self._judged(coming)
            self.delete(self.names)
            # Of nodes that were in use there was no deletion at which their pod could come: it came before.
            self._judged(coming)
            self.witness.before = _nothing
        return self.fates()

    def _lead(self, name: str) -> None:
        """Any time within a lead; one pod in three has as long as the scheduler takes, however busy it is."""
        if self._chance.random() < 1 / 3:
            self.is_judged(name)
        else:
            time.sleep(self._chance.uniform(0, _LEAD_SECONDS))

    def comes(self, name: str) -> None:
        self.admin.create(_pod(name).manifest())

    def is_judged(self, name: str) -> Manifest:
        """Waits until the scheduler has found the pod a place, or none."""
        return self.admin.wait_for("pods", name, _is_judged, "default")

    def _judged(self, coming: Iterable[Future[Any]]) -> None:
        for each in [*coming]:
            each.result()
        for pod in self.admin.list("pods", "default"):
            self.is_judged(pod["metadata"]["name"])

    # What is done to nodes

    def harden(self) -> None:
        act = Taint(key=marks.KEY, value=VALUE, effect=marks.HARD, instead_of=marks.SOFT)
        assert {each.result for each in self._carried_out((name, act) for name in self.names)} == {"done"}

    def delete(self, nodes: Iterable[str], looks: bool = True) -> list[Outcome]:
        """As scaling does; or without looking for pods."""
        return self._carried_out((name, Delete(presumes=Preconditions(empty=looks))) for name in nodes)

    def _carried_out(self, acts: Iterable[tuple[str, Act]]) -> list[Outcome]:
        decisions: list[Decision] = []
        for name, act in acts:
            decisions.append(decision(Ref("Node", "", name, self._nodes[name]["metadata"]["uid"]), act))
        return list(self._applying.apply(decisions, STANDING))

    # What came of it

    def fates(self) -> dict[str, Fate]:
        pods = {each["metadata"]["name"]: each for each in self.admin.list("pods", "default")}
        nodes = self.admin.list("nodes")
        stay = {each["metadata"]["name"] for each in nodes if not each["metadata"].get("deletionTimestamp")}
        return {name: self._fate(pods[name], name not in stay) for name in self.names if name in pods}

    def _fate(self, pod: Manifest, is_going: bool) -> Fate:
        if not pod["spec"].get("nodeName"):
            return Fate.WAITING
        if not is_going:
            return Fate.KEPT
        bound = int(pod["metadata"]["resourceVersion"])  # unless a kubelet has written since
        timing = self.witness.of.get(pod["metadata"]["name"], Timing())
        if bound <= timing.listed or not timing.listed:
            return Fate.OVERLOOKED
        return Fate.SLIPPED if bound <= timing.deleted else Fate.LATE

    def windows_ms(self) -> list[float]:
        """From each list to the deletion that was sent after it, the shortest first."""
        return sorted(1_000 * (each.sent_at - each.listed_at) for each in self.witness.of.values() if each.deleted)


def _node(number: int, effect: str, is_alive: bool) -> Manifest:
    taint = {"key": names.DELETION_TIME, "value": VALUE, "effect": effect}
    made = fleet.Shape(taints=[taint], alive=is_alive).node(f"race-{number:04}", "eu-1a")
    made["metadata"]["finalizers"] = [] if is_alive else [_FINALIZER]
    made["metadata"]["labels"][_RACED] = ""
    del made["metadata"]["labels"][names.KARPENTER_POOL]  # Karpenter's it is not
    return made


def _pod(node: str) -> fleet.Pod:
    return fleet.Pod(node, gpus=1, labels={_RACED: ""}).with_spec(nodeSelector={names.HOSTNAME: node})


def _is_judged(pod: Manifest | None) -> bool:
    conditions = (pod or {}).get("status", {}).get("conditions", ())
    return any(each["type"] == "PodScheduled" for each in conditions)


def _version(answer: ApiResponse) -> int:
    """Nothing where the object went at once: then there is none."""
    return int(msgspec.json.decode(answer.body)["metadata"].get("resourceVersion", 0))


def _nothing(name: str, request: ApiRequest) -> None:
    """Nobody comes."""
