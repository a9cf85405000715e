"""Purchases for reports: in-flight machines, requests of smart pods, and nodes that wait for the next attempt or are
limited. The requests of this plan are in gated_pods.py.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit, Purchase, Stage
from reconciler.model.plan.decision import Delete
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.requests import Requested
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.smart_pods.advance import Advanced
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.reasons import SmartPodDuplicate
from reconciler.plan.sums import machine_of


def wanted_purchase(
    pool: Declared[GpuPool], wanted: WantedNode, stage: Stage, at: Instant | None = None, name: str = ""
) -> Purchase:
    """Purchase of one wanted node."""
    choice, gpus = wanted.choice, pool.spec.devices.count
    kind = choice.capacity_type or wanted.labels.get(names.CAPACITY_TYPE, "")
    if wanted.requestable != "never":
        kind = kind or _first_kind(pool)
    return Purchase(
        pool.name, stage, wanted.why, choice.instance_type, kind, gpus, name, at, len(wanted.pods), limit=wanted.limit
    )


def purchases(context: SmartPodContext, advanced: Sequence[Advanced]) -> Iterator[Purchase]:
    """Purchases other than the requests of this plan. `advanced`: results for the existing smart pods."""
    yield from _machines(context)
    yield from _pending_purchases(context, advanced)
    for each in context.wanted("next_attempt"):
        yield _at_next_attempt(context, each)
    for each in context.wanted("never"):
        yield wanted_purchase(context.pool, each, "limit")


def _machines(context: SmartPodContext) -> Iterator[Purchase]:
    for claim in context.fleet.nodeless_claims_of(context.pool.name):
        if not claim.metadata.leaving:
            machine = machine_of(claim.metadata.labels)
            gpus = _gpus_of(claim) or context.pool.spec.devices.count
            yield Purchase(
                pool=context.pool.name,
                stage="machine",
                why=None,
                instance_type=machine.instance_type,
                capacity_type=machine.capacity_type,
                gpus=gpus,
                name=claim.status.node_name or claim.name,
                is_paid_for=bool(claim.status.provider_id),
            )


def _gpus_of(claim: NodeClaim) -> int:
    found = claim.status.allocatable.get(names.NVIDIA_GPU, "0")
    return int(found) if found.isdigit() else 0


def _pending_purchases(context: SmartPodContext, advanced: Sequence[Advanced]) -> Iterator[Purchase]:
    """Purchases of existing smart pods. If a smart pod gives up in this plan, the next launch option is tried
    afterwards.
    """
    for each, after in zip(context.requested, advanced, strict=True):
        if not each.is_open or each.name not in context.draft.capacity.used:
            continue
        decision = after.decision
        is_over = after.shortage is not None or (decision is not None and isinstance(decision.act, Delete))
        if not is_over:
            way = LaunchOption(each.request.instance_type, each.request.capacity_type)
            yield _of_request(context.pool, each, "asked", way, None)
        elif decision is None or not isinstance(decision.reason.facts, SmartPodDuplicate):
            failed = (after.shortage,) if after.shortage is not None else ()
            yield _of_request(context.pool, each, "attempt", *context.outlook_with(failed).next_attempt)


def _of_request(
    pool: Declared[GpuPool], each: Requested, stage: Stage, way: LaunchOption, at: Instant | None
) -> Purchase:
    request, kind = each.request, way.capacity_type or _first_kind(pool)
    gpus, pods = pool.spec.devices.count, len(request.pods)
    return Purchase(pool.name, stage, request.why, way.instance_type, kind, gpus, each.name, at, pods)


def _at_next_attempt(context: SmartPodContext, wanted: WantedNode) -> Purchase:
    if not wanted.choice.instance_type:
        wanted = msgspec.structs.replace(wanted, limit=CapacityLimit("instanceTypes", context.pool.name))
    stage: Stage = "limit" if wanted.limit else "attempt"
    return wanted_purchase(context.pool, wanted, stage, context.outlook.next_attempt[1])


def _first_kind(pool: Declared[GpuPool]) -> str:
    return pool.spec.capacity_types[0] if pool.spec.capacity_types else "on-demand"
