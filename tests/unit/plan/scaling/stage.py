"""A pool and its provisioner, as tests/cases/scaling/steps.yaml describes them; see the top of that."""

from collections.abc import Iterator
from typing import Any

import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import (
    Annotations,
    Condition,
    Lease,
    LeaseSpec,
    Metadata,
    Namespace,
    OwnerReference,
)
from reconciler.model.cluster.node import Node, NodeClaim, NodeTaint
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Container, LocalObjectReference, Pod, PodSpec, ResourceRequirements, Toleration
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import PodTemplate, Workload, WorkloadSpec
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.drain_memory import DrainMemory
from reconciler.model.plan.guard_verdict import ObservedTaint
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from reconciler.plan.scaling.planner import scaling
from tests import builders, folders
from tests.unit.plan.guards.stage import numbers
from tests.unit.plan.scaling import evicted_pods
from tests.unit.policy.texts import convert, drain_policies

FOLDER = folders.CASES / "scaling"
NOW = instant("2026-11-02T08:00:00Z")
POLICY = Origin("policies/a100.yaml", 23, "4c1f9e2")
LONG_AGO = "2026-10-01T00:00:00Z"
MACHINE = "p4d.24xlarge"

Json = dict[str, Any]


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


def after(seconds: int) -> Instant:
    return Instant(NOW + 1_000 * seconds)


class World:
    """What a case describes: the pool a100 and its provisioner; and others, which are told in the same words."""

    def __init__(self, case: Json) -> None:
        self._pools = {"a100": _PoolCase("a100", case)}
        self._pools |= {name: _PoolCase(name, said) for name, said in case.get("also", {}).items()}
        each = list(self._pools.values())
        desired = Desired(
            "4c1f9e2",
            "prod",
            pools=tuple(one.declared for one in each),
            provisioners=tuple(one.provisioner for _, one in sorted(self._pools.items()) if one.is_scaled),
            drains=drain_policies(case.get("drains", {}), POLICY),
        )
        evicted = [(_pod(f"was-{said['node']}", {"owner": "web", **said}), said) for said in case.get("evicted", [])]
        pods = [pod for one in each for pod in one.pods] + list(_pending(case))
        pods += [_pod(f"placed-{number}", said) for number, said in enumerate(case.get("placed", []))]
        there = [(pod, said) for pod, said in evicted if not said.get("gone")]
        pods += [pod if said.get("stays") else evicted_pods.leaving(pod, NOW) for pod, said in there]
        unread = tuple(Unread(kind, "timed out") for kind in case.get("unread", []))
        observed = Observed(
            unread=unread,
            nodes=(*(node for one in each for node in one.nodes), *_nodes_of_others(case)),
            pods=tuple(pods),
            node_claims=(*(claim for one in each for claim in one.claims), *_claims_of_others(case)),
            leases=tuple(lease for one in each for lease in one.leases),
            workloads=tuple(_daemon_sets(case)),
            node_pools=(*(one.node_pool for one in each if one.has_node_pool), *_node_pools_of_others(case)),
            namespaces=(Namespace(Metadata(names.OWN_NAMESPACE)),),
        )
        lately = (evicted_pods.remembered(pod, said, after(-said["ago"])) for pod, said in evicted)
        imagined = tuple(sorted(found for one in each for found in one.imagined))
        memory = Memory(imagined=imagined, drained=DrainMemory(evicted=tuple(sorted(lately))))
        self.inputs = Inputs(desired, observed, NOW, memory)

    def planned(self) -> Plan:
        """What comes of it; no invariant is broken by it."""
        fleet = Fleet(self.inputs.observed)
        made = plan(self.inputs, fleet, (scaling,))
        check(self.inputs, fleet, made)
        return made


class _PoolCase:
    """What is said of one pool."""

    def __init__(self, name: str, said: Json) -> None:
        self._name, self._said = name, said

    def _has(self, trait: str, at: int) -> bool:
        return at in numbers(str(self._said.get(trait, "")))

    def _of(self, trait: str, at: int, otherwise: Any = None) -> Any:
        """What a map from numbers of nodes says of one."""
        found = self._said.get(trait, {}).items()
        return next((value for which, value in found if at in numbers(str(which))), otherwise)

    @property
    def declared(self) -> Declared[GpuPool]:
        body = {
            "mode": "Enforce",
            "devices": {"model": self._name, "count": 8, "memory": "40Gi"},
            "instanceTypes": [{"name": MACHINE, "capacity": {"cpu": "96", "memory": "1100Gi"}}],
            "capacityTypes": ["on-demand", "spot"],
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
            **self._said.get("pool", {}),
        }
        return Declared("GpuPool", self._name, convert(body, GpuPool), (("", POLICY),))

    @property
    def is_scaled(self) -> bool:
        return self._said.get("keep") != "none"

    @property
    def provisioner(self) -> Declared[NodeProvisioner]:
        body = {"poolName": self._name, "minSize": 0, "maxSize": 200, "minGPUUtilizationPercent": 80}
        spec = convert(body | self._said.get("keep", {}), NodeProvisioner)
        return Declared("NodeProvisioner", self._name, spec, (("", POLICY),))

    @property
    def has_node_pool(self) -> bool:
        return not self._said.get("no_node_pool")

    @property
    def node_pool(self) -> Unstructured:
        labels = {} if self._said.get("theirs") else {names.MANAGED: "true", names.POOL: self._name}
        frozen = self._said.get("frozen_pool")
        annotations = {names.FROZEN_UNTIL: timestamp(after(frozen))} if frozen else {}
        metadata = UnstructuredMetadata(self._name, labels=labels, annotations=annotations)
        return Unstructured("karpenter.sh/v1", "NodePool", metadata)

    @property
    def nodes(self) -> list[Node]:
        return [self._node(at) for at in range(self._said.get("nodes", 0))]

    def name_of(self, at: int) -> str:
        return f"{self._name}-{at:03}"

    def _node(self, at: int) -> Node:
        labels = {
            names.KARPENTER_POOL: self._name,
            names.PROVISIONER: self._name,
            names.INSTANCE_TYPE: self._of("machine", at, MACHINE),
            names.CAPACITY_TYPE: self._of("bought", at, "on-demand"),
            names.GPU_TYPE: self._name,
            names.ZONE: self._of("zone", at, "zone-a"),
        }
        if self._has("unlabelled", at):
            del labels[names.PROVISIONER]
        frozen = self._of("frozen", at)
        came = timestamp(after(-self._of("came", at, 3_600)))
        ready = Condition("Ready", "False" if self._has("unready", at) else "True", last_transition_time=came)
        return builders.node(
            self.name_of(at),
            gpus=self._of("gpus", at, 8),
            has={"cpu": "96", "memory": "1100Gi", "pods": "110"},
            resource_version="7",
            creation_timestamp=came,
            deletion_timestamp=LONG_AGO if self._has("leaving", at) else "",
            labels=labels,
            annotations=Annotations(
                frozen_until=timestamp(after(frozen)) if frozen else "",
                scale_down_disabled="true" if self._has("opted_out", at) else "",
                do_not_disrupt=self._of("do_not_disrupt", at, ""),
            ),
            unschedulable=self._has("cordoned", at),
            taints=self._taints(at),
            conditions=(ready,),
        )

    def _taints(self, at: int) -> tuple[NodeTaint, ...]:
        found = [NodeTaint(each["key"], each["effect"]) for each in self._said.get("pool", {}).get("taints", ())]
        signs = {"disrupted": names.DISRUPTED, "draining": names.DRAINING, "awaited": names.ARRIVING}
        found += [NodeTaint(key, "NoSchedule") for sign, key in signs.items() if self._has(sign, at)]
        if mark := self._of("marked", at):
            found.append(NodeTaint(names.DELETION_TIME, *_mark(mark)))
        return tuple(found)

    @property
    def imagined(self) -> list[ObservedTaint]:
        said = [(self.name_of(at), mark) for at in self._many("nodes") if (mark := self._of("imagined", at))]
        marks = [(name, *_mark(mark)) for name, mark in said]
        return [ObservedTaint(name, f"uid-{name}", names.DELETION_TIME, value, effect) for name, effect, value in marks]

    @property
    def pods(self) -> list[Pod]:
        found = []
        for at in self._many("nodes"):
            gpus = 8 if self._has("busy", at) else self._of("uses", at, 0)
            if gpus or self._has("used", at):
                found.append(_pod(f"train-{self.name_of(at)}", {"gpus": gpus, "node": self.name_of(at)}))
            if self._has("daemon", at):
                found.append(_pod(f"exporter-{self.name_of(at)}", {"node": self.name_of(at), "owner": "DaemonSet"}))
            if self._has("finished", at):
                done = {"gpus": 8, "node": self.name_of(at), "phase": "Succeeded"}
                found.append(_pod(f"done-{self.name_of(at)}", done))
        return found

    @property
    def claims(self) -> list[NodeClaim]:
        found, labels = [], {names.KARPENTER_POOL: self._name}
        launched = {names.INSTANCE_TYPE: MACHINE, names.CAPACITY_TYPE: "on-demand", names.ZONE: "zone-a"}
        for at in self._many("nodes"):
            initialized = Condition("Initialized", "Unknown" if self._has("initializing", at) else "True")
            name = self.name_of(at)
            told: Json = {"node_name": "" if self._has("untold", at) else name, "conditions": (initialized,)}
            found.append(builders.claim(f"claim-{name}", labels=labels | launched, **told))
        for trait, word, more in (
            ("arriving", "new", {"labels": labels | launched}),
            ("ordered", "ordered", {"labels": labels}),
            ("given_up", "gone", {"labels": labels, "deletion_timestamp": LONG_AGO}),
        ):
            found += [builders.claim(f"claim-{self._name}-{word}-{at}", **more) for at in self._many(trait)]
        return found

    def _many(self, trait: str) -> range:
        return range(self._said.get(trait, 0))

    @property
    def leases(self) -> list[Lease]:
        found = []
        for at in self._many("nodes"):
            owner = (OwnerReference("Node", self.name_of(at)),)
            for number in range(self._of("lent", at, 0)):
                metadata = Metadata(f"{self.name_of(at)}-{number}", names.LEASES_NAMESPACE, owner_references=owner)
                found.append(Lease(metadata, LeaseSpec(self._said.get("holder", "uid-of-a-pod"))))
        return found


def _mark(said: str) -> tuple[str, str]:
    """soft 600 is a mark whose time is in ten minutes; soft x has no time."""
    effect, _, seconds = said.partition(" ")
    is_time = seconds.lstrip("-").isdigit()
    value = str(after(int(seconds)) // 1_000) if is_time else seconds
    return {"soft": "PreferNoSchedule", "hard": "NoSchedule"}[effect], value


def _pending(case: Json) -> Iterator[Pod]:
    for number, said in enumerate(case.get("pending", [])):
        for copy in range(said.get("pods", 1)):
            yield _pod(f"wait-{number}-{copy}", {"unschedulable": True, **said})


def _pod(name: str, said: Json) -> Pod:
    owner = (OwnerReference(*evicted_pods.OWNERS[said["owner"]], controller=True),) if "owner" in said else ()
    claim = f"claim-{said['claim']}" if "claim" in said else ""
    annotations = Annotations(claim=claim, waits_for=said.get("told", ""))
    seen = timestamp(after(-said["seen"])) if "seen" in said else ""  # for how long the scheduler has not placed it
    unschedulable = Condition("PodScheduled", "False", "Unschedulable", last_transition_time=seen)
    return builders.pod(
        name,
        gpus=said.get("gpus", 0),
        asks={"cpu": str(said.get("cpu", 1))},
        namespace="research",
        creation_timestamp=timestamp(after(-said["made"])) if "made" in said else "",
        deletion_timestamp=timestamp(NOW) if said.get("leaving") else "",
        labels={"app": said["owner"]} if "owner" in said else {},
        annotations=annotations,
        owner_references=owner,
        affinity=evicted_pods.ONE_A_ZONE if said.get("apart") else None,
        node_name=said.get("node", ""),
        node_selector=said.get("selects", {}),
        tolerations=tuple(Toleration(key, "Exists") for key in said.get("bears", [])),
        scheduling_gates=tuple(LocalObjectReference(each) for each in said.get("gates", [])),
        phase=said.get("phase", "Running" if "node" in said else "Pending"),
        nominated_node_name=said.get("nominated", ""),
        conditions=(unschedulable,) if said.get("unschedulable") else (),
    )


def _node_pools_of_others(case: Json) -> Iterator[Unstructured]:
    for said in case.get("elsewhere", []):
        template = {"taints": said.get("taints", []), "startupTaints": said.get("startup_taints", [])}
        metadata = UnstructuredMetadata(said["pool"])
        yield Unstructured("karpenter.sh/v1", "NodePool", metadata, {"spec": {"template": {"spec": template}}})


def _claims_of_others(case: Json) -> Iterator[NodeClaim]:
    """One machine on its way in each NodePool that no policy declares."""
    for said in case.get("elsewhere", []):
        labels = {names.KARPENTER_POOL: said["pool"]}
        has = {names.NVIDIA_GPU: str(said.get("gpus", 0)), "cpu": "64", "memory": "256Gi", "pods": "110"}
        name = f"claim-{said['pool']}"
        node = f"{said['pool']}-000" if "came" in said else ""
        made = timestamp(after(-said.get("came", said.get("age", 5))))
        conditions = (Condition("Initialized", "Unknown"),)
        amounts: Json = {"allocatable": {} if said.get("vague") else has}
        yield builders.claim(
            name, labels=labels, creation_timestamp=made, node_name=node, conditions=conditions, **amounts
        )


def _nodes_of_others(case: Json) -> Iterator[Node]:
    """Of those machines whose nodes have come: not ready, and without their GPUs."""
    for said in (each for each in case.get("elsewhere", []) if "came" in each):
        labels = {names.KARPENTER_POOL: said["pool"]}
        made = timestamp(after(-said["came"]))
        taints = [NodeTaint("node.kubernetes.io/not-ready", "NoSchedule"), NodeTaint(names.UNREGISTERED, "NoExecute")]
        taints += [NodeTaint(each["key"], each["effect"]) for each in said.get("startup_taints", ())]
        has = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        metadata: Json = {"creation_timestamp": made, "labels": labels}
        unready = (Condition("Ready", "False"),)
        yield builders.node(f"{said['pool']}-000", has=has, taints=tuple(taints), conditions=unready, **metadata)


def bound_pod(name: str, node: str) -> Pod:
    """One with a GPU that has come to a node."""
    return _pod(name, {"gpus": 1, "node": node})


def _daemon_sets(case: Json) -> Iterator[Workload]:
    """Of pods that are there already nothing is known but its name; where they are `forged` there is none."""
    yield from (_daemon_set(*one) for one in case.get("daemons", {}).items())
    if "daemon" in case and not case.get("forged"):
        yield Workload(Metadata("exporter", "research"), "DaemonSet")


def _daemon_set(name: str, requests: dict[str, str]) -> Workload:
    spec = PodSpec(containers=(Container(resources=ResourceRequirements(requests=requests)),))
    return Workload(Metadata(name, "kube-system"), "DaemonSet", WorkloadSpec(template=PodTemplate(spec)))
