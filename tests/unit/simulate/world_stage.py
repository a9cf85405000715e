"""An imagined cluster in which we and others write in turn: what may be decided, what others do, and what is theirs."""

from typing import Any

import hypothesis.strategies as st
import msgspec

from reconciler.model import names
from reconciler.model.plan.decision import (
    Act,
    Annotate,
    Apply,
    Bind,
    Decision,
    Delete,
    Evict,
    Label,
    LentDevice,
    Preconditions,
    Ref,
    Resize,
    Status,
    Taint,
    Ungate,
)
from reconciler.simulate.world import World
from tests.contract import objects
from tests.unit.plan.some_reasons import some_reason

Object = dict[str, Any]

NODE, POOL, POLICY = "node", "pool", "policy"
GATED, FREE, BUSY = "gated", "free", "busy"
MAKERS = {
    NODE: objects.node,
    POOL: objects.node_pool,
    POLICY: objects.gpu_pool,
    GATED: objects.gated,
    FREE: objects.waiting,
    BUSY: objects.running,
}
HELM = "helm"

values = st.sampled_from(["1", "2", None])
our_keys = st.sampled_from([names.PROVISIONER, names.POOL])
their_keys = st.sampled_from(["example.com/a", "example.com/b"])
effects = st.sampled_from(["NoSchedule", "PreferNoSchedule"])


def ref_of(target: str, uid: str = "") -> Ref:
    """Each is called as its maker's key says."""
    body = MAKERS[target](target)
    return Ref(body["kind"], body["metadata"].get("namespace", ""), target, uid)


def world() -> World:
    """With a node, a pool, a policy, and pods: one behind a gate, one to be bound, one that a budget keeps."""
    found = World()
    for target, make in MAKERS.items():
        found.put(make(target), "kubectl-edit")
    found.put(objects.budget("budget", BUSY))
    return found


UIDS = {target: (world().get(ref_of(target)) or {})["metadata"]["uid"] for target in MAKERS}


def _manifest(weight: int | None, cpu: str | None, labels: dict[str, str]) -> str:
    metadata = {"name": POOL, "labels": {names.MANAGED: "true", **labels}}
    spec: Object = {"weight": weight} if weight else {}
    if cpu:
        spec["limits"] = {"cpu": cpu, "memory": "1Ti"}
    body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": spec}
    return msgspec.json.encode(body, order="sorted").decode()


_manifests = st.builds(
    _manifest,
    st.sampled_from([None, 7, 8]),
    st.sampled_from([None, None, "10"]),
    st.dictionaries(our_keys, st.sampled_from(["1", "2"])),
)
_texts = st.lists(st.tuples(our_keys, values), min_size=1, max_size=2, unique_by=lambda each: each[0]).map(tuple)
_annotated = st.builds(Annotate, annotations=_texts)
_labelled = st.builds(Label, labels=_texts)
_LENT = (LentDevice("l-0", 0), LentDevice("l-1", 1))
_bound = st.just(Bind(node=NODE, leases=_LENT, annotations=(("gpu.scheduling/devices", "GPU-0"),)))
_resized = st.builds(Resize, resources=st.sampled_from([(("cpu", 250),), (("cpu", 100),)]))
_ACTS: dict[str, list[st.SearchStrategy[Act]]] = {
    NODE: [st.builds(Taint, key=st.just(names.DRAINING), value=values, effect=effects), _labelled, _annotated],
    POOL: [st.builds(Apply, manifest=_manifests), st.builds(Apply, manifest=_manifests), _labelled],
    POLICY: [st.sampled_from(["{}", '{"problems":"none"}', '{"nodes":2}']).map(lambda body: Status(body=body))],
    GATED: [st.just(Ungate(gate="gpu.scheduling/claim")), _annotated, _bound],
    FREE: [_bound, _resized, _annotated],
    BUSY: [st.just(Evict(grace_seconds=5)), _resized, _labelled],
}


@st.composite
def decisions(draw: st.DrawFn, with_ends: bool = False) -> Decision:
    """About what is there, or was; presuming what is so, mostly, or is not."""
    target = draw(st.sampled_from(sorted(MAKERS)))
    is_end = with_ends and draw(st.integers(0, 5)) == 0
    act = Delete() if is_end else draw(st.one_of(_ACTS[target]))
    version = draw(st.sampled_from(["", "", "", "", "6"]))
    uid = draw(st.sampled_from(["", UIDS[target], UIDS[target], "uid-of-another"]))
    fields = draw(st.sampled_from([(), (), (), (("metadata.labels[example.com/a]", "1"),)]))
    act = msgspec.structs.replace(act, presumes=Preconditions(resource_version=version, fields=fields))
    return Decision("tests", ref_of(target, uid), act, some_reason("Any"))  # type: ignore[arg-type]  # no hold is drawn


class Edit(msgspec.Struct, frozen=True):
    """What another writes; a taint stands for the list with it in, or out."""

    target: str
    patch: Object
    taint: tuple[str, str] | None = None


def _edit(target: str, field: str, key: str, value: str | None) -> Edit:
    return Edit(target, {"metadata": {field: {key: value}}})


edits = st.one_of(
    st.builds(_edit, st.sampled_from(sorted(MAKERS)), st.sampled_from(["labels", "annotations"]), their_keys, values),
    st.builds(lambda key, effect: Edit(NODE, {}, (key, effect)), their_keys, effects),
    st.builds(lambda cpu: Edit(POOL, {"spec": {"limits": {"cpu": cpu}}}), st.sampled_from(["10", "20", None])),
    st.builds(lambda weight: Edit(POOL, {"spec": {"weight": weight}}), st.sampled_from([8, 9, None])),
)


def by_another(world: World, edit: Edit) -> None:
    ref = ref_of(edit.target)
    found = world.get(ref)
    if found is None:
        return
    patch = edit.patch
    if edit.taint:
        key, effect = edit.taint
        taints = found["spec"].get("taints") or []
        left = [each for each in taints if (each["key"], each["effect"]) != edit.taint]
        patch = {"spec": {"taints": left if len(left) < len(taints) else [*taints, {"key": key, "effect": effect}]}}
    world.edit(ref, patch, HELM)


def theirs(world: World) -> Object:
    """All that is not ours to touch: labels, annotations and taints of other domains, and fields that others set."""
    told: Object = {}
    for target in sorted(MAKERS):
        found = world.get(ref_of(target))
        if found is None:
            continue
        metadata, spec = found["metadata"], found["spec"]
        told[target] = {
            field: {key: value for key, value in (metadata.get(field) or {}).items() if not key.startswith(names.OURS)}
            for field in ("labels", "annotations")
        }
        told[target]["taints"] = [each for each in spec.get("taints") or () if not each["key"].startswith(names.OURS)]
        told[target]["gates"] = [each for each in spec.get("schedulingGates") or () if "example.com" in each["name"]]
        told[target]["fields"] = _set_by_others(found)
    return told


def _set_by_others(found: Object) -> Object:
    """The values of those fields of a NodePool's spec that another than we owns."""
    entries = found["metadata"].get("managedFields") or ()
    owned = [each["fieldsV1"].get("f:spec", {}) for each in entries if each["manager"] != names.FIELD_MANAGER]
    if found["kind"] != "NodePool":
        return {}
    spec = found["spec"]
    weight = {"weight": spec.get("weight")} if any("f:weight" in each for each in owned) else {}
    limits = {key[2:] for each in owned for key in each.get("f:limits", {})}
    return {**weight, "limits": {key: (spec.get("limits") or {}).get(key) for key in sorted(limits)}}


def everything(world: World, plainly: bool = False) -> list[Object]:
    """Each object there is; plainly: without what depends on how often was written."""
    refs = [ref_of(target) for target in sorted(MAKERS)]
    refs += [Ref("Lease", names.LEASES_NAMESPACE, name) for name in ("l-0", "l-1")]
    refs.append(Ref("PodDisruptionBudget", "default", "budget"))
    found = [each for each in map(world.get, refs) if each is not None]
    return [_plain(each) if plainly else each for each in found]


def _plain(body: Object) -> Object:
    told = {"resourceVersion", "uid", "generation", "creationTimestamp"}
    metadata = {key: value for key, value in body["metadata"].items() if key not in told}
    spec = {key: value for key, value in (body.get("spec") or {}).items() if key != "leaseTransitions"}
    return {**body, "metadata": metadata} | ({"spec": spec} if "spec" in body else {})
