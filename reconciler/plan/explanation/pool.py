"""Why a pool's NodePool is, or is not, being changed; and how the pool is used."""

from collections.abc import Iterator

from reconciler.model.desired import Declared
from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.model.pool_use import Use
from reconciler.plan.explanation.about import About, UnknownSubject, counted, fate_of, placed, told, unread, would_be
from reconciler.plan.explanation.standing_orders import freeze_rows, guard_rows
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.scaling.size import decide_size
from reconciler.plan.scene import Scene
from reconciler.plan.usage import use_of

NODE_POOLS = "nodepools.karpenter.sh"


def about_pool(scene: Scene, name: str) -> About:
    """Everything that is known of the pool: its policy, its NodePool, its nodes."""
    pool = scene.inputs.desired.pool(name)
    live = [each for each in scene.inputs.observed.node_pools if each.name == name]
    nodes = scene.fleet.nodes_of(name)
    if pool is None and not live and not nodes:
        none = f"there is no pool {name}: no policy, no NodePool and no node names it"
        raise UnknownSubject(unread(scene, NODE_POOLS, "nodes") or none)
    decisions = tuple(each for each in scene.plan.decisions if name in {each.pool, each.subject.name})
    outcome = " ".join(told(each) for each in decisions) or "It is as the policies want it; nothing is to be done."
    headline = _headline(scene, use_of(scene.fleet, name, 0))
    return About(f"pool/{name}", headline, outcome, tuple(_rows(scene, name)), decisions)


def _headline(scene: Scene, use: Use) -> str:
    if why := unread(scene, "nodes"):
        return f"its nodes are not known: {why}"
    if why := unread(scene, "pods"):
        return f"{counted(use.nodes, 'node')}, {use.gpus_total} GPUs, how many in use is not known: {why}"
    used = f"{use.gpus_used} of {use.gpus_total} GPUs in use"
    return f"{counted(use.nodes, 'node')}, {use.busy_nodes} busy, {used}"


def _rows(scene: Scene, name: str) -> Iterator[tuple[str, str]]:
    pool = scene.inputs.desired.pool(name)
    yield "policy", f"mode {pool.spec.mode}, {placed(pool.origin())}" if pool else "none: nothing is decided for it"
    live = next((each for each in scene.inputs.observed.node_pools if each.name == name), None)
    if live is None:
        why = scene.inputs.observed.why_unread(NODE_POOLS)
        yield "NodePool", f"not known: {why}" if why else "there is none"
    else:
        yield "NodePool", "in our inventory" if live.is_ours else "made by someone else"
    for consequence in scene.plan.consequences:
        if consequence.pool == name:
            cause = "because of this change" if consequence.cause == "change" else "as things stand"
            each = f"{counted(len(consequence.nodes), 'node')}: each {fate_of(consequence)}"
            yield cause, would_be(scene, consequence, each)
    yield from freeze_rows(Freezes(scene.inputs, scene.fleet).of_pool(name))
    yield from guard_rows(scene, name)
    drifted = [claim for claim in scene.fleet.claims_of(name) if claim.says("Drifted")]
    if drifted:
        yield "drifted now", counted(len(drifted), "NodeClaim")


def about_provisioner(scene: Scene, name: str) -> About:
    """What it asks for, and the size that follows from how its pool is used now."""
    found: Declared[NodeProvisioner] | None = next(
        (each for each in scene.inputs.desired.provisioners if each.name == name), None
    )
    if found is None:
        raise UnknownSubject(f"there is no NodeProvisioner {name}")
    spec = found.spec
    pool = scene.inputs.desired.pool(spec.pool_name)
    use = use_of(scene.fleet, spec.pool_name, pool.spec.devices.count if pool else 1)
    policy = ("policy", f"{spec.min_size} to {spec.max_size} nodes of {spec.pool_name}, {placed(found.origin())}")
    headline = _headline(scene, use)
    if why := unread(scene, "nodes", "pods"):
        return About(f"provisioner/{name}", headline, "Its target is not known.", (policy, ("target", why)))
    size = decide_size(use, spec)
    place = placed(found.origin("spec.minGPUUtilizationPercent"))
    target = ("target", f"{counted(size.target, 'node')}: {size.reason}. {place}")
    return About(f"provisioner/{name}", headline, _beside_target(use.nodes - size.target), (policy, target))


def _beside_target(more: int) -> str:
    if not more:
        return "As many nodes as its target."
    return f"{counted(abs(more), 'node')} {'more' if more > 0 else 'fewer'} than its target."
