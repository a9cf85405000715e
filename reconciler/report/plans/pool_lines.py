"""Each pool as it stands, and its bill: now, once all is done that comes without this change, and once it is done too.

Where a base is compared with, its policies say what is paid now and without the change, and those of the change what
is paid with it. A pool that no policy declares any more is still paid for: by the policy of the base, or at a price
that nobody knows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.consequence import Consequence
from reconciler.plan.guards.door import observes
from reconciler.plan.karpenter.savings import priced_by
from reconciler.plan.kept.scene import Scene
from reconciler.plan.sums.cost import Bill, Machine, Tariff, machine_of
from reconciler.plan.sums.usage import use_of
from reconciler.report.plans.blame import pool_of
from reconciler.report.plans.planned import Cost, PoolLine

_GONE = frozenset({"scaled", "drained", "removed", "deleted"})


class _Future(msgspec.Struct, frozen=True):
    """What becomes of a fleet by one plan."""

    gone: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()


class _Priced(msgspec.Struct, frozen=True):
    """A pool by name, with the policy of the base and that of the change; None where there is none."""

    name: str
    before: Declared[GpuPool] | None
    after: Declared[GpuPool] | None


def priced_as_before(scene: Scene, base: Scene | None) -> Scene:
    """What happens to pools that the change no longer declares costs what their base says."""
    if base is None:
        return scene
    kept = {pool.name for pool in scene.inputs.desired.pools}
    dropped = {pool.name: pool for pool in base.inputs.desired.pools if pool.name not in kept}
    if not dropped:
        return scene
    told = priced_by(dropped, scene.plan.consequences, scene.fleet, scene.inputs.now)
    return msgspec.structs.replace(scene, plan=msgspec.structs.replace(scene.plan, consequences=told))


def pool_lines(scene: Scene, base: Scene | None) -> Iterator[PoolLine]:
    """The declared ones; then those that are no longer declared and that have nodes to pay for."""
    futures = (_Future(), _without(scene, base), _future(scene.plan.consequences))
    for priced in _pools(scene, base):
        declared = priced.after or priced.before
        use = use_of(scene.fleet, priced.name, declared.spec.devices.count if declared else 1)
        bills = _bills(scene, priced, futures)
        yield PoolLine(
            pool=priced.name,
            mode="Observe" if observes(scene.inputs, priced.name) else "Enforce",
            nodes=use.nodes,
            busy_nodes=use.busy_nodes,
            gpus=use.gpus_total,
            gpus_in_use=use.gpus_used,
            cost=_cost(bills),
            budgets_read=not scene.inputs.observed.why_unread("poddisruptionbudgets.policy"),
            remarks=tuple(_remarks(scene, priced)),
            unpriced=bills[0].unpriced,
            declared=priced.after is not None,
        )


def gone_without(scene: Scene, base: Scene | None) -> frozenset[str]:
    """Names of nodes that go without this change."""
    return _without(scene, base).gone


def gone_with(scene: Scene) -> frozenset[str]:
    """Names of nodes that go with it."""
    return _future(scene.plan.consequences).gone


def _without(scene: Scene, base: Scene | None) -> _Future:
    standing = [each for each in scene.plan.consequences if each.cause == "standing"]
    return _future(base.plan.consequences if base else standing)


def _future(consequences: Iterable[Consequence]) -> _Future:
    told = tuple(consequences)
    gone = frozenset(name for each in told if each.fate in _GONE for name in each.nodes)
    return _Future(gone, frozenset(name for each in told if each.fate == "replaced" for name in each.nodes))


def _pools(scene: Scene, base: Scene | None) -> Iterator[_Priced]:
    before = {pool.name: pool for pool in base.inputs.desired.pools} if base else {}
    after = {pool.name: pool for pool in scene.inputs.desired.pools}
    touched = {pool_of(each) for one in (scene, base) if one for each in one.plan.consequences}
    for name, pool in after.items():
        yield _Priced(name, before.get(name, pool), pool)
    for name in sorted((before.keys() | touched) - after.keys()):
        if scene.fleet.nodes_of(name):
            yield _Priced(name, before.get(name), None)


def _bills(scene: Scene, priced: _Priced, futures: tuple[_Future, _Future, _Future]) -> tuple[Bill, Bill, Bill]:
    # What no policy prices any more is paid for as before.
    now, without, with_change = futures
    before, after = priced.before, priced.after or priced.before
    return (
        _bill(scene, priced.name, before, now),
        _bill(scene, priced.name, before, without),
        _bill(scene, priced.name, after, with_change),
    )


def _bill(scene: Scene, pool: str, declared: Declared[GpuPool] | None, future: _Future) -> Bill:
    left = [node for node in scene.fleet.nodes_of(pool) if node.name not in future.gone]
    if declared is None:
        return Bill(0, 0, len(left))
    tariff = Tariff(declared.spec)
    machines: Counter[Machine] = Counter()
    for node in left:
        machine = machine_of(node.metadata.labels)
        machines[tariff.successor(machine) or machine if node.name in future.replaced else machine] += 1
    return tariff.bill(machines)


def _cost(bills: tuple[Bill, Bill, Bill]) -> Cost:
    now, without, with_change = bills
    return Cost(
        now.micro_dollars_per_hour,
        without.micro_dollars_per_hour,
        with_change.micro_dollars_per_hour,
        now.committed_micro_dollars_per_hour,
        with_change.committed_micro_dollars_per_hour,
    )


def _remarks(scene: Scene, priced: _Priced) -> Iterator[str]:
    yield from _limits(scene, priced)
    nodes = scene.fleet.nodes_of(priced.name)
    if scene.inputs.observed.why_unread("nodeclaims.karpenter.sh") or not nodes:
        return
    claimed = {claim.status.node_name for claim in scene.fleet.claims_of(priced.name)}
    unclaimed = sum(node.name not in claimed for node in nodes)
    if unclaimed:
        has = "has" if unclaimed == 1 else "have"
        them = "it" if unclaimed == 1 else "them"
        yield f"{unclaimed} of its {len(nodes)} nodes {has} no NodeClaim: Karpenter does nothing to {them}."


def _limits(scene: Scene, priced: _Priced) -> Iterator[str]:
    """Whether a replacement may be launched before the node that it is for has gone."""
    limits = priced.after.spec.limits if priced.after else {}
    own = [each for each in scene.plan.consequences if each.pool == priced.name and limits]
    told = ", ".join(f"{most} {name}" for name, most in sorted(limits.items()))
    if any(name.startswith("limits of ") for each in own for name, _ in each.held_by):
        yield f"Limits: {told}: already exceeded or reached, so that no replacement is launched."
    elif any(each.fate == "replaced" for each in own):
        yield f"Limits: {told} leave room for replacements."
