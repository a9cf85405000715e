"""Why a pool's NodePool is, or is not, being changed; and how the pool is used."""

from collections.abc import Iterator

from reconciler.model.desired import Declared
from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.plan.explanation.about import About, UnknownSubject, counted, fate_of, placed, told
from reconciler.plan.scaling.size import decide_size
from reconciler.plan.scene import Scene
from reconciler.plan.usage import use_of


def about_pool(scene: Scene, name: str) -> About:
    """Everything that is known of the pool: its policy, its NodePool, its nodes."""
    pool = scene.inputs.desired.pool(name)
    live = [each for each in scene.inputs.observed.node_pools if each.name == name]
    nodes = scene.fleet.nodes_of(name)
    if pool is None and not live and not nodes:
        raise UnknownSubject(f"there is no pool {name}: no policy, no NodePool and no node names it")
    decisions = tuple(each for each in scene.plan.decisions if name in {each.pool, each.subject.name})
    outcome = " ".join(told(each) for each in decisions) or "It is as the policies want it; nothing is to be done."
    return About(f"pool/{name}", _headline(scene, name), outcome, tuple(_rows(scene, name)), decisions)


def _headline(scene: Scene, name: str) -> str:
    use = use_of(scene.fleet, name, 0)
    used = f"{use.gpus_used} of {use.gpus_total} GPUs in use"
    return f"{counted(use.nodes, 'node')}, {use.busy_nodes} busy, {used}"


def _rows(scene: Scene, name: str) -> Iterator[tuple[str, str]]:
    pool = scene.inputs.desired.pool(name)
    yield "policy", f"mode {pool.spec.mode}, {placed(pool.origin())}" if pool else "none: nothing is decided for it"
    live = next((each for each in scene.inputs.observed.node_pools if each.name == name), None)
    if live is None:
        yield "NodePool", "there is none"
    else:
        yield "NodePool", "in our inventory" if live.is_ours else "made by someone else"
    for consequence in scene.plan.consequences:
        if consequence.pool == name:
            cause = "because of this change" if consequence.cause == "change" else "as things stand"
            yield cause, f"{counted(len(consequence.nodes), 'node')}: each {fate_of(consequence)}"
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
    size = decide_size(use, spec)
    target = placed(found.origin("spec.minGPUUtilizationPercent"))
    rows = (
        ("policy", f"{spec.min_size} to {spec.max_size} nodes of {spec.pool_name}, {placed(found.origin())}"),
        ("target", f"{counted(size.target, 'node')}: {size.reason}. {target}"),
    )
    headline = f"{counted(use.nodes, 'node')}, {use.busy_nodes} busy, {use.gpus_used} of {use.gpus_total} GPUs in use"
    surplus = (
        f"{counted(size.surplus, 'node')} more than its target." if size.surplus else "No more nodes than its target."
    )
    return About(f"provisioner/{name}", headline, surplus, rows)
