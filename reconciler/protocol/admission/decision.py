"""Decides about a new pod with a GpuClaim: a refusal with its facts, or a JSON Patch.

Theory of operation. The pools that can serve the claim follow from the claim and the declared pools. The patch adds to
the pod what kube-scheduler and Karpenter need to see the claim:

- The required node affinity names these pools. Terms are ORed, and a node carries its pool in one of two labels, so
  each term of the pod is required twice: with Karpenter's label, and with reconciler's label for nodes without
  Karpenter. The terms for Karpenter come first, because Karpenter tries the terms in order. A term without any
  requirement matches no node, and stays so.
- The scheduler's name, and nvidia.com/gpu on the first container if no container requests GPUs.
- With `allocation: agent`, the variables that select GPUs in every container. Their value is the annotation that is
  written in the request that binds the pod; it does not exist yet. Until it does, the variables are empty, and an empty
  value hides all GPUs.

The patch of a patched pod is empty, so the API server may call the webhook any number of times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.fleet.gpu_claims import claimed_devices, has_devices, serving_pools
from reconciler.model import names
from reconciler.model.cluster.pod import NodeTerm
from reconciler.model.desired import Declared
from reconciler.model.parsers import is_object_name
from reconciler.model.policy.gpu import Allocation, ClaimedDevices, Devices, GpuPool
from reconciler.protocol.admission.review import EnvVar, PatchOperation, ReviewedContainer, ReviewedPod, ReviewedSpec

DEFAULT_SCHEDULER = "default-scheduler"
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
DEVICES_FIELD = f"metadata.annotations['{names.DEVICES}']"
MOST_GPUS = 16  # of a claim, as in the CRD
_FEW = 5  # pools, or containers, that are listed

# --- Refusals: a class per case, with its facts.


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Base class of all refusals."""

    claim: str  # namespace/name; as written in the pod if it is no valid name


class NotYetRead(Refusal, frozen=True):
    """The inputs of the decision are unknown; a later attempt may succeed."""

    why: str


class BadClaimName(Refusal, frozen=True):
    """The annotation of the pod is not a name."""


class WrittenByScheduler(Refusal, frozen=True):
    """The pod brings an annotation that only the scheduler writes."""

    annotation: str


class ClaimAbsent(Refusal, frozen=True):
    """There is no such claim."""


class ClaimSuspended(Refusal, frozen=True):
    """The claim is suspended."""


class ClaimUnreadable(Refusal, frozen=True):
    """The spec of the claim cannot be read."""


class MappedByDeviceClass(Refusal, frozen=True):
    """Kubernetes would allocate devices for nvidia.com/gpu beside those of the claim."""

    device_class: str


class PoolAbsent(Refusal, frozen=True):
    """The claim names a pool that is not declared."""

    pool: str


class PoolDevices(msgspec.Struct, frozen=True):
    """GPUs of a node of a pool."""

    pool: str
    devices: Devices


class NoPoolServes(Refusal, frozen=True):
    """No declared pool has the GPUs of the claim."""

    asked: ClaimedDevices
    pools: tuple[PoolDevices, ...]  # the first few
    more: int


class SelectsOtherPool(Refusal, frozen=True):
    """The node selector of the pod names none of the pools that can serve the claim."""

    label: str
    selected: str
    pools: tuple[str, ...]


class PoolsDisagree(Refusal, frozen=True):
    """Pools of both kinds of allocation can serve the claim."""

    plugin: str  # one pool of each kind
    agent: str


class OtherScheduler(Refusal, frozen=True):
    """Another scheduler would bind the pod."""

    scheduler: str


class NodeNamed(Refusal, frozen=True):
    """No scheduler would bind the pod."""

    node: str


class OtherCount(Refusal, frozen=True):
    """The pod requests another number of GPUs than the claim."""

    asked: int
    claimed: int


# --- Warnings for the user who creates the pod.


class VariablesReplaced(msgspec.Struct, frozen=True, tag=True):
    """Containers set variables that the webhook sets."""

    claim: str
    containers: tuple[str, ...]  # the first few
    more: int


class BestEffort(msgspec.Struct, frozen=True, tag=True):
    """The kubelet chooses the GPUs, whatever the claim says about islands."""

    claim: str
    policy: str
    pools: tuple[str, ...]  # the first few
    more: int


Warned = VariablesReplaced | BestEffort


class Admission(msgspec.Struct, frozen=True):
    """The pod is admitted with this patch."""

    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[Warned, ...] = ()


# --- Decision.


class Grounds(msgspec.Struct, frozen=True):
    """The claim and the declared pools, as last read."""

    claim: Mapping[str, Any] | None  # its spec; None if there is no claim
    pools: tuple[Declared[GpuPool], ...]
    device_class: str = ""  # a DeviceClass that serves requests for nvidia.com/gpu


class _Case(msgspec.Struct, frozen=True):
    """A pod with its claim. Fields are filled in by the order of the rules."""

    pod: ReviewedPod
    title: str
    grounds: Grounds
    spec: Mapping[str, Any]
    claimed: ClaimedDevices | None
    pools: tuple[Declared[GpuPool], ...]  # that can serve the claim, and that the pod selects


def claim_title(pod: ReviewedPod) -> str:
    """NAMESPACE/NAME of the claim."""
    return f"{pod.namespace}/{pod.claim}"


def refuse_name(pod: ReviewedPod) -> Refusal | None:
    """A refusal if the annotation names no claim that could exist."""
    return None if is_object_name(pod.claim) else BadClaimName(pod.claim)


def decide(pod: ReviewedPod, grounds: Grounds) -> Admission | Refusal:
    """Admits the pod with a patch, or refuses the pod."""
    spec = grounds.claim if grounds.claim is not None else {}
    claimed = claimed_devices(spec)
    if claimed is not None and not 1 <= claimed.count <= MOST_GPUS:
        claimed = None
    pools = serving_pools(spec, claimed, grounds.pools) if claimed is not None else ()
    selected = tuple(each for each in pools if _deselecting_label(pod.spec, each.name) is None)
    case = _Case(pod, claim_title(pod), grounds, spec, claimed, selected)
    refusal = next((refusal for rule in _RULES if (refusal := rule(case)) is not None), None)
    if refusal is not None or claimed is None:
        return refusal or ClaimUnreadable(case.title)
    allocation = selected[0].spec.allocation
    patch = [*_scheduling_patch(pod.spec, sorted(each.name for each in selected)), *_gpu_patch(pod.spec, claimed.count)]
    warnings: list[Warned] = []
    if allocation == "agent":
        patch += _variables_patch(pod.spec)
        warnings += _replaced_variables(case.title, pod.spec)
    elif claimed.policy != "any":
        few = tuple(each.name for each in selected[:_FEW])
        warnings.append(BestEffort(case.title, claimed.policy, few, len(selected) - len(few)))
    return Admission(tuple(patch), tuple(warnings))


# --- Rules, in order; the first refusal counts.


def _bad_name(case: _Case) -> Refusal | None:
    return refuse_name(case.pod)


def _written_by_scheduler(case: _Case) -> Refusal | None:
    written = (key for key in (names.ALLOCATED, names.DEVICES) if key in case.pod.annotations)
    return next((WrittenByScheduler(case.title, key) for key in written), None)


def _absent(case: _Case) -> Refusal | None:
    return ClaimAbsent(case.title) if case.grounds.claim is None else None


def _suspended(case: _Case) -> Refusal | None:
    return ClaimSuspended(case.title) if case.spec.get("suspend") else None


def _unreadable(case: _Case) -> Refusal | None:
    return ClaimUnreadable(case.title) if case.claimed is None else None


def _mapped(case: _Case) -> Refusal | None:
    mapping = case.grounds.device_class
    return MappedByDeviceClass(case.title, mapping) if mapping else None


def _no_pool(case: _Case) -> Refusal | None:
    named, declared = case.spec.get("poolName"), case.grounds.pools
    if named is not None and all(each.name != named for each in declared):
        return PoolAbsent(case.title, named)
    claimed = case.claimed
    considered = [each for each in declared if named in {None, each.name}]
    if claimed is None or any(has_devices(each.spec.devices, claimed) for each in considered):
        return None
    few = tuple(PoolDevices(each.name, each.spec.devices) for each in considered[:_FEW])
    return NoPoolServes(case.title, claimed, few, len(considered) - len(few))


def _selects_other_pool(case: _Case) -> Refusal | None:
    if case.pools or case.claimed is None:
        return None
    serving = serving_pools(case.spec, case.claimed, case.grounds.pools)
    label = next((label for each in serving if (label := _deselecting_label(case.pod.spec, each.name))), "")
    selected = (case.pod.spec.node_selector or {}).get(label, "")
    return SelectsOtherPool(case.title, label, selected, tuple(each.name for each in serving[:_FEW]))


def _pools_disagree(case: _Case) -> Refusal | None:
    by_allocation: dict[Allocation, str] = {}
    for each in case.pools:
        by_allocation.setdefault(each.spec.allocation, each.name)
    if len(by_allocation) < 2:
        return None
    return PoolsDisagree(case.title, by_allocation["plugin"], by_allocation["agent"])


def _other_scheduler(case: _Case) -> Refusal | None:
    scheduler = case.pod.spec.scheduler_name or DEFAULT_SCHEDULER
    return None if scheduler in {DEFAULT_SCHEDULER, names.GPU_SCHEDULER} else OtherScheduler(case.title, scheduler)


def _node_named(case: _Case) -> Refusal | None:
    node = case.pod.spec.node_name
    return NodeNamed(case.title, node) if node else None


def _other_count(case: _Case) -> Refusal | None:
    asked = case.pod.spec.gpus
    if case.claimed is None or asked in {0, case.claimed.count}:
        return None
    return OtherCount(case.title, asked, case.claimed.count)


_RULES: tuple[Callable[[_Case], Refusal | None], ...] = (
    _bad_name,
    _written_by_scheduler,
    _absent,
    _suspended,
    _unreadable,
    _mapped,
    _no_pool,
    _selects_other_pool,
    _pools_disagree,
    _other_scheduler,
    _node_named,
    _other_count,
)


def _deselecting_label(spec: ReviewedSpec, pool: str) -> str | None:
    """A label of the node selector that nodes of the pool do not have with this value."""
    selector = spec.node_selector or {}
    return next((key for key in (names.KARPENTER_POOL, names.POOL) if selector.get(key, pool) != pool), None)


# --- Scheduler and pools.

_SPEC = "/spec"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _scheduling_patch(spec: ReviewedSpec, pools: list[str]) -> Iterator[PatchOperation]:
    if spec.scheduler_name != names.GPU_SCHEDULER:
        yield PatchOperation("add", f"{_SPEC}/schedulerName", names.GPU_SCHEDULER)
    terms = spec.terms
    if terms is None:
        yield _affinity_patch(spec, _required_twice(({},), pools))
    elif (wanted := _required_twice(terms, pools)) != list(terms):
        path = f"{_SPEC}/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms"
        yield PatchOperation("replace", path, wanted)


def _affinity_patch(spec: ReviewedSpec, terms: list[dict[str, Any]]) -> PatchOperation:
    """Adds the innermost field that does not exist yet."""
    required = {"nodeSelectorTerms": terms}
    if spec.affinity is None:
        return PatchOperation("add", f"{_SPEC}/affinity", {"nodeAffinity": {_REQUIRED: required}})
    if spec.affinity.node_affinity is None:
        return PatchOperation("add", f"{_SPEC}/affinity/nodeAffinity", {_REQUIRED: required})
    return PatchOperation("add", f"{_SPEC}/affinity/nodeAffinity/{_REQUIRED}", required)


def _required_twice(terms: Sequence[dict[str, Any]], pools: list[str]) -> list[dict[str, Any]]:
    by_karpenter = {"key": names.KARPENTER_POOL, "operator": "In", "values": pools}
    by_label = (
        {"key": names.KARPENTER_POOL, "operator": "DoesNotExist"},
        {"key": names.POOL, "operator": "In", "values": pools},
    )
    is_new = terms == ({},)
    open_terms = [each for each in terms if is_new or not _is_settled(each, frozenset(pools))]
    first = [_with_expressions(each, by_karpenter) if each in open_terms else each for each in terms]
    return [*first, *(_with_expressions(each, *by_label) for each in open_terms)]


def _is_settled(term: dict[str, Any], pools: frozenset[str]) -> bool:
    """Whether the term already matches nodes of these pools only. A term without requirements matches no node."""
    read = msgspec.convert(term, NodeTerm)
    if not read.match_expressions and not read.match_fields:
        return True
    named = {
        each.key for each in read.match_expressions if each.operator == "In" and each.values and pools >= {*each.values}
    }
    is_without_karpenter = any(
        each.key == names.KARPENTER_POOL and each.operator == "DoesNotExist" for each in read.match_expressions
    )
    return names.KARPENTER_POOL in named or (names.POOL in named and is_without_karpenter)


def _with_expressions(term: dict[str, Any], *expressions: dict[str, Any]) -> dict[str, Any]:
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *expressions]}


# --- nvidia.com/gpu.

_GPU_FIELD = names.NVIDIA_GPU.replace("/", "~1")


def _gpu_patch(spec: ReviewedSpec, count: int) -> Iterator[PatchOperation]:
    """Requests and limits of the first container, if the pod requests no GPUs."""
    if spec.gpus or not spec.containers:
        return
    path, resources, amount = f"{_SPEC}/containers/0/resources", spec.containers[0].resources, str(count)
    if resources is None:
        whole = {names.NVIDIA_GPU: amount}
        yield PatchOperation("add", path, {"limits": whole, "requests": whole})
        return
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        if amounts is None:
            yield PatchOperation("add", f"{path}/{field}", {names.NVIDIA_GPU: amount})
        else:
            yield PatchOperation("add", f"{path}/{field}/{_GPU_FIELD}", amount)


# --- Variables that select GPUs.


def _containers(spec: ReviewedSpec) -> Iterator[tuple[str, ReviewedContainer]]:
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for at, container in enumerate(containers or ()):
            yield f"{_SPEC}/{field}/{at}", container


def _variables_patch(spec: ReviewedSpec) -> Iterator[PatchOperation]:
    """Replaces variables in place, and adds missing ones in front, where later variables can refer to them."""
    for path, container in _containers(spec):
        env = container.env
        if env is None:
            yield PatchOperation("add", f"{path}/env", [_variable(name) for name in GPU_VARIABLES])
            continue
        for at, each in enumerate(env):
            if each.name in GPU_VARIABLES and not _is_ours(each):
                yield PatchOperation("replace", f"{path}/env/{at}", _variable(each.name))
        for name in reversed(GPU_VARIABLES):
            if all(each.name != name for each in env):
                yield PatchOperation("add", f"{path}/env/0", _variable(name))


def _variable(name: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": DEVICES_FIELD}}}


def _is_ours(variable: EnvVar) -> bool:
    """Whether the variable is as `_variable` writes it; the API server adds the version of the field."""
    field = variable.value_from.field_ref if variable.value_from else None
    return field is not None and field.field_path == DEVICES_FIELD


def _replaced_variables(claim: str, spec: ReviewedSpec) -> Iterator[Warned]:
    replaced = [
        container.name
        for _, container in _containers(spec)
        if any(each.name in GPU_VARIABLES and not _is_ours(each) for each in container.env or ())
    ]
    if replaced:
        yield VariablesReplaced(claim, tuple(replaced[:_FEW]), len(replaced) - len(replaced[:_FEW]))
