"""Nodes and pods as tests/cases/drain/ describes them."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.fleet.snapshot.rejections import ruled_out
from reconciler.model import names
from reconciler.model.cluster.metadata import (
    Annotations,
    Condition,
    LabelSelector,
    OwnerReference,
)
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import EmptyDir, Present, Toleration, TopologySpreadConstraint, Volume
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.instant import timestamp
from reconciler.model.plan.decision import Reason, Ref
from reconciler.model.plan.guard_verdict import ObservedTaint
from reconciler.model.plan.memory import FailedPlacement
from reconciler.plan.drain.codes.blockers import PodWithoutPlace
from reconciler.plan.drain.codes.words import NodesWithoutRoom
from tests import builders
from tests.unit.fleet.devices.stage import report_of
from tests.unit.plan.scaling.stage import NOW, after

Json = dict[str, Any]
VOLUMES = {
    "emptyDir": Volume("scratch", empty_dir=EmptyDir()),
    "memory": Volume("shm", empty_dir=EmptyDir("Memory")),
    "hostPath": Volume("disk", host_path=Present()),
}


def or_nothing(said: Json | None) -> Json:
    return said or {}


def uids(nodes: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple((node, f"uid-{node}") for node in nodes)


def node_of(name: str, said: Json) -> Node:
    came = timestamp(after(-said.get("came", 3_600)))
    has = {"cpu": str(said.get("cpu", 96)), "memory": said.get("memory", "1000Gi"), "pods": "110"}
    labels = {
        names.POOL if said.get("by_hand") else names.KARPENTER_POOL: said.get("pool", "a100"),
        names.INSTANCE_TYPE: "p4d.24xlarge",
        names.CAPACITY_TYPE: said.get("bought", "on-demand"),
        names.HOSTNAME: name,
        **({names.PROVISIONER: "a100"} if said.get("labelled") else {}),
        **({names.UPGRADE_STATE: said["upgrade"]} if "upgrade" in said else {}),
        **said.get("labels", {}),
    }
    status = "Unknown" if "silent" in said else "False" if said.get("unready") else "True"
    turned = timestamp(after(-said["silent"])) if "silent" in said else came
    return builders.node(
        name,
        gpus=said.get("gpus", 8) or None,
        has=has,
        resource_version="7",
        creation_timestamp=came,
        deletion_timestamp=timestamp(NOW) if said.get("leaving") else "",
        labels=labels,
        annotations=Annotations(
            frozen_until=timestamp(after(said["frozen"])) if "frozen" in said else "",
            scale_down_disabled="true" if said.get("opted_out") else "",
            do_not_disrupt=said.get("do_not_disrupt", ""),
        ),
        unschedulable=bool(said.get("cordoned")),
        taints=tuple(_taints(said)),
        conditions=(Condition("Ready", status, last_transition_time=turned),),
    )


def _taints(said: Json) -> Iterator[NodeTaint]:
    """candidate: 600 is one for 600 s; what is no number is the value itself."""
    for trait, key, effect in (
        ("candidate", names.DRAIN_CANDIDATE, "PreferNoSchedule"),
        ("draining", names.DRAINING, "NoSchedule"),
        ("soft_draining", names.DRAINING, "PreferNoSchedule"),
    ):
        if trait in said:
            value = said[trait]
            yield NodeTaint(key, effect, str(after(-value) // 1_000) if isinstance(value, int) else value)
    if "marked" in said:
        value = "1" if said["marked"] is True else str(after(said["marked"]) // 1_000)
        yield NodeTaint(names.DELETION_TIME, "NoSchedule" if said.get("hard") else "PreferNoSchedule", value)
    if said.get("disrupted"):
        yield NodeTaint(names.DISRUPTED, "NoSchedule")
    for key in said.get("taints", ()):
        yield NodeTaint(key, "NoSchedule")


def imagined(case: Json) -> Iterator[ObservedTaint]:
    for node, said in case["nodes"].items():
        if "imagined" in or_nothing(said):
            value = str(after(-said["imagined"]) // 1_000)
            yield ObservedTaint(node, f"uid-{node}", names.DRAIN_CANDIDATE, value, "PreferNoSchedule")


def tried(case: Json) -> Iterator[tuple[str, FailedPlacement]]:
    """What was found of nodes before: s ago the last time, and the first."""
    for name, (last, first, *uid) in case.get("tried", {}).items():
        room = NodesWithoutRoom(ruled_out({"resources": {"a100 p4d": 1}}, {}))
        reason = Reason(PodWithoutPlace(pod=Ref("Pod", "team", "web-0"), node="a", ruled_out=room))
        yield name, FailedPlacement(uid[0] if uid else f"uid-{name}", after(-first), after(-last), reason)


def claims(case: Json) -> Iterator[Unstructured]:
    """web: {count: 2, gang: llama}; beside its devices what a claim says of itself."""
    for name, said in case.get("claims", {}).items():
        of_itself = {key: said[key] for key in ("suspend", "poolName", "gangRef") if key in said}
        devices = {key: said[key] for key in said if key not in of_itself}
        spec = {**of_itself, "devices": devices}
        yield Unstructured(
            "gpu.scheduling/v1", "GpuClaim", UnstructuredMetadata(name, namespace="team"), {"spec": spec}
        )


def reports(case: Json) -> Iterator[Unstructured]:
    """The GpuNodeStatuses of nodes with a `board`, in the words of tests/cases/gpu/."""
    for name, said in case["nodes"].items():
        report = report_of(or_nothing(said))
        if report is not None:
            yield msgspec.structs.replace(report, metadata=UnstructuredMetadata(name))


def annotations(kind: Json) -> Annotations:
    return Annotations(
        do_not_disrupt=kind.get("do_not_disrupt", ""),
        safe_to_evict=kind.get("safe", ""),
        safe_to_evict_local_volumes=kind.get("may_lose", ""),
        daemonset_pod=kind.get("daemon", ""),
        enable_ds_eviction=kind.get("asked", ""),
        claim=kind.get("claim", ""),
        mirror_pod="yes" if kind.get("static") else "",
        checkpoint=kind.get("checkpoint", ""),
        evict_at=_moment(kind.get("told", "")),
        checkpointed_at=_moment(kind.get("saved", "")),
    )


def _moment(said: int | str) -> str:
    """So many seconds from now; anything else is the text itself."""
    return timestamp(after(said)) if isinstance(said, int) else said


def owner(app: str, kind: Json) -> tuple[OwnerReference, ...]:
    """owner: Job, or with its API before it, batch/v1/Job."""
    version, _, owner = kind.get("owner", "ReplicaSet").rpartition("/")
    return () if owner == "none" else (OwnerReference(owner, app, f"owner-{app}", True, version),)


def pod_asks(kind: Json, gpus: str) -> Json:
    """The requests and fields of the spec of a pod, for the builder of pods."""
    return {
        "gpus": int(gpus) or None,
        "asks": {"cpu": str(kind.get("cpu", 1)), "memory": kind.get("memory", "1Gi")},
        "node_selector": kind.get("selects", {}),
        "tolerations": tuple(Toleration(key, "Exists") for key in kind.get("bears", [])),
        "volumes": tuple(VOLUMES[each] for each in kind.get("volumes", [])),
        "termination_grace_period_seconds": kind.get("grace"),
        "topology_spread_constraints": _spread(kind),
        "host_network": bool(kind.get("odd")),
        "host_users": False if kind.get("odd") else None,
    }


def _spread(kind: Json) -> tuple[TopologySpreadConstraint, ...]:
    """spread: web says that pods of web are spread over nodes, one more on one than on another at most."""
    if "spread" not in kind:
        return ()
    taints = "Honor" if kind.get("honors_taints") else "Ignore"
    selector = LabelSelector({"app": kind["spread"]})
    return (TopologySpreadConstraint(1, names.HOSTNAME, "DoNotSchedule", selector, node_taints_policy=taints),)
