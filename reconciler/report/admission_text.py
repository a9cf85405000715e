"""Texts for users whose pods the admission webhook refuses or warns about."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.model import names
from reconciler.model.parsers import shortened
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.protocol.admission.decision import (
    DEFAULT_SCHEDULER,
    GPU_VARIABLES,
    MOST_GPUS,
    BadClaimName,
    BestEffort,
    ClaimAbsent,
    ClaimSuspended,
    ClaimUnreadable,
    MappedByDeviceClass,
    NodeNamed,
    NoPoolServes,
    NotYetRead,
    OtherCount,
    OtherScheduler,
    PoolAbsent,
    PoolDevices,
    PoolsDisagree,
    Refusal,
    SelectsOtherPool,
    VariablesReplaced,
    Warned,
    WrittenByScheduler,
)
from reconciler.protocol.admission.review import Status

_FORBIDDEN = (403, "Forbidden")
_TRY_AGAIN = (503, "ServiceUnavailable")


def refusal_status(refusal: Refusal) -> Status:
    """The status of a refused pod: one sentence, with the remedy after the colon."""
    code, reason = _TRY_AGAIN if isinstance(refusal, NotYetRead) else _FORBIDDEN
    return Status(code, reason, _SENTENCES[type(refusal)](refusal))


def warning_text(warned: Warned) -> str:
    """A warning, which kubectl prints when it creates the pod."""
    match warned:
        case VariablesReplaced(claim=claim, containers=containers, more=more):
            listed = _listed([shortened(each) for each in containers], more)
            where = "container" if len(containers) + more == 1 else "containers"
            return f"{' and '.join(GPU_VARIABLES)} of {where} {listed} are replaced: GpuClaim {claim} selects the GPUs"
        case BestEffort(claim=claim, policy=policy, pools=pools, more=more):
            listed = _listed([f"GpuPool/{each}" for each in pools], more)
            return (
                f"policy {policy} of GpuClaim {claim} is best effort: "
                f"with allocation: plugin of {listed} the kubelet chooses the GPUs"
            )


def _not_yet_read(it: NotYetRead) -> str:
    return f"GpuClaim {it.claim} cannot be checked yet ({it.why}): try again"


def _bad_claim_name(it: BadClaimName) -> str:
    return f"{shortened(it.claim)} is not the name of a GpuClaim: correct the annotation {names.CLAIM} of the pod"


def _written_by_scheduler(it: WrittenByScheduler) -> str:
    return f"the scheduler of GpuClaims writes the annotation {it.annotation}: remove the annotation from the pod"


def _claim_absent(it: ClaimAbsent) -> str:
    return f"there is no GpuClaim {it.claim}: create it first, or correct the annotation {names.CLAIM} of the pod"


def _claim_suspended(it: ClaimSuspended) -> str:
    return f"GpuClaim {it.claim} is suspended: remove spec.suspend from the claim"


def _claim_unreadable(it: ClaimUnreadable) -> str:
    return (
        f"GpuClaim {it.claim} cannot be read: correct spec.devices, which needs a count from 1 to {MOST_GPUS}, "
        "a known policy, and a valid memory"
    )


def _mapped(it: MappedByDeviceClass) -> str:
    return (
        f"DeviceClass/{it.device_class} maps {names.NVIDIA_GPU}, so kube-scheduler would allocate devices beside those "
        f"of GpuClaim {it.claim}: remove extendedResourceName from the DeviceClass"
    )


def _pool_absent(it: PoolAbsent) -> str:
    return (
        f"GpuClaim {it.claim} names GpuPool {shortened(it.pool)}, which is not declared: correct spec.poolName, "
        "or declare the pool"
    )


def _no_pool_serves(it: NoPoolServes) -> str:
    there = _listed([_pool_words(each) for each in it.pools], it.more) or "no GpuPool is declared"
    return (
        f"no GpuPool can serve GpuClaim {it.claim}, which requests {_asked_words(it.asked)} per node ({there}): "
        "correct the claim, or declare a pool"
    )


def _selects_other_pool(it: SelectsOtherPool) -> str:
    return (
        f"the pod selects nodes with {it.label}={shortened(it.selected)}, and GpuClaim {it.claim} is served by "
        f"{_listed([f'GpuPool/{each}' for each in it.pools], 0)}: correct the nodeSelector"
    )


def _pools_disagree(it: PoolsDisagree) -> str:
    return (
        f"GpuPool/{it.plugin} (allocation: plugin) and GpuPool/{it.agent} (allocation: agent) can serve GpuClaim "
        f"{it.claim}, and containers get GPUs differently there: set spec.poolName of the claim"
    )


def _other_scheduler(it: OtherScheduler) -> str:
    return (
        f"the pod names the scheduler {shortened(it.scheduler)}, and GpuClaim {it.claim} needs {names.GPU_SCHEDULER}: "
        f"remove schedulerName, or write {names.GPU_SCHEDULER} or {DEFAULT_SCHEDULER}"
    )


def _node_named(it: NodeNamed) -> str:
    return (
        f"the pod names the node {shortened(it.node)}, so no scheduler would reserve the GPUs of GpuClaim {it.claim}: "
        "remove nodeName"
    )


def _other_count(it: OtherCount) -> str:
    return (
        f"the pod requests {it.asked} {names.NVIDIA_GPU}, and GpuClaim {it.claim} has {it.claimed}: "
        f"request {it.claimed}, or remove {names.NVIDIA_GPU} from the pod"
    )


_SENTENCES: Mapping[type[Refusal], Callable[[Any], str]] = {
    NotYetRead: _not_yet_read,
    BadClaimName: _bad_claim_name,
    WrittenByScheduler: _written_by_scheduler,
    ClaimAbsent: _claim_absent,
    ClaimSuspended: _claim_suspended,
    ClaimUnreadable: _claim_unreadable,
    MappedByDeviceClass: _mapped,
    PoolAbsent: _pool_absent,
    NoPoolServes: _no_pool_serves,
    SelectsOtherPool: _selects_other_pool,
    PoolsDisagree: _pools_disagree,
    OtherScheduler: _other_scheduler,
    NodeNamed: _node_named,
    OtherCount: _other_count,
}


def _asked_words(asked: ClaimedDevices) -> str:
    """8 a100 GPUs of at least 80Gi."""
    gpus = f"{asked.count}{f' {shortened(asked.model)}' if asked.model else ''} {'GPU' if asked.count == 1 else 'GPUs'}"
    return f"{gpus} of at least {asked.memory}" if asked.memory else gpus


def _pool_words(each: PoolDevices) -> str:
    return f"GpuPool/{each.pool} has {each.devices.count} {each.devices.model} of {each.devices.memory}"


def _listed(parts: Sequence[str], more: int) -> str:
    """a, b and 2 more."""
    *first, last = (*parts, f"{more} more") if more else (*parts,) or ("",)
    return f"{', '.join(first)} and {last}" if first else last
