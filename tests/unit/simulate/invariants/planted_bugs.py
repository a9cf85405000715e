"""Planners with a bug, one for each rule of safety: what nobody may do is added to what the real ones decide."""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.loop.cycle import InProcess
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.decision import Action, Apply, Bind, Decision, Delete, Evict, Ref, Taint, Ungate
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.simulate.results.totals import SMART
from tests.unit.plan.smart_pods import restricted
from tests.unit.plan.some_reasons import some_reason
from tests.unit.simulate.invariants import planted_claims
from tests.unit.simulate.invariants import planted_drains as drain

Bug = Callable[[Inputs], Iterator[tuple[Ref, Action]]]

FOREIGN = "other.example.com/gate"
LEAVES = Taint(key=names.DELETION_TIME, value="1795013520", effect="PreferNoSchedule")
DRAINS = Taint(key=names.DRAINING, value="", effect="NoSchedule")


class Planted(InProcess):
    """A Brain with a bug; what the real planners do of the same objects is left out where they would mend it."""

    def __init__(self, bug: Bug) -> None:
        super().__init__()
        self._bug = bug

    def plan(self, inputs: Inputs) -> Plan:
        plan = super().plan(inputs)
        added = [Decision("planted", ref, act, some_reason("Planted"), "a100") for ref, act in self._bug(inputs)]
        left_out = ALONE.get(self._bug)
        kept = [each for each in plan.decisions if left_out is None or not left_out(each)]
        return msgspec.structs.replace(plan, decisions=(*kept, *added))


def deletes_a_busy_node(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    busy = {pod.node for pod in inputs.observed.pods if pod.counts}
    yield from [(ref(node), Delete()) for node in nodes(inputs) if node.name in busy][:1]


def deletes_a_claim(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    claims = sorted(each.name for each in inputs.observed.node_claims)
    yield from [(Ref("NodeClaim", "", name), Delete()) for name in claims][:1]


def evicts_the_protected(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    for pod in inputs.observed.pods:
        if pod.metadata.annotations.do_not_disrupt and pod.node:
            yield Ref("Pod", pod.metadata.namespace, pod.name), Evict(grace_seconds=30)


def evicts_who_saves(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Once it is known that they run."""
    is_known = inputs.now % 3_600_000 > 120_000
    for pod in inputs.observed.pods if is_known else ():
        if pod.metadata.annotations.checkpoint and pod.status.phase == "Running":
            yield Ref("Pod", pod.metadata.namespace, pod.name), Evict(grace_seconds=30)


def takes_the_cordoned(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(ref(node), LEAVES) for node in nodes(inputs) if node.spec.unschedulable]


def takes_what_opts_out(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(ref(node), LEAVES) for node in nodes(inputs) if node.metadata.annotations.scale_down_disabled]


def marks_twice(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    for first in nodes(inputs)[:1]:
        yield ref(first), LEAVES if first.taint(names.DELETION_TIME) is None else DRAINS


def forgets_a_freeze(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Three minutes after it was put there, when everybody knows of it."""
    is_known = inputs.now % 3_600_000 > 240_000
    yield from [(ref(node), LEAVES) for node in nodes(inputs) if is_known and node.metadata.annotations.frozen_until]


def marks_one(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(ref(node), LEAVES) for node in nodes(inputs)[:1]]


def deletes_at_once(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """An empty node, which nobody has announced."""
    busy = {pod.node for pod in inputs.observed.pods if pod.counts}
    yield from [(ref(node), Delete()) for node in nodes(inputs) if node.name not in busy][:1]


def marks_a_busy_one(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Once it has been busy for a while."""
    busy = {pod.node for pod in inputs.observed.pods if pod.counts}
    if inputs.now % 3_600_000 > 180_000:
        yield from [(ref(node), LEAVES) for node in nodes(inputs) if node.name in busy][:1]


def marks_three_empty(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Once they have been empty for a while."""
    busy = {pod.node for pod in inputs.observed.pods if pod.counts}
    if inputs.now % 3_600_000 > 120_000:
        yield from [(ref(node), LEAVES) for node in nodes(inputs) if node.name not in busy][:3]


def books_twice(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """A pod that waits goes where another is already."""
    busy = sorted(pod.node for pod in inputs.observed.pods if pod.gpus == 8 and pod.node)
    for pod in inputs.observed.pods:
        if busy and not pod.node and pod.gpus:
            bind = Bind(node=busy[0], leases=(), annotations=())
            yield Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid), bind


def makes_two_for_one_need(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [smart(name) for name in ("smart-1", "smart-2") if not is_there(inputs, name)]


def forgets_a_smart_pod(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [smart("smart-1")] if not is_there(inputs, "smart-1") else []


def lifts_the_gate_of_another(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from ungated(inputs, FOREIGN)


def lifts_its_gate_without_room(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from ungated(inputs, names.CAPACITY_GATE)


def ungated(inputs: Inputs, gate: str) -> Iterator[tuple[Ref, Action]]:
    for pod in inputs.observed.pods:
        if gate in {each.name for each in pod.spec.scheduling_gates}:
            yield Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid), Ungate(gate=gate)


def is_there(inputs: Inputs, name: str) -> bool:
    return any(pod.name == name for pod in inputs.observed.pods)


def smart(name: str) -> tuple[Ref, Action]:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": names.SMART_PODS_NAMESPACE,
            "labels": {names.COMPONENT: SMART, names.MANAGED: "true"},
            "annotations": {names.ORIGINAL_REQUEST: '{"key": "need"}'},
        },
        "spec": {
            "containers": [{**restricted.CONTAINER, "resources": {"limits": {names.NVIDIA_GPU: "1"}}}],
            **restricted.POD,
        },
    }
    return Ref("Pod", names.SMART_PODS_NAMESPACE, name), Apply(manifest=msgspec.json.encode(body).decode())


def is_of_pods(decision: Decision) -> bool:
    return decision.subject.kind == "Pod"


def is_of_nodes(decision: Decision) -> bool:
    return decision.subject.kind == "Node"


# What the real planners decide that would put things right at once.
ALONE: dict[Bug, Callable[[Decision], bool]] = {
    makes_two_for_one_need: is_of_pods,
    forgets_a_smart_pod: is_of_pods,
    lifts_the_gate_of_another: is_of_pods,
    lifts_its_gate_without_room: is_of_pods,
    marks_twice: is_of_nodes,
    drain.taints_one_of_two: drain.is_of_another,
    drain.deletes_what_it_has_just_emptied: is_of_nodes,
    **planted_claims.LEFT_OUT,
}

BUGS: dict[str, Bug] = {
    "reconciler deletes no node with a workload pod": deletes_a_busy_node,
    "reconciler neither creates nor deletes NodeClaims": deletes_a_claim,
    "reconciler respects annotations against disruption of pods": evicts_the_protected,
    "nodes that another component is removing are not touched": takes_the_cordoned,
    "reconciler neither taints nor deletes nodes that opt out of removal": takes_what_opts_out,
    "no node has the taints of two planners": marks_twice,
    "frozen objects are not changed": forgets_a_freeze,
    "pools in Observe mode are not written": marks_one,
    "no guard's ceiling is passed": marks_three_empty,
    "nodes are deleted only after their delay, and 30 s after NoSchedule": deletes_at_once,
    "reconciler brings no pool below minSize": deletes_at_once,
    "reconciler taints no node in use for deletion": marks_a_busy_one,
    "no node has pods for more GPUs than it has": books_twice,
    "there is one smart pod per need": makes_two_for_one_need,
    "smart pods are deleted within two minutes after their node is ready": forgets_a_smart_pod,
    "reconciler removes no scheduling gate of others": lifts_the_gate_of_another,
    "pods that wait for capacity are ungated only when a node has room": lifts_its_gate_without_room,
    "reconciler evicts a pod with a checkpoint annotation only after its checkpoint or its time": evicts_who_saves,
    **drain.BUGS,
    **planted_claims.BUGS,
}


def nodes(inputs: Inputs) -> list[Node]:
    return sorted(inputs.observed.nodes, key=lambda each: each.name)


def ref(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)
