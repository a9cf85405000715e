"""The protocol between agents of elastic pods and the controller: asks and permits, as HTTP JSON.

An agent asks for resources of its pod, in multiples of the compute unit that it was told last. The answer is a permit:
the agent uses at most that much until it has a new permit, also while nobody answers. vCPUs are counted in thousandths
and memory in bytes; Kubernetes quantities are accepted too. Other resources have their Kubernetes names.

Version 1 has plain permits. Since version 2, a permit has a signature, and the agent returns the permit with its next
ask: then a new controller knows what the pod may use.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.model.plan.pressure import Amounts
from reconciler.model.quantity import MOST, billionths

OLDEST_VERSION, SIGNED_VERSION, NEWEST_VERSION = 1, 2, 2

_NAMES = {"vCPUs": CPU, "mem": MEMORY}
_WIRE_NAMES = {name: wire for wire, name in _NAMES.items()}
_BILLIONTHS = {CPU: 10**6}  # of one unit; 10**9 of all other resources
_MOST_LOAD_MILLI = 10**9
_MOST_RESOURCES = 20
_LONGEST_NAME = 317
_LONGEST_NAMESPACE, _LONGEST_POD = 63, 253

WireAmounts = dict[str, int | str]


class PodName(msgspec.Struct, frozen=True):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"Pod/{self.namespace}/{self.name}"


class AskMessage(msgspec.Struct, frozen=True, rename="camel"):
    """The body of an ask, as agents write it."""

    proto_version: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
    pod: PodName
    resources: WireAmounts
    compute_unit: WireAmounts | None = None  # the one that the agent was told last
    last_permit: WireAmounts | None = None
    permit_token: str = ""  # proves the last permit
    metrics: dict[str, Any] | None = None


class Ask(NamedTuple):
    """An ask whose amounts have been read."""

    pod: PodName
    resources: Amounts
    compute_unit: Amounts | None
    load_milli: int  # thousandths of a process that wants to run, over the last minute
    token: str
    version: int


class AskAnswer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer to an ask. `migrate`: present if the pod is to leave the node."""

    permit: dict[str, int]
    compute_unit: dict[str, int]
    permit_token: str = ""
    migrate: dict[str, str] | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why an ask changed nothing."""

    status: int  # of HTTP
    sentence: str
    retry_seconds: int = 0
    compute_unit: dict[str, int] | None = None  # of which the resources are no multiple


def read_ask(message: AskMessage) -> Ask | Refusal:
    """The amounts of a message in the units of the ledger."""
    if not OLDEST_VERSION <= message.proto_version <= NEWEST_VERSION:
        return Refusal(
            400,
            f"protoVersion {message.proto_version} is not supported: use {OLDEST_VERSION} to {NEWEST_VERSION}",
        )
    if len(message.pod.namespace) > _LONGEST_NAMESPACE or len(message.pod.name) > _LONGEST_POD:
        return Refusal(400, "pod.namespace or pod.name is too long for a name of a pod")
    resources = _read(message.resources, "resources")
    if isinstance(resources, Refusal):
        return resources
    if not resources:
        return Refusal(400, "resources is empty: name at least one resource, such as vCPUs or mem")
    unit = _read(message.compute_unit, "computeUnit") if message.compute_unit is not None else None
    if isinstance(unit, Refusal):
        return unit
    load = _load_milli(message.metrics)
    if isinstance(load, Refusal):
        return load
    token = message.permit_token if message.proto_version >= SIGNED_VERSION else ""
    return Ask(message.pod, resources, unit, load, token, message.proto_version)


def wire_amounts(amounts: Amounts) -> dict[str, int]:
    """As messages name and count them."""
    return {_WIRE_NAMES.get(name, name): amount for name, amount in sorted(amounts.items())}


def own_amounts(wire: Mapping[str, int]) -> dict[str, int]:
    """The inverse of `wire_amounts`."""
    return {_NAMES.get(name, name): amount for name, amount in sorted(wire.items())}


def _read(wire: Mapping[str, int | str], field: str) -> dict[str, int] | Refusal:
    if len(wire) > _MOST_RESOURCES:
        return Refusal(400, f"{field} names {len(wire)} resources: at most {_MOST_RESOURCES} are read")
    found: dict[str, int] = {}
    for key, value in wire.items():
        if not key or len(key) > _LONGEST_NAME:
            return Refusal(400, f"{field} has a key that is no name of a resource")
        name = _NAMES.get(key, key)
        if name in found:
            return Refusal(400, f"{field} names {name} twice: write either {_WIRE_NAMES[name]} or {name}")
        amount = _amount(name, value)
        if amount is None or not 0 <= amount <= MOST:
            return Refusal(
                400, f"{field}.{key} is no amount: write an integer from 0 to {MOST} or a quantity such as 500m or 2Gi"
            )
        found[name] = amount
    return found


def _amount(name: str, value: int | str) -> int | None:
    if isinstance(value, int):
        return value
    exact = billionths(value)
    if exact is None:
        return None
    whole, rest = divmod(exact, _BILLIONTHS.get(name, 10**9))
    return whole if not rest else None


def _load_milli(metrics: Mapping[str, Any] | None) -> int | Refusal:
    load = (metrics or {}).get("loadAvg1M", 0)
    if type(load) not in {int, float} or not 0 <= load <= _MOST_LOAD_MILLI // 1_000:
        return Refusal(400, "metrics.loadAvg1M is no load: write a number that is not negative")
    return int(load * 1_000)
