"""Whole clusters with policies of all kinds, drawn by a seed: whatever is optional may be missing, and texts may be
written in ways that nobody expects."""

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import (
    Annotations,
    Condition,
    LabelSelector,
    Lease,
    LeaseSpec,
    Metadata,
    Namespace,
    OwnerReference,
)
from reconciler.model.cluster.node import Node, NodeClaim, NodeClaimRequirement, NodeTaint
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import (
    Container,
    LocalObjectReference,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import BudgetSpec, BudgetStatus, PodDisruptionBudget, Workload, WorkloadSpec
from reconciler.model.desired import Declared, Desired, Manifest, SmartPod
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.capacity import PoolShortfall, Shortage
from reconciler.model.plan.drain_memory import Batch, DrainMemory, Emptied, Evicted, Moved, Setback
from reconciler.model.plan.guard_verdict import ObservedTaint
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.capacity.offerings import digest_of
from reconciler.plan.capacity.requests import CapacityRequest
from tests import builders
from tests.unit.plan.scaling.stage import MACHINE, NOW, POLICY, after
from tests.unit.plan.smart_pods import restricted
from tests.unit.policy.texts import convert

Json = dict[str, Any]

POOLS = ("a", "b", "c")
OTHER_MACHINE = "p5.48xlarge"
PRICES = (None, None, "0", "0.000001", "32.77", "999999999.999999")
AMOUNTS = ("0", "1", "2", "8", "100m", "1e3", "9E", "8Ei", "-1", "x", "")
TIMES = (-(10**6), -9000, -3600, -700, -601, -60, -1, 0, 1, 29, 600, 10**7)
MARKS = ("", "x", "-1", "1e9", "9" * 30, "²")
SECONDS = ("120s", "x", "-5s", "9" * 20 + "s")
REPLICA_SET = "rs"
CLUSTERS = ("9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21", "0d6f6a1c-52d1-4c0a-9f5e-9b3c6f0e7e21")


class Drawn:
    """Owner of the chance by which one world is made."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._pools = POOLS[: self._of((1, 1, 2, 3))]

    def inputs(self) -> Inputs:
        """Inputs as the loop could have them."""
        pools = tuple(self._pool(name) for name in self._pools)
        desired = Desired(
            "4c1f9e2",
            "prod",
            pools=pools,
            provisioners=tuple(self._provisioner(name) for name in self._pools if self._is(70)),
            drains=tuple(self._drain(name) for name in ("d1", "d2")[: self._of((0, 1, 1, 1, 2))]),
            guards=tuple(self._guard(name) for name in ("g",)[: self._of((0, 0, 1))]),
            manifests=tuple(self._manifest(name) for name in self._pools if self._is(80)),
            smart_pods=tuple(_smart_pod(pool.name, each.name) for pool in pools for each in pool.spec.instance_types),
        )
        nodes = [self._node(at) for at in range(self._of((0, 1, 2, 3, 4, 6, 8)))]
        pods = [self._pod(at, nodes) for at in range(self._of((0, 1, 2, 4, 8, 12)))]
        pods += [self._smart(at, nodes) for at in range(self._of((0, 0, 0, 1, 2)))]
        observed = self._observed(nodes, pods)
        return Inputs(
            desired,
            observed,
            NOW,
            self._memory(pools, nodes, pods),
            budget=self._of((0, 10, 1_000_000)),
            prune=("NodePool/old",) if self._is(20) else (),
        )

    def _is(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def _of(self, choices: Any) -> Any:
        return self._chance.choice(choices)

    def _often(self, usual: Any, *others: Any) -> Any:
        """The first in three of four worlds."""
        return usual if self._is(75) else self._of(others)

    def _time(self) -> str:
        return timestamp(after(self._of(TIMES)))

    def _pool(self, name: str) -> Declared[GpuPool]:
        count = self._of((1, 2, 8))
        types = [self._machine(each) for each in (MACHINE, OTHER_MACHINE)[: self._of((1, 1, 2))]]
        body: Json = {
            "mode": self._often("Enforce", "Observe"),
            "suspend": self._is(8),
            "adopt": self._is(40),
            "devices": {"model": "a100", "count": count, "memory": self._of(("1", "40Gi", "8E"))},
            "instanceTypes": types,
            "capacityTypes": self._of((["on-demand"], ["on-demand", "spot"])),
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
            "limits": self._of(({}, {}, {"nodes": "3"}, {"nvidia.com/gpu": "9"}, {"cpu": "0"}, {"memory": "8E"})),
        }
        if self._is(30):
            body["taints"] = [{"key": "gpu", "effect": "NoSchedule"}]
        return Declared("GpuPool", name, convert(body, GpuPool), (("", POLICY),))

    def _machine(self, name: str) -> Json:
        prices = {kind: price for kind in ("on-demand", "spot") if (price := self._of(PRICES)) is not None}
        capacity = self._of(({}, {"cpu": "96", "memory": "1100Gi"}, {"cpu": "0"}, {"memory": "8E", "pods": "1"}))
        return {"name": name, "capacity": capacity, "pricePerHour": prices}

    def _provisioner(self, pool: str) -> Declared[NodeProvisioner]:
        least = self._of((0, 0, 1, 5))
        body = {
            "poolName": pool,
            "suspend": self._is(8),
            "minSize": least,
            "maxSize": max(least, self._of((0, 1, 3, 100_000))),
            "minGPUUtilizationPercent": self._of((0, 1, 50, 80, 100)),
            "scaleDownDelay": self._of(("0s", "1s", "10m", "8000h")),
            "order": self._of((0, 1, 5)),
        }
        return Declared("NodeProvisioner", pool, convert(body, NodeProvisioner), (("", POLICY),))

    def _drain(self, name: str) -> Declared[DrainPolicy]:
        body: Json = {
            "poolNames": self._of((["*"], [self._of(self._pools)], list(self._pools))),
            "suspend": self._is(8),
            "utilizationThresholdPercent": self._of((1, 50, 100)),
            "maxDrainParallelism": self._of((1, 2, 10)),
            "maxScaleDownParallelism": 10,
            "scaleDownUnneededTime": self._of(("0s", "1m", "10m")),
            "scaleDownUnreadyTime": self._of(("0s", "20m")),
            "clusterMin": self._of(({}, {}, {"nvidia.com/gpu": "8"}, {"cpu": "9E"})),
        }
        return Declared("DrainPolicy", name, convert(body, DrainPolicy), (("", POLICY),))

    def _guard(self, name: str) -> Declared[ChangeGuard]:
        body: Json = {"poolNames": self._of((["*"], [self._pools[0]])), "suspend": self._is(10)}
        if self._is(70):
            body["perPlan"] = {self._of(("maxRemovedNodes", "maxDisruptedGPUs")): self._of((0, 1, 8))}
        if self._is(50):
            body["perHour"] = {self._of(("maxRemovedNodes", "maxRemovedPercent")): self._of((0, 1, 8))}
        if self._is(15):
            body["clusterUID"] = self._of(CLUSTERS)
        return Declared("ChangeGuard", name, convert(body, ChangeGuard), (("", POLICY),))

    def _manifest(self, pool: str) -> Manifest:
        labels = {names.POOL: pool, names.GPU_TYPE: "a100"} if self._is(70) else {}
        template = {"metadata": {"labels": labels}, "spec": {"expireAfter": "Never"}} if self._is(80) else {"spec": {}}
        body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": pool}}
        text = msgspec.json.encode(body | {"spec": {"template": template}}, order="sorted").decode()
        return Manifest("NodePool", "", pool, text, pool, POLICY, POLICY)

    def _observed(self, nodes: list[Node], pods: list[Pod]) -> Observed:
        unread = ("nodes", "pods", "leases.coordination.k8s.io", "nodepools.karpenter.sh", "persistentvolumes")
        return Observed(
            cluster_uid=self._of(("", CLUSTERS[0])),
            unread=(Unread(self._of(unread), "timed out"),) if self._is(4) else (),
            nodes=tuple(nodes),
            pods=tuple(pods),
            budgets=tuple(self._budget(at) for at in range(self._of((0, 0, 1, 2)))),
            workloads=tuple(self._workloads()),
            node_pools=tuple(self._node_pools()),
            node_claims=tuple(self._claims(nodes)),
            namespaces=(Namespace(Metadata(names.OWN_NAMESPACE)),) if self._is(90) else (),
            leases=tuple(_lease(node) for node in nodes if self._is(8)),
        )

    def _node_pools(self) -> Iterator[Unstructured]:
        for name in (*self._pools, "old"):
            if not self._is(85):
                continue
            labels = {names.MANAGED: "true", names.POOL: name} if self._is(65) else {}
            annotations = {names.ENVIRONMENT: self._often("prod", "stage")} if self._is(50) else {}
            annotations |= {names.ADOPTED: "true"} if self._is(40) else {}
            metadata = UnstructuredMetadata(
                name,
                uid=f"uid-{name}" if self._is(95) else "",
                resource_version="7" if self._is(95) else "",
                deletion_timestamp=self._time() if self._is(5) else "",
                labels=labels,
                annotations=annotations,
            )
            spec = self._of(({}, {"template": {}}, {"template": {"spec": {"expireAfter": "Never"}}}, {"limits": None}))
            yield Unstructured("karpenter.sh/v1", "NodePool", metadata, {"spec": spec} if self._is(90) else {})

    def _node(self, at: int) -> Node:
        name, pool = f"n{at}", self._of((*self._pools, "old"))
        labels = {names.KARPENTER_POOL: pool} if self._is(75) else {names.POOL: pool} if self._is(60) else {}
        labels |= {names.INSTANCE_TYPE: self._of((MACHINE, MACHINE, OTHER_MACHINE, "unknown"))} if self._is(85) else {}
        labels |= {names.PROVISIONER: self._of(self._pools)} if self._is(50) else {}
        labels |= {names.GPU_TYPE: "a100", names.POOL: pool} if self._is(40) else {}
        labels |= {names.HOSTNAME: name} if self._is(80) else {}
        labels |= {names.ZONE: self._of(("z1", "z2"))} if self._is(70) else {}
        labels |= {names.UPGRADE_STATE: self._of(("upgrade-done", "drain-required"))} if self._is(5) else {}
        amounts = {"cpu": "96", "memory": "1100Gi", "pods": "110", names.NVIDIA_GPU: "8"} if self._is(90) else {}
        amounts |= {self._of(("cpu", "pods", names.NVIDIA_GPU)): self._of(AMOUNTS)} if self._is(10) else {}
        conditions = (Condition("Ready", self._often("True", "False", "Unknown")),) if self._is(90) else ()
        return builders.node(
            name,
            has=amounts,
            resource_version=self._often("5", ""),
            creation_timestamp=self._often("2026-10-01T00:00:00Z", "", self._time()),
            deletion_timestamp=self._time() if self._is(5) else "",
            labels=labels,
            annotations=self._of_node(),
            unschedulable=self._is(5),
            taints=tuple(self._taints()),
            conditions=conditions,
        )

    def _of_node(self) -> Annotations:
        if self._is(85):
            return Annotations()
        return Annotations(
            frozen_until=self._of(("", self._time(), "soon")),
            do_not_disrupt=self._of(("", "true", "1h", "x")),
            scale_down_disabled=self._of(("", "true")),
        )

    def _taints(self) -> Iterator[NodeTaint]:
        ours = (names.DELETION_TIME, names.DRAINING, names.DRAIN_CANDIDATE, names.ARRIVING, names.DISRUPTED, "gpu")
        for key in ours:
            if self._is(13):
                value = self._often(str(after(self._of(TIMES)) // 1000), *MARKS)
                yield NodeTaint(key, self._of(("PreferNoSchedule", "NoSchedule", "NoExecute")), value)

    def _pod(self, at: int, nodes: list[Node]) -> Pod:
        name, bound = f"p{at}", bool(nodes) and self._is(60)
        asked = {names.NVIDIA_GPU: str(self._of((0, 1, 2, 8)))} if self._is(80) else {}
        asked |= {self._of(("cpu", "memory", names.NVIDIA_GPU)): self._of(AMOUNTS)} if self._is(10) else {}
        spec = PodSpec(
            node_name=self._often(self._of(nodes).name, "gone") if bound else "",
            containers=(Container(resources=ResourceRequirements(asked)),) if self._is(95) else (),
            tolerations=(Toleration(operator="Exists"),) if self._is(40) else (),
            node_selector={names.KARPENTER_POOL: self._of(self._pools)} if self._is(20) else {},
            scheduling_gates=self._gates() if not bound else (),
            termination_grace_period_seconds=self._of((None, 0, 30, 10**9)),
        )
        refused = Condition("PodScheduled", "False", "Unschedulable", self._time())
        status = PodStatus(
            phase=self._often("Running" if bound else "Pending", "Succeeded", "Failed", ""),
            nominated_node_name=self._of((*(each.name for each in nodes), "gone")) if self._is(5) else "",
            conditions=(refused,) if not bound and self._is(80) else (),
        )
        return Pod(self._of_pod(name), spec, status)

    def _gates(self) -> tuple[LocalObjectReference, ...]:
        if self._is(45):
            return ()
        return (
            (LocalObjectReference(names.CAPACITY_GATE),)
            if self._is(90)
            else (LocalObjectReference(names.CAPACITY_GATE), LocalObjectReference("other"))
        )

    def _of_pod(self, name: str) -> Metadata:
        owner = self._of(
            ((REPLICA_SET, "ReplicaSet"), (REPLICA_SET, "ReplicaSet"), ("ds", "DaemonSet"), ("job", "Job"))
        )
        owners = (OwnerReference(owner[1], owner[0], f"uid-{owner[0]}", controller=True),) if self._is(80) else ()
        annotations = Annotations()
        if self._is(20):
            annotations = Annotations(
                safe_to_evict=self._of(("", "true", "false", "on-completion")),
                do_not_disrupt=self._of(("", "true", "x")),
                checkpoint=self._of(("", *SECONDS)),
                evict_at=self._of(("", self._time(), "soon")),
                checkpointed_at=self._of(("", self._time(), "9" * 30)),
                waits_for=self._of(("", "a", "a.none-to-be-had")),
                mirror_pod=self._of(("", "", "x")),
                claim=self._of(("", "", "lost")),
            )
        return Metadata(
            name,
            "team",
            uid=f"uid-{name}",
            resource_version=self._often("5", ""),
            creation_timestamp=self._often(self._time(), ""),
            deletion_timestamp=self._time() if self._is(8) else "",
            labels={"app": self._of(("web", "db"))} if self._is(70) else {},
            annotations=annotations,
            owner_references=owners,
        )

    def _smart(self, at: int, nodes: list[Node]) -> Pod:
        pool = self._of((*self._pools, "old"))
        request = CapacityRequest(
            f"uid-p{at}", pool, "a100", self._of((1, 8)), self._of(("demand", "minSize")), MACHINE
        )
        annotations = Annotations(
            original_request=self._often(msgspec.json.encode(request).decode(), "", "{}", "["),
            phase=self._of(("Pending", "Scheduled", "Failed", "", "x")),
            since=self._of(("", "x", str(after(-40) // 1000), "9" * 30)),
            node_claim=self._of(("", "c0")),
        )
        labels = {names.COMPONENT: names.SMART_SCHEDULER, names.MANAGED: self._often("true", "")}
        labels |= {names.POOL: pool} if self._is(95) else {}
        times = {
            "creation_timestamp": self._often(self._time(), ""),
            "deletion_timestamp": self._time() if self._is(5) else "",
        }
        node = self._of(nodes).name if nodes and self._is(40) else ""
        refused = Condition("PodScheduled", "False", "Unschedulable", self._time())
        said: dict[str, Any] = {"labels": labels, "annotations": annotations, **times}
        return builders.pod(
            request.name,
            gpus=request.count,
            namespace=names.SMART_PODS_NAMESPACE,
            uid=f"uid-smart-{at}",
            resource_version="5",
            node_name=node,
            tolerations=(Toleration(operator="Exists"),),
            conditions=() if node else (refused,),
            **said,
        )

    def _budget(self, at: int) -> PodDisruptionBudget:
        selector = self._of((None, LabelSelector(), LabelSelector({"app": "web"})))
        spec = BudgetSpec(self._of((None, 1, "50%", "x")), self._of((None, 0, 1)), selector)
        status = BudgetStatus(self._of((0, 1, 5)), 2, 1, 2, disrupted_pods=self._of(({}, {"p0": self._time()})))
        return PodDisruptionBudget(Metadata(f"b{at}", "team", uid=f"uid-b{at}"), spec, status)

    def _workloads(self) -> Iterator[Workload]:
        if self._is(80):
            metadata = Metadata(REPLICA_SET, "team", uid=f"uid-{REPLICA_SET}")
            yield Workload(metadata, "ReplicaSet", WorkloadSpec(self._of((None, 0, 3))))
        if self._is(50):
            yield Workload(Metadata("ds", "team", uid="uid-ds"), "DaemonSet")

    def _claims(self, nodes: list[Node]) -> Iterator[NodeClaim]:
        for at, name in enumerate((*(each.name for each in nodes), "", "gone")):
            if not self._is(45):
                continue
            labels = {names.KARPENTER_POOL: self._of(self._pools)} if self._is(95) else {}
            conditions = tuple(
                Condition(each, self._of(("True", "False", "Unknown")), last_transition_time=self._time())
                for each in ("Launched", "Registered", "Initialized", "Drifted")
                if self._is(50)
            )
            yield builders.claim(
                f"c{at}",
                creation_timestamp=self._often(self._time(), ""),
                deletion_timestamp=self._time() if self._is(8) else "",
                labels=labels,
                has={names.NVIDIA_GPU: self._of(AMOUNTS), "cpu": "96"} if self._is(60) else {},
                requirements=(NodeClaimRequirement(f"{names.OURS}for-x"),) if self._is(20) else (),
                node_name=name,
                conditions=conditions,
            )

    def _memory(self, pools: tuple[Declared[GpuPool], ...], nodes: list[Node], pods: list[Pod]) -> Memory:
        if self._is(40):
            return Memory()
        told = [*((each.name, each.metadata.uid) for each in nodes if self._is(40)), ("was", "uid-was")]
        torn = self._of((None, None, self._ago()))
        drained = DrainMemory(
            batch=Batch(self._ago(), tuple(told), torn) if self._is(40) else None,
            evicted=tuple(sorted(self._evicted(pod) for pod in pods if self._is(15))),
            emptied=tuple(sorted(Emptied(*each, self._ago()) for each in told if self._is(30))),
            setbacks=tuple(sorted(Setback(*each, self._ago(), "NoPlace", self._of((1, 99))) for each in told)),
            moved=tuple(
                Moved(each, "team/uid-rs", self._ago(), self._ago(), 2) for each in self._pools if self._is(20)
            ),
            begin_at=self._of(("", "n1", "gone")),
        )
        return Memory(
            imagined=tuple(
                sorted(ObservedTaint(*each, names.DELETION_TIME, "x", "NoSchedule") for each in told if self._is(10))
            ),
            lacking=tuple(PoolShortfall(each, self._ago()) for each in self._pools if self._is(20)),
            shortages=tuple(sorted(self._shortage(each) for each in pools if self._is(30))),
            drained=drained,
        )

    def _ago(self) -> Instant:
        return after(-self._of((0, 1, 31, 61, 700, 10**6)))

    def _evicted(self, pod: Pod) -> Evicted:
        uid, node = pod.metadata.uid, pod.node
        text = self._often(msgspec.json.encode(pod).decode(), "", "{}", "[")
        home = self._of(("", "n0", "gone"))
        return Evicted(self._ago(), pod.title, uid, node, self._of(self._pools), self._ago(), text, "team/uid-rs", home)

    def _shortage(self, pool: Declared[GpuPool]) -> Shortage:
        asked = self._often(digest_of(pool.spec), "before")
        until = after(self._of((-1, 1, 500)))
        return Shortage(pool.name, MACHINE, self._of(("", "spot")), "", self._ago(), until, asked, "MachineFailed")


def _smart_pod(pool: str, machine: str) -> SmartPod:
    labels = {names.COMPONENT: names.SMART_SCHEDULER, names.MANAGED: "true", names.POOL: pool}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "placeholder", "namespace": names.SMART_PODS_NAMESPACE, "labels": labels},
        "spec": {"containers": [restricted.CONTAINER], **restricted.POD},
    }
    return SmartPod(pool, machine, msgspec.json.encode(body, order="sorted").decode(), POLICY)


def _lease(node: Node) -> Lease:
    owner = OwnerReference("Node", node.name, node.metadata.uid)
    return Lease(Metadata(f"lease-{node.name}", names.LEASES_NAMESPACE, owner_references=(owner,)), LeaseSpec("claim"))
