"""Somebody who acts with the rights that were given: what each right is for, as a step that works or does not."""

import json
from typing import Any

from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import Client
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import (
    Apply,
    Bind,
    Decision,
    Delete,
    Label,
    LentDevice,
    Preconditions,
    Reason,
    Ref,
    Status,
    Ungate,
)
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.memory import Memory
from reconciler.plan.manifests.reasons import Missing
from reconciler.policy.rules.kinds import KINDS
from reconciler.ports import Unavailable
from reconciler.protocol.leadership import LeaseTiming
from tests.lab import capacity, fleet
from tests.lab.api import Api, Manifest
from tests.lab.lab import Lab
from tests.stages.abuses.scene import smart_pod
from tests.stages.definitions import folder_of
from tests.stages.granted import HOME

WHY = Reason(Missing(object=Ref("Pod", "", "x")))
TARGET = Ref("NodePool", "", "tried")
QUICK = LeaseTiming(lease_ms=3_000, renew_ms=2_000, retry_ms=200)  # a Lease that can't be given back runs out


class Standing:
    def holds(self) -> bool:
        return True


class Hand:
    """Somebody with rights, and what each of them is for: a step says whether it worked."""

    def __init__(self, lab: Lab, api: Api) -> None:
        self.admin, self.api = lab.admin, api
        self.client = Client.at(api.url, api.authority, api.credential.token)
        self.applying = Executor(self.client, HOME)

    def leads(self) -> bool:
        """A Lease that is not there yet, and one that somebody gave back."""
        self.admin.delete("leases", "reconciler", HOME)
        return self._leads("one") and self._leads("other")

    def _leads(self, me: str) -> bool:
        leader = Leader(self.client, Candidacy(me, HOME, pace=QUICK))
        leader.start()
        try:
            return leader.wait_for_term(30) is not None
        finally:
            leader.release()

    def remembers(self) -> bool:
        """In several parts, of which none is left behind when there are fewer."""
        self._forget()
        store = ConfigMapMemory(self.client, HOME, part_bytes=200)
        large = Memory(
            tuple(DisruptionRecord(Instant(number), "Node", f"n{number}", f"u{number * 7919}") for number in range(50))
        )
        try:
            stored = store.save(large, store.load())
            parts = len(self._memories())
            store.save(Memory(), stored)
            return parts > 2 and store.load().memory == Memory() and len(self._memories()) == 1
        except Unavailable:
            return False

    def _memories(self) -> list[Manifest]:
        found = self.admin.list("configmaps", HOME)
        return [each for each in found if each["metadata"]["name"].startswith("reconciler-memory")]

    def _forget(self) -> None:
        for each in self._memories():
            self.admin.delete("configmaps", each["metadata"]["name"], HOME)

    def tells_in_a_config_map(self) -> bool:
        self.admin.delete("configmaps", "reconciler-status", HOME)
        metadata = {"name": "reconciler-status", "namespace": HOME}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        return self._done(Ref("ConfigMap", HOME, "reconciler-status"), Apply(manifest=json.dumps(manifest)))

    def keeps_node_pools(self) -> bool:
        self.admin.delete("nodepools", TARGET.name)
        body = capacity.NodePool(TARGET.name, [capacity.P4D]).manifest()
        if not self._done(TARGET, Apply(manifest=json.dumps(body), presumes=Preconditions(absent=True))):
            return False
        made = self.admin.get("nodepools", TARGET.name)
        return made is not None and self._done(Ref("NodePool", "", TARGET.name, made["metadata"]["uid"]), Delete())

    def labels_nodes(self) -> bool:
        self.admin.apply(fleet.nodes(1, prefix="tried")[0])
        node = self.admin.get("nodes", "tried-0")
        assert node
        labelled = Label(labels=(("gpu.scheduling/gpu-type", "a100"),))
        self.admin.merge(
            self.admin.path("nodes", "tried-0"), {"metadata": {"labels": {"gpu.scheduling/gpu-type": None}}}
        )
        return self._done(Ref("Node", "", "tried-0", node["metadata"]["uid"]), labelled)

    def keeps_priorities(self) -> bool:
        ref = Ref("PriorityClass", "", "tried")
        self.admin.delete("priorityclasses", ref.name)
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": ref.kind, "metadata": {"name": ref.name}}
        if not self._done(ref, Apply(manifest=json.dumps({**head, "value": -7}), presumes=Preconditions(absent=True))):
            return False
        made = self.admin.get("priorityclasses", ref.name)
        return made is not None and self._done(Ref(ref.kind, "", ref.name, made["metadata"]["uid"]), Delete())

    def makes_pods(self) -> bool:
        ref = Ref("Pod", HOME, "tried")
        self.admin.delete("pods", ref.name, HOME, grace_seconds=0)
        body = smart_pod(ref.name, schedulerName="nobody")
        body["metadata"]["namespace"] = HOME
        if not self._done(ref, Apply(manifest=json.dumps(body), presumes=Preconditions(absent=True))):
            return False
        made = self.admin.get("pods", ref.name, HOME)
        return made is not None and self._done(Ref("Pod", HOME, ref.name, made["metadata"]["uid"]), Delete())

    def clears_budgets(self) -> bool:
        """What a template yielded for an older version."""
        ref = Ref("PodDisruptionBudget", HOME, "tried")
        head = {"apiVersion": "policy/v1", "kind": ref.kind, "metadata": {"name": ref.name, "namespace": HOME}}
        made = self.admin.apply({**head, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}})
        return self._done(Ref(ref.kind, HOME, ref.name, made["metadata"]["uid"]), Delete())

    def lets_pods_go(self) -> bool:
        self.admin.delete("pods", "tried", "default", grace_seconds=0)
        waits = self.admin.create(fleet.Pod("tried").gated(names.CAPACITY_GATE).manifest())
        return self._done(Ref("Pod", "default", "tried", waits["metadata"]["uid"]), Ungate(gate=names.CAPACITY_GATE))

    def tells_events(self) -> bool:
        before = len(self._events())
        assert self.keeps_node_pools()
        return len(self._events()) > before

    def counts_events(self) -> bool:
        """The same Event again is counted in the first."""
        self.applying = Executor(self.client, HOME)  # which has told of nothing yet
        before = sum("series" in each for each in self._events("tried-0"))
        for _ in range(2):
            assert self.labels_nodes()
        return sum("series" in each for each in self._events("tried-0")) > before

    def _events(self, name: str = TARGET.name) -> list[Manifest]:
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        found: list[Manifest] = self.admin.must("GET", path)["items"]
        return [each for each in found if each["regarding"].get("name") == name]

    def tells_on(self, kind: str) -> bool:
        found = self.admin.must("GET", folder_of(next(each for each in KINDS if each.name == kind), "a100"))
        body = {"conditions": [], "problems": [f"{found['metadata']['resourceVersion']} is told"]}
        return self._done(Ref(kind, "", "a100", found["metadata"]["uid"]), Status(body=json.dumps(body)))

    def tells_on_a_claim(self) -> bool:
        head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim"}
        made = {**head, "metadata": {"name": "tried", "namespace": "default"}, "spec": {"devices": {"count": 1}}}
        metadata = self.admin.apply(made)["metadata"]
        body = {"pods": int(metadata["resourceVersion"]) % 1_000}
        return self._done(Ref("GpuClaim", "default", "tried", metadata["uid"]), Status(body=json.dumps(body)))

    def lends_gpus(self) -> bool:
        """A Lease that nobody holds, one that the pod holds already, the Binding, and the release of a GPU."""
        self.applying = Executor(self.client)  # in the namespace of Leases of GPUs
        self.admin.apply(fleet.nodes(1, prefix="tried")[0])
        self.admin.delete("pods", "claiming", "default", grace_seconds=0)
        pod = self.admin.create(fleet.Pod("claiming").unseen().manifest())["metadata"]
        for name in ("tried-0", "tried-1"):
            self.admin.delete("leases", name, names.LEASES_NAMESPACE)
        head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        metadata = {"name": "tried-1", "namespace": names.LEASES_NAMESPACE, "labels": {names.MANAGED: "true"}}
        held = self.admin.create({**head, "metadata": metadata, "spec": {"holderIdentity": pod["uid"]}})["metadata"]
        leases = (LentDevice("tried-0", 0), LentDevice("tried-1", 1))
        bind = Bind(node="tried-0", leases=leases, annotations=((names.ALLOCATED, "tried-0:0,1"),))
        lease = Ref("Lease", names.LEASES_NAMESPACE, "tried-1", held["uid"])
        return self._done(Ref("Pod", "default", "claiming", pod["uid"]), bind) and self._done(lease, Delete())

    def _done(self, subject: Ref, act: Any) -> bool:
        outcomes = list(self.applying.apply([Decision("tried", subject, act, WHY)], Standing()))
        return [each.result for each in outcomes] == ["done"]
