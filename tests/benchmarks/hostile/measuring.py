"""Plans a fleet beside the objects of a hostile tenant, in a process of its own, and prints what that took.

python -m tests.benchmarks.hostile.measuring (waiting|running) BOMB MANY. `waiting`: 500 nodes and 10,000 pods of 10
provisioners; what the tenant makes waits for capacity. `running`: 300 nodes that are drained and 12,000 pods; what the
tenant makes runs on half of them. Seconds are of the processor.
"""

import json
import resource
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.kube.placeholders import each_once, parted
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.desired import Declared
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.problem import Origin
from reconciler.plan.planner import plan
from tests.benchmarks.draining.drained_fleets import Words, decoded
from tests.benchmarks.draining.planned_fleets import first_inputs
from tests.benchmarks.hostile.bombs import BOMBS, NAMESPACE, OWNER
from tests.benchmarks.plans.scaling import scene

NODES, PODS, POOLS, DRAINED_NODES = 500, 10_000, 10, 300
_KINDS = {each.kind: each for each in reversed(RESOURCE_KINDS) if not each.selector}


def main(where: str, bomb: str, many: int) -> dict[str, float]:
    inputs = _waiting() if where == "waiting" else first_inputs("equal", DRAINED_NODES)
    alone = _resident_mib()
    made: dict[str, list[Words]] = {}
    if bomb != "none":
        made = {kind: list(objects) for kind, objects in BOMBS[bomb](many).items()}
        made.setdefault("ReplicaSet", []).append(OWNER)
    if where == "running":
        _run(made.get("Pod", ()), [node.name for node in inputs.observed.nodes[: DRAINED_NODES // 2]])
    started = time.process_time()
    inputs = _beside(inputs, made)
    decode_seconds = time.process_time() - started
    made.clear()
    fleet = Fleet(inputs.observed)
    started = time.process_time()
    first = plan(inputs, fleet)
    first_seconds = time.process_time() - started
    started = time.process_time()
    again = plan(inputs, fleet)
    again_seconds = time.process_time() - started
    if first.digest != again.digest or first.troubles:
        raise SystemExit(f"two plans of the same differ, or trouble: {first.troubles[:1]}")
    return {
        "decode_seconds": round(decode_seconds, 3),
        "first_seconds": round(first_seconds, 3),
        "again_seconds": round(again_seconds, 3),
        "mib_more": _resident_mib() - alone,
        "decisions_of_others": _of_others(first),
    }


def _waiting() -> Inputs:
    inputs = scene(NODES, PODS, POOLS)
    policy = DrainPolicy(
        pool_names=["*"], utilization_threshold_percent=100, max_drain_parallelism=10, max_scale_down_parallelism=20
    )
    drains = (Declared("DrainPolicy", "drains", policy, (("", Origin("policies.yaml", 1)),)),)
    return msgspec.structs.replace(inputs, desired=msgspec.structs.replace(inputs.desired, drains=drains))


def _run(pods: Iterable[Words], nodes: list[str]) -> None:
    for number, pod in enumerate(pods):
        pod["spec"].pop("schedulingGates", None)
        pod["spec"]["nodeName"] = nodes[number % len(nodes)]
        pod["status"] = {"phase": "Running"}
        for container in pod["spec"]["containers"]:
            amounts: dict[str, Any] = container["resources"]
            for asked in amounts.values():
                asked.pop("nvidia.com/gpu", None)


def _beside(inputs: Inputs, made: dict[str, list[Words]]) -> Inputs:
    fields: dict[str, tuple[Any, ...]] = {}
    aside: list[SetAside] = []
    for kind, objects in made.items():
        field = _KINDS[kind].field
        there = fields.get(field, getattr(inputs.observed, field))
        found, refused = parted(tuple(decoded(_KINDS[kind], objects)))
        fields[field] = (*there, *found)
        aside += refused
    observed = msgspec.structs.replace(inputs.observed, set_aside=each_once(aside), **fields)
    return msgspec.structs.replace(inputs, observed=observed)


def _of_others(made: Plan) -> int:
    return sum(f"{NAMESPACE}/" not in str(each.subject) for each in made.decisions)


def _resident_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
