"""Explanation of a node: what is reserved, by whom, the pressure, and which pods would relieve the node."""

from collections.abc import Iterator, Mapping

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.cluster.node import Node
from reconciler.model.plan.pressure import ElasticPod, LedgerPod
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.pressure.choice import choose, in_order
from reconciler.plan.pressure.ledgers import elastic_pods, ledger_of, pressed_resources, pressure_policies
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.reasons import PLANNER
from reconciler.plan.pressure.words import amount_words
from reconciler.report.explain.about import Row, placed
from reconciler.report.sentences import fact_words
from reconciler.report.wording import listed

_MOST_PODS = 10


def pressure_rows(scene: PlanningResult, node: Node) -> Iterator[Row]:
    """No rows, if no PressurePolicy names the pool of the node."""
    declared = [each for each in scene.inputs.desired.pressures if {"*", node.pool} & set(each.spec.pool_names)]
    policy = pressure_policies(scene.inputs.desired).get(node.pool)
    if policy is None:
        for each in declared:
            yield "pressure", f"PressurePolicy/{each.name} is suspended {placed(each.origin())}"
        return
    title = f"PressurePolicy/{policy.name}, migration {policy.spec.migration}"
    yield "pressure policy", f"{title} {placed(policy.origin())}"
    state = scene.inputs.pressure
    pods = next((each for each in state.nodes if each.node == node.name), None) if state is not None else None
    if state is None or pods is None:
        yield "reserved", "unknown: only the controller that answers the agents of elastic pods knows the permits"
        return
    migrating = {each.uid for each in scene.plan.memory.section(PLANNER, MigrationMemory).migrations}
    ledger = ledger_of(pods, elastic_pods(scene.fleet), migrating)
    yield from (("reserved", _reserved(ledger, name)) for name in sorted(ledger.bounds))
    yield from _pods(ledger, state.loads)
    yield from _pressure(scene, ledger, node)


def _reserved(ledger: NodeLedger, name: str) -> str:
    figures, bounds = ledger.pressure(name), ledger.bounds[name]
    amount = [amount_words(name, each) for each in (figures.reserved, bounds.reservable, bounds.watermark)]
    text = f"{name}: {amount[0]} of {amount[1]}, watermark {amount[2]}"
    system = f", besides {amount_words(name, bounds.system)} for the system" if bounds.system else ""
    return text + system + (f", buffer {amount_words(name, figures.buffer)}" if figures.buffer else "")


def _pods(ledger: NodeLedger, loads: Mapping[str, int]) -> Iterator[Row]:
    """One row for each of the pods that have reserved most, and the number of others."""
    order = sorted(ledger.pods, key=lambda each: (-_share(ledger, each), each.title))
    yield from (("reserved by", _pod(ledger, each, loads)) for each in order[:_MOST_PODS])
    if more := order[_MOST_PODS:]:
        yield "reserved by", f"and {len(more)} more"


def _share(ledger: NodeLedger, pod: LedgerPod) -> int:
    """The largest share of a resource that the pod has reserved, in millionths."""
    shares = (_amount(pod, name) * 1_000_000 // max(1, each.reservable) for name, each in ledger.bounds.items())
    return max(shares, default=0)


def _amount(pod: LedgerPod, name: str) -> int:
    return pod.reserved(name) if isinstance(pod, ElasticPod) else pod.requests.get(name, 0)


def _pod(ledger: NodeLedger, pod: LedgerPod, loads: Mapping[str, int]) -> str:
    """Such as Pod/team/web-0: cpu 4, memory 8Gi; lacks cpu 500m; load 0.75; leaving."""
    amounts = [f"{name} {amount_words(name, _amount(pod, name))}" for name in sorted(ledger.bounds)]
    parts = [f"Pod/{pod.title}: {', '.join(amounts)}"]
    if isinstance(pod, ElasticPod):
        lacks = [f"{name} {amount_words(name, amount)}" for name, amount in sorted(pod.lacks.items()) if amount]
        parts += [f"lacks {', '.join(lacks)}"] if lacks else []
        load = loads.get(pod.uid)
        parts.append("load unknown" if load is None else f"load {load // 1_000}.{load % 1_000:03}")
        parts += ["its agent was not heard yet"] if pod.is_silent else []
        parts += ["leaving"] if pod.is_migrating else []
    else:
        parts.append("not elastic")
    return "; ".join(parts)


def _pressure(scene: PlanningResult, ledger: NodeLedger, node: Node) -> Iterator[Row]:
    pressed = pressed_resources(ledger)
    if not pressed:
        yield "pressure", "none"
        return
    left = [f"{each.resource} {amount_words(each.resource, each.left)}" for each in pressed if each.left]
    accounted = f"not accounted for: {listed(left)}" if left else "pods that are leaving account for all of it"
    yield "pressure", f"{fact_words(pressed)}; {accounted}"
    if left:
        titles = {pod.uid: f"Pod/{pod.title}" for pod in ledger.pods}
        candidates = [each for each in ledger.elastic_pods if not each.is_migrating]
        order = in_order(candidates, scene.inputs.pressure.loads if scene.inputs.pressure is not None else {})
        choice = choose(ledger, order, lambda _: node.name, lambda _: None)
        relief = listed([titles[uid] for uid in choice.chosen])
        enough = "" if not ledger.is_pressed else ", and that is not enough"
        yield "relieved if", f"{relief} could leave{enough}" if relief else "no elastic pod would relieve the node"
