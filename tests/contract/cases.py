"""Each verb with a subject that others keep something on, what it is to bring about, and how that shows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reconciler.model.plan.decision import (
    Act,
    Annotate,
    Apply,
    Bind,
    Delete,
    Evict,
    Label,
    Leaver,
    LentDevice,
    Preconditions,
    Ref,
    Resize,
    Status,
    Taint,
    Ungate,
)
from tests.contract import objects
from tests.contract.ground import apply_of

Object = dict[str, Any]

OUR_KEY = "gpu.scheduling/draining"
OUR_TAINT = {"key": OUR_KEY, "value": "1795013520", "effect": "NoSchedule"}
_READY = {"type": "Ready", "status": "True", "reason": "Kept", "message": "all of it is kept"}
OUR_STATUS = {"conditions": [{**_READY, "lastTransitionTime": "2026-11-02T08:00:00Z"}]}


@dataclass(frozen=True)
class Case:
    """`shows` is asked of the subject as it then stands; None where it is gone."""

    verb: str
    subject: Callable[[str], Object]
    act: Callable[[Ref], Act]
    shows: Callable[[Object | None], object]
    goes: bool = False  # afterwards the subject is gone or going
    beside: Callable[[str], Object] | None = None  # what has to be there as well


def _bind(ref: Ref) -> Act:
    devices = (LentDevice(f"{ref.name}-b", 1), LentDevice(f"{ref.name}-a", 0))
    return Bind(node=NODE, leases=devices, annotations=(("gpu.scheduling/devices", "GPU-1"),))


def _applied(ref: Ref) -> Act:
    head = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    metadata = {"name": ref.name, "labels": {"gpu.scheduling/managed": "true"}}
    return Apply(manifest=apply_of({**head, "metadata": metadata, "spec": {"weight": 7}}))


def _is_applied(found: Object | None) -> bool:
    return bool(found and found["spec"].get("weight") == 7 and "gpu.scheduling/managed" in found["metadata"]["labels"])


def _is_tainted(found: Object | None) -> bool:
    return bool(found and OUR_TAINT in found["spec"]["taints"])


def _is_soft(found: Object | None) -> bool:
    return any(each["effect"] == "PreferNoSchedule" for each in (found or {})["spec"]["taints"])


def _gates(found: Object | None) -> list[str]:
    return [each["name"] for each in (found or {})["spec"].get("schedulingGates", ())]


def _requests(found: Object | None) -> Object:
    return dict((found or {})["spec"]["containers"][0]["resources"]["requests"])


def _is_going(found: Object | None) -> bool:
    return found is None or "deletionTimestamp" in found["metadata"]


def _texts(field: str, found: Object | None) -> Object:
    return dict((found or {})["metadata"][field])


def _is_bound(found: Object | None) -> bool:
    devices = _texts("annotations", found).get("gpu.scheduling/devices")
    return bool(found and found["spec"].get("nodeName") and devices == "GPU-1")


def _left_with_a_mate(ref: Ref) -> Act:
    mate = Ref("Pod", ref.namespace, f"{ref.name}-mate")
    return Evict(grace_seconds=30, others=(Leaver(mate, 20),))


CASES = (
    Case("apply", objects.node_pool, _applied, _is_applied),
    Case("delete", objects.priority, lambda _: Delete(), _is_going, goes=True),
    Case(
        "taint", objects.node, lambda _: Taint(key=OUR_KEY, value=OUR_TAINT["value"], effect="NoSchedule"), _is_tainted
    ),
    Case("delete-empty", objects.node, lambda _: Delete(presumes=Preconditions(empty=True)), _is_going, goes=True),
    Case(
        "harden",
        objects.soft,
        lambda _: Taint(key=OUR_KEY, value=OUR_TAINT["value"], effect="NoSchedule", instead_of="PreferNoSchedule"),
        lambda found: _is_tainted(found) and not _is_soft(found),
    ),
    Case("evict", objects.running, lambda _: Evict(grace_seconds=30), _is_going, goes=True),
    Case("evict-together", objects.running, _left_with_a_mate, _is_going, goes=True, beside=objects.mate),
    Case(
        "resize",
        objects.waiting,
        lambda _: Resize(resources=(("cpu", 250),)),
        lambda found: _requests(found) == {"cpu": "250m", "memory": "128Mi"},
    ),
    Case(
        "bind",
        objects.waiting,
        _bind,
        _is_bound,
    ),
    Case(
        "annotate",
        objects.waiting,
        lambda _: Annotate(annotations=(("gpu.scheduling/waits-for", "c"), ("gpu.scheduling/absent", None))),
        lambda found: _texts("annotations", found).get("gpu.scheduling/waits-for") == "c",
    ),
    Case(
        "label",
        objects.node,
        lambda _: Label(labels=(("gpu.scheduling/provisioner", "a100"),)),
        lambda found: _texts("labels", found).get("gpu.scheduling/provisioner") == "a100",
    ),
    Case(
        "ungate",
        objects.gated,
        lambda _: Ungate(gate="gpu.scheduling/claim"),
        lambda found: _gates(found) == ["example.com/quota"],
    ),
    Case(
        "status",
        objects.gpu_pool,
        lambda _: Status(body=apply_of(OUR_STATUS)),
        lambda found: bool(found and found.get("status", {}).get("conditions") == OUR_STATUS["conditions"]),
    ),
)

# Pods are bound to it, and it is never a subject itself.
NODE = "bindable"
