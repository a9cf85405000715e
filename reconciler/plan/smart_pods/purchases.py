"""Purchases for reports: in-flight machines, requests of smart pods, and nodes that wait for the next attempt or are
limited. The requests of this plan are in gated_pods.py.
"""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.model import names
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit, Purchase, Stage, Why
from reconciler.model.plan.decision import Delete
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.offerings import LaunchOption, LaunchOptions
from reconciler.plan.capacity.refusals import Limited, Unmet, WantedNode
from reconciler.plan.capacity.requests import Requested
from reconciler.plan.smart_pods.advance import Advanced
from reconciler.plan.smart_pods.context import SmartPodContext
from reconciler.plan.smart_pods.reasons import SmartPodDuplicate
from reconciler.plan.sums import machine_of


def wanted_purchase(
    pool: Declared[GpuPool], wanted: WantedNode, stage: Stage, why: Why, at: Instant | None, name: str = ""
) -> Purchase:
    """Purchase of one wanted node."""
    kind = wanted.choice.capacity_type or wanted.labels.get(names.CAPACITY_TYPE, "") or _first_kind(pool)
    gpus, pods = pool.spec.devices.count, len(wanted.pods)
    return Purchase(pool.name, stage, why, wanted.choice.instance_type, kind, gpus, name, at, pods)


def purchases(context: SmartPodContext, advanced: Sequence[Advanced]) -> Iterator[Purchase]:
    """Purchases other than the requests of this plan. `advanced`: results for the existing smart pods."""
    yield from _machines(context)
    yield from _pending_purchases(context, advanced)
    for unmet in context.draft.answered.unmet:
        if unmet.pool == context.pool.name:
            yield from _at_next_attempt(context.pool, unmet)
    for limited in context.draft.answered.limited:
        if limited.pool == context.pool.name:
            yield from _limited(context.pool, limited)


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
        if not each.is_open or each.name not in context.draft.answered.used:
            continue
        decision = after.decision
        is_over = after.shortage is not None or (decision is not None and isinstance(decision.act, Delete))
        if not is_over:
            way = LaunchOption(each.request.instance_type, each.request.capacity_type)
            yield _of_request(context.pool, each, "asked", way, None)
        elif decision is None or not isinstance(decision.reason.facts, SmartPodDuplicate):
            failed = (after.shortage,) if after.shortage is not None else ()
            yield _of_request(context.pool, each, "attempt", *next_attempt(context.outlook_with(failed)))


def _of_request(
    pool: Declared[GpuPool], each: Requested, stage: Stage, way: LaunchOption, at: Instant | None
) -> Purchase:
    request, kind = each.request, way.capacity_type or _first_kind(pool)
    gpus, pods = pool.spec.devices.count, len(request.pods)
    return Purchase(pool.name, stage, request.why, way.instance_type, kind, gpus, each.name, at, pods)


def _at_next_attempt(pool: Declared[GpuPool], unmet: Unmet) -> Iterator[Purchase]:
    choice, at = next_attempt(unmet.outlook)
    for each in unmet.wanted:
        yield wanted_purchase(pool, each, "attempt", "demand", at)
    known = {pod.metadata.uid for each in unmet.wanted for pod in each.pods}
    others = [pod for pod in unmet.pods if pod.metadata.uid not in known]
    kind = choice.capacity_type or _first_kind(pool)
    stage: Stage = "attempt" if choice.instance_type else "limit"
    limit = None if choice.instance_type else CapacityLimit("instanceTypes", pool.name)
    wanted: tuple[tuple[Why, list[int]], ...] = (
        ("demand", _pods_of_nodes(pool, others)),
        (unmet.lack.field, [0] * unmet.lack.nodes),
        ("warmNodes", [0] * unmet.warm),
    )
    for why, nodes in wanted:
        for pods in nodes:
            gpus = pool.spec.devices.count
            yield Purchase(pool.name, stage, why, choice.instance_type, kind, gpus, at=at, pods=pods, limit=limit)


def next_attempt(outlook: LaunchOptions) -> tuple[LaunchOption, Instant | None]:
    """Launch option of the next attempt, and its time. The option has no instance type if the pool declares none."""
    if not outlook.is_exhausted:
        return outlook.left[0], outlook.again_at
    forgotten = min(outlook.failed, key=lambda each: each.until, default=None)
    return (LaunchOption(""), None) if forgotten is None else (LaunchOption.of(forgotten), forgotten.until)


def _limited(pool: Declared[GpuPool], limited: Limited) -> Iterator[Purchase]:
    wanted: tuple[tuple[Why, list[int]], ...] = (
        ("demand", _pods_of_nodes(pool, limited.pods)),
        ("warmNodes", [0] * limited.warm),
    )
    for why, nodes in wanted:
        for pods in nodes:
            yield Purchase(pool.name, "limit", why, "", "", pool.spec.devices.count, pods=pods, limit=limited.limit)


def _pods_of_nodes(pool: Declared[GpuPool], pods: Iterable[Pod]) -> list[int]:
    """Number of pods for each node. The number of nodes is the lower bound that the requested GPUs imply: no packing is
    done, because no node is bought now.
    """
    there = list(pods)
    nodes = -(-sum(pod.gpus for pod in there) // pool.spec.devices.count)
    count = max(1, min(nodes, len(there))) if there else 0
    return [len(there) // count + (at < len(there) % count) for at in range(count)]


def _first_kind(pool: Declared[GpuPool]) -> str:
    return pool.spec.capacity_types[0] if pool.spec.capacity_types else "on-demand"
