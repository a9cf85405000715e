"""Attempts on nodes, and on what makes nodes."""

from reconciler.model import names
from tests.stages.abuses.attempt import (
    APPLY,
    NOTHING,
    POLICY,
    RBAC,
    SERVER,
    Attempt,
    deleted,
    made,
    patched,
    read,
)
from tests.stages.abuses.scene import FROZEN, OURS, ROLE, THEIR_TAINT, node_pool

_GPU, _CONTROL_PLANE = "/api/v1/nodes/gpu-0", "/api/v1/nodes/control-plane-0"
_POOLS = "/apis/karpenter.sh/v1/nodepools"
_DRAINING = {"key": names.DRAINING, "value": "1", "effect": "NoSchedule"}
_EVICTING = {"key": names.DRAINING, "value": "1", "effect": "NoExecute"}


def _edited(title: str, patch: dict, *stopped: str, node: str = _GPU) -> Attempt:  # type: ignore[type-arg]
    return patched(title, node, patch, *(stopped or (POLICY,)))


def _taints(*taints: dict[str, str]) -> dict:  # type: ignore[type-arg]
    return {"spec": {"taints": list(taints)}}


def _label(key: str, value: str | None) -> dict:  # type: ignore[type-arg]
    return {"metadata": {"labels": {key: value}}}


NODES = (
    _edited("label a node", _label("example.com/team", "other")),
    _edited("take another's label off a node", _label("example.com/team", None)),
    _edited("make a worker a control plane node", _label(ROLE, "")),
    _edited("put a node into another NodePool", _label(names.KARPENTER_POOL, "theirs")),
    _edited("put a node into a pool", _label(names.POOL, "a100")),
    _edited("annotate a node", {"metadata": {"annotations": {"example.com/a": "b"}}}),
    _edited("take the freeze off a node", {"metadata": {"annotations": dict.fromkeys(FROZEN)}}),
    _edited("put a finalizer on a node", {"metadata": {"finalizers": ["example.com/stay"]}}),
    _edited("take another's taint off a node", _taints()),
    _edited("put another's taint on a node", _taints(THEIR_TAINT, {"key": "example.com/x", "effect": "NoSchedule"})),
    _edited("evict by a taint all pods of a node", _taints(THEIR_TAINT, _EVICTING)),
    _edited("cordon a node", {"spec": {"unschedulable": True}}),
    _edited("change a node's provider id", {"spec": {"providerID": "kwok://x"}}, POLICY, SERVER),
    _edited("taint a control plane node", _taints(_DRAINING), node=_CONTROL_PLANE),
    _edited("label a control plane node", _label(names.POOL, "a100"), node=_CONTROL_PLANE),
    patched("write a node's status", f"{_GPU}/status", {"status": {"capacity": {"cpu": "1000"}}}),
    made("make a node", "/api/v1/nodes", {"metadata": {"name": "x"}}),
    deleted("delete a control plane node", _CONTROL_PLANE, POLICY),
    deleted("delete all nodes", "/api/v1/nodes"),
    read("reach a kubelet", f"{_GPU}/proxy/pods"),
    _edited("taint a node of a pool with our taint", _taints(THEIR_TAINT, _DRAINING), NOTHING),
    _edited("label a node of a pool in our domain", _label(names.PROVISIONER, "a100"), NOTHING),
    deleted("delete a node of a pool", _GPU, NOTHING),
)

NODE_POOLS = (
    made("make a NodePool that is not marked as ours", _POOLS, node_pool("x"), POLICY),
    deleted("delete another's NodePool", f"{_POOLS}/theirs", POLICY),
    patched("change another's NodePool", f"{_POOLS}/theirs", {"spec": {"weight": 7}}, POLICY),
    patched("disown a NodePool", f"{_POOLS}/ours", _label(names.MANAGED, None), POLICY),
    deleted("delete all NodePools", _POOLS),
    made("make a NodeClaim", "/apis/karpenter.sh/v1/nodeclaims", {"metadata": {"name": "x"}}),
    deleted("delete all NodeClaims", "/apis/karpenter.sh/v1/nodeclaims"),
    patched("change a node class", "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/lab", {"spec": {}}, RBAC),
    made("make a NodePool that is marked as ours", _POOLS, node_pool("x", **OURS), NOTHING),
    patched("change a NodePool of ours", f"{_POOLS}/ours", {"spec": {"weight": 7}}, NOTHING),
    deleted("delete a NodePool of ours", f"{_POOLS}/ours", NOTHING),
    Attempt(
        "take another's NodePool over, and change it",
        "PATCH",
        f"{_POOLS}/theirs?fieldManager=reconciler&force=true",
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "theirs", "labels": OURS},
            "spec": {"weight": 7},
        },
        APPLY,
        (NOTHING,),
    ),
)
