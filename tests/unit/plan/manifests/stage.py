"""A small cluster for the planner of manifests, as tests/cases/manifests/*.yaml describe it; see the top of each."""

from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Metadata
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import ManagedFields, Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import Devices, GpuPool, InstanceType, NodeClassRef
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.karpenter.template_hash import HASH_VERSION, template_hash
from reconciler.plan.manifests.planner import manifests
from tests import builders, folders

FOLDER = folders.CASES / "manifests"
POLICY = Origin("policies/a100.yaml", 4, "4c1f9e2")
MACHINE = "p4d.24xlarge"

Json = dict[str, Any]

WISHED: Json = yaml.safe_load("""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: a100}
spec:
  template:
    metadata: {labels: {team: research}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: lab}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [p4d.24xlarge]}]
      expireAfter: Never
  limits: {cpu: "960"}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets: [{nodes: "0", reasons: [Empty, Underutilized]}, {nodes: 10%, reasons: [Drifted]}]
""")


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


def patched(under: Any, over: Any) -> Any:
    """A merge patch: null takes away."""
    if not isinstance(over, dict):
        return over
    both = dict(under) if isinstance(under, dict) else {}
    both |= {key: patched(both.get(key), value) for key, value in over.items()}
    return {key: value for key, value in both.items() if value is not None}


def fields_of(value: Any, path: tuple[str, ...] = ()) -> Json:
    """fieldsV1 of what was applied, as the API server notes it for a NodePool."""
    if not isinstance(value, dict) or (path[:1] == ("spec",) and path[-2:] == ("metadata", "labels")):
        return {}
    known = {"apiVersion", "kind", "name"} if path in {(), ("metadata",)} else set()
    return {f"f:{key}": fields_of(each, (*path, key)) for key, each in value.items() if key not in known}


def whole(body: Json, managed: dict[str, Json] | None = None, **metadata: Any) -> Unstructured:
    """An object of the cluster; `managed` is what each manager set."""
    told = body["metadata"]
    entries = tuple(
        ManagedFields(who, "Apply" if who == names.FIELD_MANAGER else "Update", "", fields)
        for who, fields in (managed or {}).items()
    )
    found = UnstructuredMetadata(
        name=told["name"],
        namespace=told.get("namespace", ""),
        uid=f"uid-{told['name']}",
        resource_version="7",
        labels=told.get("labels", {}),
        annotations=told.get("annotations", {}),
        managed_fields=entries,
    )
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
    return Unstructured(body["apiVersion"], body["kind"], msgspec.structs.replace(found, **metadata), rest)


def manifest(body: Json, pool: str = "a100") -> Manifest:
    metadata = body["metadata"]
    text = msgspec.json.encode(body, order="sorted").decode()
    return Manifest(
        body["kind"], metadata.get("namespace", ""), metadata["name"], text, pool, POLICY, Origin("t.yaml.j2", 1, "")
    )


def pool(name: str, said: Json) -> Declared[GpuPool]:
    spec = GpuPool(
        devices=Devices(model="a100", count=8, memory=Quantity.parse("40Gi")),
        instance_types=[InstanceType(name=MACHINE)],
        node_class_ref=NodeClassRef(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="lab"),
        **{"mode": "Enforce", **said},
    )
    return Declared("GpuPool", name, spec, (("", POLICY),))


def inventory(body: Json, name: str = "a100", adopted: bool = False) -> Json:
    """As we apply it."""
    said: Json = {"labels": {names.MANAGED: "true", names.POOL: name}, "annotations": {names.ENVIRONMENT: "prod"}}
    if adopted:
        said["annotations"] |= {names.ADOPTED: "true"}
    found: Json = patched(body, {"metadata": said})
    return found


def live_node_pool(case: Json) -> Unstructured:
    """The NodePool a100: ours, and as it is wished, unless the case says otherwise."""
    adopted, theirs = case.get("adopted", False), case.get("theirs", False)
    applied = inventory(patched(WISHED, case.get("applied", {})), adopted=adopted)
    body = patched(WISHED if theirs else applied, case.get("live", {}))
    managed = {} if theirs else {names.FIELD_MANAGER: fields_of(applied)}
    managed |= {who: fields_of(each) for who, each in case.get("managers", {}).items()}
    # Karpenter writes these by itself.
    hashes = {names.POOL_HASH: template_hash(body["spec"]["template"]), names.POOL_HASH_VERSION: HASH_VERSION}
    body = patched(body, {"metadata": {"annotations": hashes}})
    leaving = "2026-11-02T08:00:00Z" if case.get("leaving") else ""
    return whole(body, None if case.get("unmanaged") else managed, deletion_timestamp=leaving)


def claims(case: Json, node_pool: Unstructured) -> list[NodeClaim]:
    """`nodes` of them, the last `drifted` of which are drifted because of their image."""
    borne = node_pool.metadata.annotations[names.POOL_HASH]
    if case.get("claims_of_the_wish"):  # they were made before the NodePool was edited
        borne = template_hash(patched(WISHED, case.get("wish", {}))["spec"]["template"])
    hashed = Annotations(pool_hash=borne, pool_hash_version=HASH_VERSION)
    found = []
    for at in range(case.get("nodes", 0)):
        machine = case.get("machines", [MACHINE])
        labels = {names.KARPENTER_POOL: node_pool.name, names.INSTANCE_TYPE: machine[at % len(machine)]}
        conditions = [Condition("Launched", "True")]
        if at >= case["nodes"] - case.get("drifted", 0):
            conditions.append(Condition("Drifted", "True", "NodeClassDrift"))
        elif case.get("claims_of_the_wish"):
            conditions.append(Condition("Drifted", "True", "NodePoolDrifted"))
        of_node: Json = {"node_name": f"node-{at}", "provider_id": f"kwok://{at}", "conditions": tuple(conditions)}
        found.append(builders.claim(f"claim-{at}", labels=labels, annotations=hashed, **of_node))
    return found


def nodes(case: Json, name: str = "a100") -> list[Node]:
    """`nodes` of them with 8 GPUs each and the labels `node_labels`; the first `nodes_leaving` are being deleted."""
    found = []
    for at in range(case.get("nodes", 0)):
        labels = {names.KARPENTER_POOL: name, names.INSTANCE_TYPE: MACHINE, **case.get("node_labels", {})}
        leaving = "2026-11-02T08:00:00Z" if at < case.get("nodes_leaving", 0) else ""
        metadata: Json = {"resource_version": f"{at + 20}", "labels": labels, "deletion_timestamp": leaving}
        found.append(builders.node(f"node-{at}", gpus=8, has={"pods": "110"}, **metadata))
    return found


def pods(case: Json) -> list[Pod]:
    """One on each of the first `busy` nodes, with all GPUs."""
    return [
        builders.pod(f"train-{at}", gpus=8, namespace="research", node_name=f"node-{at}")
        for at in range(case.get("busy", 0))
    ] + [Pod(each) for each in strangers(case, "Pod")]


def strangers(case: Json, kind: str) -> list[Metadata]:
    """What `strangers` names of the kind, made by someone else."""
    named = [title.split("/") for title in case.get("strangers", [])]
    return [Metadata(name, namespace=namespace) for found, namespace, name in named if found == kind]


def approvals(case: Json) -> list[Unstructured]:
    """`approvals` agree to lose what they list; their specs may say more."""
    found = []
    for name, said in case.get("approvals", {}).items():
        body = {"apiVersion": "gpu.scheduling/v1", "kind": "ChangeApproval", "metadata": {"name": name}}
        spec = {"expires": "2026-10-27T00:00:00Z", **said}
        found.append(whole({**body, "spec": spec}))
    return found


def inputs_of(case: Json) -> Inputs:
    """What the case describes."""
    absent = case.get("live") == "absent"
    there = live_node_pool({**case, "live": {}} if absent else case)
    kept = [whole(each, case.get("kept_managed")) for each in case.get("kept", [])]
    wished = [patched(WISHED, case.get("wish", {}))] if case.get("wish") != "nothing" else []
    pools = case.get("pools", {"a100": {}})
    observed = Observed(
        nodes=tuple(nodes(case)),
        pods=tuple(pods(case)),
        budgets=tuple(PodDisruptionBudget(each) for each in strangers(case, "PodDisruptionBudget")),
        node_pools=() if absent else (there,),
        node_claims=tuple(claims(case, there)),
        kept=tuple(kept),
        policies=tuple(approvals(case)),
        unread=tuple(Unread(kind, why) for kind, why in case.get("unread", {}).items()),
        absent=tuple(case.get("not_served", [])),
    )
    desired = Desired(
        "4c1f9e2",
        "prod",
        pools=tuple(pool(*each) for each in sorted(pools.items())),
        manifests=(
            *(manifest(each) for each in (*wished, *case.get("others", []))),
            *(manifest(each, pool="") for each in case.get("shared", [])),
        ),
    )
    return Inputs(desired, observed, Instant(1_793_000_000_000), prune=tuple(case.get("prune", [])))


def decide(inputs: Inputs) -> Verdict:
    return manifests(inputs, Draft(Fleet(inputs.observed), inputs.desired))
