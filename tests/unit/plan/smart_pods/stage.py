"""Smart pods and who waits for them, as tests/cases/smart_pods/ describes them; see the top of its files."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Metadata, OwnerReference
from reconciler.model.cluster.node import NodeClaim, NodeClaimRequirement, NodeTaint
from reconciler.model.cluster.pod import LocalObjectReference, Pod, PodSpec
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import SmartPod
from reconciler.model.instant import timestamp
from reconciler.model.plan.capacity import PoolShortfall, Shortage
from reconciler.model.plan.decision import Decision, Reason, Ref, Taint
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.offerings import digest_of
from reconciler.plan.capacity.requests import CapacityRequest, tag_of
from reconciler.plan.check import check
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.drain.codes.emptying import Drained, DrainedNodeNeeded, PodsWaitForCapacity
from reconciler.plan.planner import plan
from reconciler.plan.scaling.planner import scaling
from reconciler.plan.smart_pods.planner import smart_pods
from tests import builders, folders
from tests.unit.plan.scaling.stage import MACHINE, NOW, POLICY, World, after
from tests.unit.plan.smart_pods import restricted

FOLDER = folders.CASES / "smart_pods"

Json = dict[str, Any]

_RETURNED = Reason(DrainedNodeNeeded(node="it", pool="a100", lacks=1, why=Reason(PodsWaitForCapacity())))
_DRAINED = Reason(Drained(node="it", since=NOW))


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


class SmartWorld:
    """What a case describes."""

    def __init__(self, case: Json) -> None:
        self._case = case
        world = World({**case, "pending": [_gated(each) for each in case.get("pending", [])]}).inputs
        pools = world.desired.pools
        templates = [_template(pool.name, each.name) for pool in pools for each in pool.spec.instance_types]
        provisioners = () if case.get("unscaled") else world.desired.provisioners
        self._returned = case.get("returned", [])
        desired = msgspec.structs.replace(world.desired, smart_pods=tuple(templates), provisioners=provisioners)
        smart = [self._smart(each) for each in case.get("smart", [])]
        bought = [self._claim(each, pod) for each, pod in zip(case.get("smart", []), smart, strict=True)]
        nodes = tuple(_awaited(node, case) for node in world.observed.nodes)
        owned = {f"claim-{node.name}" for node in nodes if node.metadata.owner_references}
        others = (each for each in world.observed.node_claims if each.name not in owned)
        observed = msgspec.structs.replace(
            world.observed,
            nodes=nodes,
            pods=(*world.observed.pods, *smart),
            node_claims=(*others, *(each for each in bought if each is not None)),
            policies=tuple(_claims_of(case.get("claims", []))),
        )
        asked = {pool.name: digest_of(pool.spec) if not case.get("changed") else "before" for pool in pools}
        shortages = tuple(sorted(_shortage(each, asked) for each in case.get("short", [])))
        lacking = (PoolShortfall("a100", after(-case["lacks_since"])),) if "lacks_since" in case else ()
        memory = msgspec.structs.replace(world.memory, shortages=shortages, lacking=lacking)
        self.inputs = Inputs(desired, observed, NOW, memory)

    def planned(self) -> Plan:
        """What comes of it; no invariant is broken by it."""
        fleet = Fleet(self.inputs.observed)
        made = plan(self.inputs, fleet, (scaling, self._drain, smart_pods))
        check(self.inputs, fleet, made)
        return made

    def _drain(self, inputs: Inputs, draft: Draft) -> Verdict:
        """Stands for a planner that takes nodes away without a look at who is let onto them, and gives others back."""
        taken = [node for node in inputs.observed.nodes if node.name in self._case.get("taken", ())]
        act = Taint(key=names.DRAINING, value="1", effect="NoSchedule")
        found = [
            Decision("drain", Ref("Node", "", each.name, each.metadata.uid), act, _DRAINED, each.pool) for each in taken
        ]
        for name in (f"a100-{at:03}" for at in self._returned):
            (node,) = [each for each in inputs.observed.nodes if each.name == name]
            off = Taint(key=names.DRAINING, value=None, effect="NoSchedule")
            subject = Ref("Node", "", name, node.metadata.uid)
            found.append(Decision("drain", subject, off, _RETURNED, "a100"))
        return Verdict(tuple(found))

    def _smart(self, said: Json) -> Pod:
        request = request_for(said)
        annotations = Annotations(
            original_request=said.get("request", msgspec.json.encode(request).decode()),
            phase=said.get("phase", "Pending"),
            node_claim=said.get("had", ""),
            since=str(after(-said["since"]) // 1000) if "since" in said else "",
        )
        labels = {names.COMPONENT: "smart-scheduler", names.MANAGED: "true", names.POOL: said.get("pool", "a100")}
        metadata = Metadata(
            said.get("named", request.name),
            said.get("namespace", names.SMART_PODS_NAMESPACE),
            f"uid-{request.name}",
            "5",
            creation_timestamp=timestamp(after(-said.get("age", 1))),
            deletion_timestamp=timestamp(NOW) if said.get("leaving") else "",
            labels=labels,
            annotations=annotations,
        )
        node = f"a100-{said['runs_on']:03}" if "runs_on" in said else ""
        body = msgspec.json.decode(_template("a100", MACHINE).body)["spec"]
        body["containers"][0]["resources"]["requests"][names.NVIDIA_GPU] = str(said.get("holds", 8))
        spec = msgspec.structs.replace(msgspec.convert(body, PodSpec), node_name=node)
        seen = after(-int(said.get("seen") or said.get("age", 1)))
        condition = Condition("PodScheduled", "False", "Unschedulable", timestamp(seen))
        pod = Pod(metadata, spec)
        phase = said.get("ended") or ("Running" if node else "Pending")
        conditions = () if node or said.get("unseen") else (condition,)
        return msgspec.structs.replace(
            pod, status=msgspec.structs.replace(pod.status, phase=phase, conditions=conditions)
        )

    def _claim(self, said: Json, pod: Pod) -> NodeClaim | None:
        if "bought" not in said:
            return None
        labels = {names.KARPENTER_POOL: "a100"}
        if said.get("launched"):
            labels |= {names.INSTANCE_TYPE: MACHINE, names.CAPACITY_TYPE: said["kind"], names.ZONE: "eu-1a"}
        bought = timestamp(after(-int(said.get("bought_ago", 0))))
        return builders.claim(
            said["bought"],
            labels=labels,
            creation_timestamp=bought,
            requirements=(NodeClaimRequirement(tag_of(pod.name)),),
            node_name=f"a100-{said['node']:03}" if "node" in said else "",
            conditions=(Condition("Initialized", "Unknown"),),
        )


def request_for(said: Json) -> CapacityRequest:
    """a smart pod for the pod wait-0-0 unless it says otherwise."""
    pods = tuple(f"uid-{each}" for each in said.get("for", ["wait-0-0"]))
    key = said.get("key") or (min(pods) if pods else "minSize/0")
    return CapacityRequest(
        key=key,
        pool=said.get("pool", "a100"),
        model="a100",
        count=said.get("gpus", 8),
        why="demand" if pods else "minSize",
        instance_type=said.get("machine", MACHINE),
        capacity_type=said.get("kind", ""),
        zone=said.get("zone", ""),
        vram="320Gi",
        pods=pods,
    )


def _gated(said: Json) -> Json:
    """Pods wait behind our gate unless they say otherwise."""
    return said if "gates" in said or said.get("seen") is not None else {"gates": [names.CAPACITY_GATE], **said}


def _template(pool: str, machine: str) -> SmartPod:
    labels = {names.COMPONENT: "smart-scheduler", names.MANAGED: "true", names.POOL: pool}
    selector = {names.KARPENTER_POOL: pool, names.INSTANCE_TYPE: machine}
    amounts = {"cpu": "100m", "memory": "64Mi", names.NVIDIA_GPU: "8"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "placeholder", "namespace": names.SMART_PODS_NAMESPACE, "labels": labels},
        "spec": {
            "nodeSelector": selector,
            "tolerations": [{"key": names.ARRIVING, "operator": "Exists"}],
            "containers": [{**restricted.CONTAINER, "resources": {"requests": amounts, "limits": amounts}}],
            **restricted.POD,
        },
    }
    return SmartPod(pool, machine, msgspec.json.encode(body, order="sorted").decode(), POLICY)


def _awaited(node: Any, case: Json) -> Any:
    """Nodes bear gpu.scheduling/arriving where the case says so; see `awaited` of the table."""
    more = [NodeTaint(key, "NoSchedule") for key in case.get("also_taints", {}).get(node.name, [])]
    spec = msgspec.structs.replace(node.spec, taints=(*node.spec.taints, *more))
    owners = [each["bought"] for each in case.get("smart", []) if f"a100-{each.get('becomes', -1):03}" == node.name]
    references = tuple(OwnerReference("NodeClaim", each) for each in owners)
    metadata = msgspec.structs.replace(node.metadata, owner_references=references)
    return msgspec.structs.replace(node, metadata=metadata, spec=spec)


def _claims_of(said: Any) -> Iterator[Unstructured]:
    """Either claim/gang for each, or by name what a GpuClaim says."""
    if isinstance(said, list):
        said = {name: {"gangRef": gang} for name, gang in (each.split("/") for each in said)}
    for name, spec in said.items():
        metadata = UnstructuredMetadata(f"claim-{name}", "research")
        yield Unstructured("gpu.scheduling/v1", "GpuClaim", metadata, {"spec": {"devices": {"count": 1}, **spec}})


def _shortage(said: Json, asked: dict[str, str]) -> Shortage:
    since, pool = after(-said.get("since", 60)), said.get("pool", "a100")
    return Shortage(
        pool,
        said.get("machine", MACHINE),
        said.get("kind", ""),
        said.get("zone", ""),
        since,
        after(said.get("until", 540)),
        asked[pool],
        "SmartPodWithoutMachine",
    )


def gated(name: str) -> LocalObjectReference:
    return LocalObjectReference(name)
