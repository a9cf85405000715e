"""ReplicaSets and StatefulSets keep as many pods as they are to have; what leaves or has ended does not count."""

from collections.abc import Iterator

from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.workloads.create_pod import MANAGER, pod_of, take_down
from reconciler.simulate.actors.workloads.owned_pods import (
    FAILED,
    LEAVING,
    READY,
    RUNNING,
    SUCCEEDED,
    WAITING,
    Kin,
    how,
)
from reconciler.simulate.objects import Key, key_of
from reconciler.simulate.world import World


def keep_replicas(world: World, owner: Object, kin: Kin) -> None:
    """As many pods as wanted; when there are too many, those go first that do least, and of them the youngest."""
    wanted = _wanted(owner)
    for _ in range(wanted - kin.active):
        world.put(pod_of(owner, _free_name(world, owner, kin)), MANAGER)
    surplus = kin.active - wanted
    if surplus > 0:
        order = [key for way in (WAITING, RUNNING, READY) for key in reversed(list(kin.that_are((way,))))]
        for key in order[:surplus]:
            take_down(world, key)
    _tell(world, owner, kin)


def keep_ordinals(world: World, owner: Object, kin: Kin) -> None:
    """Each pod has its number; another of the same name comes only when the one before it is gone altogether. One comes
    after the other is ready, and one goes after the other is gone, unless they may all come and go at once."""
    for key in list(kin.that_are((SUCCEEDED, FAILED))):
        take_down(world, key)
    in_turn = owner["spec"].get("podManagementPolicy") != "Parallel"
    wanted = _wanted(owner)
    if len(kin.pods) < wanted:
        _fill_up(world, owner, in_turn)
    surplus = sorted((key for key in kin.pods if _ordinal(key) >= wanted), key=_ordinal, reverse=True)
    if not (in_turn and any(kin.pods[key] == LEAVING for key in surplus)):
        for key in surplus[:1] if in_turn else surplus:
            take_down(world, key)
    _tell(world, owner, kin)


def _fill_up(world: World, owner: Object, in_turn: bool) -> None:
    name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    for number in range(_wanted(owner)):
        pod = world.at(("Pod", namespace, f"{name}-{number}"))
        if pod is None:
            world.put(pod_of(owner, f"{name}-{number}"), MANAGER)
        if in_turn and (pod is None or how(pod) != READY):
            return


def _ordinal(key: Key) -> int:
    return int(key[2].rpartition("-")[2])


def fresh_names(owner: Object, kin: Kin) -> Iterator[str]:
    """Names that the owner has not given yet."""
    while True:
        kin.made += 1
        yield f"{owner['metadata']['name']}-{kin.made:05}"


def _free_name(world: World, owner: Object, kin: Kin) -> str:
    namespace = owner["metadata"]["namespace"]
    return next(name for name in fresh_names(owner, kin) if world.at(("Pod", namespace, name)) is None)


def _wanted(owner: Object) -> int:
    replicas = owner["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _tell(world: World, owner: Object, kin: Kin) -> None:
    status = {"replicas": kin.active, "readyReplicas": kin.counts[READY]}
    current = owner.get("status") or {}
    if any(current.get(key, 0) != value for key, value in status.items()):
        world.edit(Ref(*key_of(owner)), {"status": status}, MANAGER)
