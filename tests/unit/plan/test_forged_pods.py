"""Whatever a tenant writes on pods of its own, nothing else is decided about anybody else."""

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.forged_pods import ELSEWHERE, NAMESPACE, Forgery

AT_ONCE, DRAWN = 50, 400


def planned(inputs: Inputs) -> Plan:
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet)
    check(inputs, fleet, made)
    assert made.troubles == ()
    return made


def with_pods(inputs: Inputs, *pods: Pod) -> Inputs:
    observed = msgspec.structs.replace(inputs.observed, pods=(*inputs.observed.pods, *pods))
    return msgspec.structs.replace(inputs, observed=observed)


def with_a_node_elsewhere(inputs: Inputs) -> Inputs:
    observed: Observed = msgspec.structs.replace(inputs.observed, nodes=(*inputs.observed.nodes, ELSEWHERE))
    return msgspec.structs.replace(inputs, observed=observed)


def of_others(made: Plan, titles: dict[str, str]) -> list[str]:
    """What is decided about others, remembered of them and told of pools; `titles`: what pods are called instead."""
    decisions = [each for each in made.decisions if each.subject.namespace != NAMESPACE]
    memory = made.memory
    evicted = tuple(each for each in memory.drained.evicted if not each.title.startswith(f"{NAMESPACE}/"))
    drained = msgspec.structs.replace(memory.drained, evicted=evicted)
    told = [*decisions, msgspec.structs.replace(memory, drained=drained), *made.report(ScalingReport).sizes]
    return [_renamed(msgspec.json.encode(each).decode(), titles) for each in told]


def _renamed(text: str, titles: dict[str, str]) -> str:
    for before, after in titles.items():
        text = text.replace(before, after)
    return text


def decided(inputs: Inputs, pods: tuple[Pod, ...]) -> list[str]:
    titles = {each.title: each.metadata.uid for each in pods}
    return of_others(planned(with_pods(inputs, *pods)), titles)


@pytest.mark.parametrize("first", range(0, DRAWN, AT_ONCE))
def test_pods_off_all_pools_change_nothing_whatever_is_written_on_them(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        inputs = with_a_node_elsewhere(Drawn(seed).inputs())
        forgery = Forgery(seed, inputs, planned(inputs))
        forged, plain = zip(*(forgery.without_node(at) for at in range(seed % 3 + 1)), strict=True)
        assert decided(inputs, forged) == decided(inputs, plain)


@pytest.mark.parametrize("first", range(0, DRAWN, AT_ONCE))
def test_pods_on_nodes_of_pools_change_no_more_than_pods_without_our_marks(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        inputs = Drawn(seed).inputs()
        forgery, nodes = Forgery(seed, inputs, planned(inputs)), inputs.observed.nodes
        drawn = [forgery.on_a_node(at, nodes[at % len(nodes)]) for at in range(seed % 3 + 1) if nodes]
        forged, *plain = zip(*drawn, strict=True) if drawn else [()]
        found = decided(inputs, forged) if plain else []
        assert not plain or any(found == decided(inputs, each) for each in plain), seed
