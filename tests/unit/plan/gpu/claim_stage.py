"""A cluster with GpuClaims and their published statuses, in the words of tests/cases/gpu/claims.yaml."""

from typing import Any

import jsonschema
import msgspec

from reconciler.fleet.devices.device_lease import lease_name
from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.gpu.claim_report import ClaimReport
from reconciler.plan.gpu.planner import gpu
from reconciler.plan.planner import plan
from reconciler.policy.rules.kinds import GPU_CLAIM
from reconciler.report.claim_status import claim_statuses
from reconciler.schema.crd import crd_of
from tests import builders
from tests.unit.fleet.devices.stage import report_of
from tests.unit.plan.scaling.stage import NOW

Json = dict[str, Any]

_HAS = {"cpu": "96", "memory": "960Gi", "pods": "100"}
_AGO = timestamp(Instant(NOW - 300_000))


class ClaimWorld:
    """The inputs of a case, its plan, and the statuses that are published."""

    def __init__(self, case: Json) -> None:
        nodes = case.get("nodes", {})
        pods = [_pod(name, words) for name, words in case.get("pods", {}).items()]
        leases = [
            _lease(words.get("at") or words["binds"], device, name, case.get("uuids", True))
            for name, words in case.get("pods", {}).items()
            for device in words.get("has", ())
        ]
        reports = [
            Unstructured("gpu.scheduling/v1", "GpuNodeStatus", UnstructuredMetadata(name), found.rest)
            for name, words in nodes.items()
            if (found := report_of(words)) is not None
        ]
        claims = [_claim(name, words) for name, words in case.get("claims", {}).items()]
        pools = tuple(_pool(name, words or {}) for name, words in sorted(case.get("pools", {"a100": {}}).items()))
        provisioners = tuple(
            _provisioner(name, words["max"])
            for name, words in sorted(case.get("pools", {}).items())
            if words and "max" in words
        )
        observed = Observed(
            seen_at=NOW,
            nodes=tuple(_node(name, words) for name, words in nodes.items()),
            pods=tuple(pods),
            leases=tuple(leases),
            policies=(*reports, *claims),
            unread=tuple(Unread(each, "forbidden") for each in case.get("unread", ())),
        )
        self.inputs = Inputs(Desired("r", "base", pools=pools, provisioners=provisioners), observed, NOW)
        self._planners = None if case.get("planners") == "all" else (gpu,)

    def planned(self) -> Plan:
        return plan(self.inputs, Fleet(self.inputs.observed), self._planners)

    def report(self) -> ClaimReport:
        return self.planned().report(ClaimReport)

    def statuses(self) -> dict[str, Json]:
        """By claim, the status that is written."""
        found = claim_statuses(self.inputs, self.planned())
        return {each.decision.subject.name: msgspec.json.decode(each.decision.act.body) for each in found}  # type: ignore[union-attr]

    def published(self) -> "ClaimWorld":
        """The same world after the statuses are written."""
        statuses = {name: as_stored(each) for name, each in self.statuses().items()}
        policies = tuple(
            msgspec.structs.replace(each, rest={**each.rest, "status": statuses[each.name]})
            if each.kind == "GpuClaim" and each.name in statuses
            else each
            for each in self.inputs.observed.policies
        )
        after = ClaimWorld({})
        observed = msgspec.structs.replace(self.inputs.observed, policies=policies)
        after.inputs, after._planners = msgspec.structs.replace(self.inputs, observed=observed), self._planners
        return after


def as_stored(status: Json) -> Json:
    """The status as the API server stores it: checked by the CustomResourceDefinition, with its defaults."""
    _VALIDATOR.validate(status)
    stored: Json = _defaulted(status, _SCHEMA)
    # Server-side apply may change the order of lists with keys.
    return {**stored, "allocations": stored["allocations"][::-1]}


(_VERSION,) = crd_of(GPU_CLAIM)["spec"]["versions"]
_SCHEMA: Json = _VERSION["schema"]["openAPIV3Schema"]["properties"]["status"]
_VALIDATOR = jsonschema.Draft202012Validator(_SCHEMA)


def _defaulted(value: Any, schema: Json) -> Any:
    if isinstance(value, list):
        return [_defaulted(each, schema["items"]) for each in value]
    if not isinstance(value, dict):
        return value
    properties = schema["properties"]
    assert value.keys() <= properties.keys(), "the API server drops other fields"
    defaults = {key: each["default"] for key, each in properties.items() if "default" in each and key not in value}
    return {**{key: _defaulted(each, properties[key]) for key, each in value.items()}, **defaults}


def line_of(allocation: Json) -> str:
    """train Bound a:0,1 600 GB/s of 600 in one island | next Waiting GpusLacking."""
    parts = [allocation["pod"], allocation["phase"]]
    if "node" in allocation:
        parts.append(f"{allocation['node']}:{','.join(map(str, allocation['devices']))}")
    score = allocation.get("score", {})
    if "bandwidthGBps" in allocation:
        parts.append(f"{allocation['bandwidthGBps']} GB/s of {score['bestGBps']}")
    if "oneIsland" in score:
        parts.append("in one island" if score["oneIsland"] else "in several islands")
    return " ".join([*parts, *filter(None, [allocation.get("reason")])])


def _pool(name: str, words: Json) -> Declared[GpuPool]:
    spec = GpuPool(
        mode=words.get("mode", "Enforce"),
        suspend=words.get("suspend", False),
        allocation=words.get("allocation", "agent"),
        devices=Devices(
            model=words.get("model", name),
            count=words.get("gpus", 8),
            memory=Quantity.parse(words.get("memory", "80Gi")),
        ),
        instance_types=[
            InstanceType(name="p4d.24xlarge", capacity={key: Quantity.parse(text) for key, text in _HAS.items()})
        ],
        node_class_ref=NodeClassRef(group="example.com", kind="NodeClass", name="gpu"),
        limits={key: Quantity.parse(str(text)) for key, text in words.get("limits", {}).items()},
    )
    return Declared("GpuPool", name, spec, (("", Origin("gpu.yaml", 1)),))


def _provisioner(name: str, most: int) -> Declared[NodeProvisioner]:
    spec = NodeProvisioner(pool_name=name, min_size=0, max_size=most, min_gpu_utilization_percent=70)
    return Declared("NodeProvisioner", name, spec, (("", Origin("gpu.yaml", 9)),))


def _node(name: str, words: Json) -> Node:
    report = report_of(words)
    gpus = words.get("gpus", 8 if report is None else len(report.rest["status"]["devices"]))
    return builders.node(
        name,
        gpus=gpus,
        has=_HAS,
        labels={names.POOL: words.get("pool", "a100")},
        unschedulable=words.get("cordoned", False),
        conditions=(Condition("Ready", "False" if words.get("down") else "True", "", _AGO),),
    )


def _claim(name: str, words: Any) -> Unstructured:
    said = dict(words) if isinstance(words, dict) else {"count": words}
    spec = {key: said.pop(key) for key in ("suspend", "poolName") if key in said}
    return Unstructured(
        "gpu.scheduling/v1",
        "GpuClaim",
        UnstructuredMetadata(name, "team", uid=f"uid-{name}", generation=1),
        {"spec": {**spec, "devices": said}},
    )


def _pod(name: str, words: Json) -> Pod:
    annotations = Annotations(claim=words.get("claim", "one"))
    lacks = (Condition("PodScheduled", "False", "Unschedulable", _AGO),)
    pod = builders.pod(
        name,
        namespace="team",
        gpus=words.get("gpus", 1),
        node_name=words.get("at", ""),
        annotations=annotations,
        creation_timestamp=_AGO,
        conditions=() if words.get("at") else lacks,
    )
    phase = words.get("phase", pod.status.phase)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase))


def _lease(node: str, device: int, pod: str, has_uuid: bool) -> Lease:
    uuid = f"GPU-{device}" if has_uuid else ""
    metadata = Metadata(
        lease_name(node, device),
        names.LEASES_NAMESPACE,
        uid=f"uid-lease-{node}-{device}",
        resource_version="100",
        creation_timestamp=timestamp(NOW),
        labels={names.MANAGED: "true"},
        annotations=Annotations(device=str(device), device_uuid=uuid, holder=f"team/{pod}", claim="one"),
        owner_references=(OwnerReference("Node", node, f"uid-{node}"),),
    )
    return Lease(metadata, LeaseSpec(f"uid-{pod}"))
