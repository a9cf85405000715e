"""Jobs keep pods running until as many have succeeded as are to; what was evicted or lost begins again."""

from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import condition, says
from reconciler.simulate.actors.workloads.create_pod import MANAGER, pod_of, take_down
from reconciler.simulate.actors.workloads.owned_pods import ACTIVE, SUCCEEDED, Kin
from reconciler.simulate.actors.workloads.replicas import fresh_names
from reconciler.simulate.objects import key_of
from reconciler.simulate.stage import Stage


def keep_job(stage: Stage, owner: Object, kin: Kin) -> None:
    """Pods at once as `parallelism` says, and never more than are still to succeed."""
    world, spec = stage.world, owner["spec"]
    if says(owner, "Complete") == "True":
        return
    at_once = int(spec.get("parallelism", 1))
    to_come = int(spec.get("completions", at_once)) - kin.counts[SUCCEEDED]
    if to_come <= 0:
        _complete(stage, owner, kin)
        return
    names = fresh_names(owner, kin)
    namespace = owner["metadata"]["namespace"]
    wanted = min(at_once, to_come)
    while kin.active < wanted:
        name = next(names)
        if world.at(("Pod", namespace, name)) is None:
            world.put(pod_of(owner, name), MANAGER)
    if kin.active > wanted:
        for key in list(kin.that_are(ACTIVE))[wanted:]:
            take_down(world, key)


def _complete(stage: Stage, owner: Object, kin: Kin) -> None:
    conditions = [condition("Complete", "True", stage.now)]
    status = {"succeeded": kin.counts[SUCCEEDED], "conditions": conditions}
    ref = Ref(*key_of(owner), owner["metadata"]["uid"])
    stage.world.edit(ref, {"status": status}, MANAGER)
    keeps_seconds = owner["spec"].get("ttlSecondsAfterFinished")
    if keeps_seconds is not None:
        stage.engine.after(int(keeps_seconds) * 1_000, f"{ref.title} is cleared away", lambda: _clear(stage, ref))


def _clear(stage: Stage, ref: Ref) -> None:
    found = stage.world.get(ref)
    if found is not None and found["metadata"]["uid"] == ref.uid:
        stage.world.delete(ref, MANAGER)
