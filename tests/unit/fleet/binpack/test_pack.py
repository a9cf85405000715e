"""Packing by example: what is bought for whom, and what is said of pods that nothing is bought for."""

from collections import Counter
from typing import Any

import pytest

from reconciler.fleet.binpack.offers import BinpackLimits, Offering, Shape
from reconciler.fleet.binpack.pack import NO_LIMITS, pack
from reconciler.fleet.binpack.result import Packed
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import (
    Affinity,
    ClaimSource,
    Container,
    Pod,
    PodTerm,
    PodTerms,
    Port,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from reconciler.plan.capacity.words import obstacle_words
from tests import builders

GPU = "nvidia.com/gpu"
EACH_OTHER = LabelSelector({"app": "web"})
NOTHING = Observed()


def packing(
    waiting: list[Pod], offered: list[Shape], observed: Observed = NOTHING, limits: BinpackLimits = NO_LIMITS
) -> Packed:
    return pack(Snapshot(observed), waiting, offered, limits)


def bought(waiting: list[Pod], offered: list[Shape]) -> Counter[str]:
    """How many of which shape, when every pod has its place."""
    packed = packing(waiting, offered)
    assert not packed.unplaced
    return counted(packed)


def counted(packed: Packed) -> Counter[str]:
    return Counter(each.shape for each in packed.nodes)


def by_zone(packed: Packed) -> Counter[str]:
    """How many pods are in which zone, when every pod has its place."""
    assert not packed.unplaced
    return Counter(each.zone for each in packed.nodes for _ in each.pods)


def places(packed: Packed) -> dict[str, str]:
    return {pod.name: each.shape for each in packed.nodes for pod in each.pods}


def amounts(cpus: int, **more: str) -> dict[str, str]:
    return {"cpu": str(cpus), "memory": f"{cpus * 4}Gi", "pods": "110"} | more


def shape(name: str, cpus: int, price: int, **more: Any) -> Shape:
    """With an offering in each zone, of which each letter is one."""
    offerings = tuple(Offering(zone, "spot", price) for zone in more.pop("zones", "a"))
    taints, most = more.pop("taints", ()), more.pop("most", None)
    return Shape(name, {}, taints, amounts(cpus, **more), offerings, most)


def pod(name: str, cpu: str = "1", app: str = "web", **spec: Any) -> Pod:
    requests = {"cpu": cpu} | ({GPU: spec.pop(GPU)} if GPU in spec else {})
    return builders.pod(name, asks=requests, namespace="default", labels={"app": app}, **spec)


def pods(count: int, **spec: Any) -> list[Pod]:
    return [pod(f"web-{number}", **spec) for number in range(count)]


def apart(key: str) -> Affinity:
    return Affinity(pod_anti_affinity=PodTerms((PodTerm(key, EACH_OTHER),)))


def node(name: str, zone: str) -> Node:
    return builders.node(name, labels={names.HOSTNAME: name, names.ZONE: zone}, has=amounts(8))


def standing(running: dict[str, int]) -> Observed:
    """A node in each zone, and so many pods on it."""
    nodes = tuple(node(f"node-{zone}", zone) for zone in running)
    there = [(zone, number) for zone, count in running.items() for number in range(count)]
    return Observed(nodes=nodes, pods=tuple(pod(f"{zone}-{at}", node_name=f"node-{zone}") for zone, at in there))


def test_what_costs_less_is_bought_even_where_that_means_more_nodes() -> None:
    assert bought(pods(4), [shape("large", 4, 100), shape("small", 2, 49)]) == {"small": 2}


def test_of_ways_that_cost_the_same_the_one_with_the_fewest_nodes_is_taken() -> None:
    assert bought(pods(4), [shape("large", 4, 100), shape("small", 2, 50)]) == {"large": 1}


def test_the_last_pods_get_a_smaller_node() -> None:
    assert bought(pods(9), [shape("large", 4, 100), shape("small", 2, 60), shape("tiny", 1, 40)]) == {
        "large": 2,
        "tiny": 1,
    }


def test_pods_of_different_sizes_fill_each_others_gaps() -> None:
    waiting = [pod(f"wide-{each}", cpu="3") for each in range(3)] + pods(3)
    assert bought(waiting, [shape("large", 4, 100)]) == {"large": 3}


def test_of_a_shape_no_more_nodes_are_bought_than_there_are() -> None:
    packed = packing(pods(6), [shape("cheap", 2, 10, most=2), shape("dear", 2, 50)])
    assert counted(packed) == {"cheap": 2, "dear": 1}


def test_of_all_shapes_together_no_more_nodes_are_bought_than_may_be() -> None:
    packed = packing(pods(6), [shape("one", 2, 10), shape("other", 1, 1)], limits=BinpackLimits(nodes=2))
    assert len(packed.nodes) == 2
    assert {obstacle_words(each.why) for each in packed.unplaced} == {"no more nodes may be launched"}


def test_where_a_shape_runs_out_in_one_zone_it_is_bought_in_no_other() -> None:
    packed = packing(pods(4), [shape("cheap", 1, 10, zones="ab", most=3)])
    assert (counted(packed), len(packed.unplaced)) == ({"cheap": 3}, 1)
    assert obstacle_words(packed.unplaced[0].why) == "no more nodes of the suitable shapes may be launched"


def test_an_offering_that_is_not_available_is_not_bought() -> None:
    offerings = (Offering("a", "spot", 10, available=False), Offering("b", "spot", 20), Offering("c", "spot", 30))
    packed = packing(pods(1), [Shape("small", {}, (), amounts(2), offerings)])
    assert [(each.zone, each.micro_dollars_per_hour) for each in packed.nodes] == [("b", 20)]


def test_nodes_that_stand_already_are_left_to_the_scheduler() -> None:
    packed = packing(pods(1), [shape("small", 2, 10)], Observed(nodes=(node("n", "a"),)))
    assert counted(packed) == {"small": 1}


def test_a_spread_over_zones_counts_the_pods_that_run_already() -> None:
    running = {"a": 2, "b": 1, "c": 0}
    packed = packing(
        pods(3, topology_spread_constraints=(TopologySpreadConstraint(1, names.ZONE, "DoNotSchedule", EACH_OTHER),)),
        [shape("small", 2, 10, zones="abc")],
        standing(running),
    )
    assert by_zone(packed) == {"b": 1, "c": 2}


def test_pods_spread_over_zones_share_one_node_in_each() -> None:
    waiting = pods(
        30, topology_spread_constraints=(TopologySpreadConstraint(1, names.ZONE, "DoNotSchedule", EACH_OTHER),)
    )
    packed = packing(waiting, [shape("large", 16, 10, zones="abc")])
    assert (by_zone(packed), len(packed.nodes)) == ({"a": 10, "b": 10, "c": 10}, 3)


def test_pods_that_keep_away_from_each_other_get_a_node_each() -> None:
    packed = packing(pods(3, affinity=apart(names.HOSTNAME)), [shape("large", 8, 80), shape("small", 1, 15)])
    assert counted(packed) == {"small": 3}


def test_pods_that_anybody_may_be_with_fill_the_nodes_of_those_that_keep_away_from_each_other() -> None:
    waiting = pods(3, affinity=apart(names.HOSTNAME)) + [pod(f"any-{each}", app="any") for each in range(3)]
    assert bought(waiting, [shape("small", 2, 10)]) == {"small": 3}


def test_a_pod_goes_where_the_pods_run_that_it_must_be_near_though_it_costs_more_there() -> None:
    near = Affinity(pod_affinity=PodTerms((PodTerm(names.ZONE, EACH_OTHER),)))
    offered = Shape("small", {}, (), amounts(2), (Offering("a", "spot", 10), Offering("b", "spot", 90)))
    packed = packing([pod("waits", affinity=near)], [offered], standing({"a": 0, "b": 1}))
    assert by_zone(packed) == {"b": 1}


def test_a_pod_stays_out_of_the_zone_of_a_pod_that_keeps_away_from_it() -> None:
    there = pod("there", affinity=apart(names.ZONE), node_name="node-a")
    observed = Observed(nodes=(node("node-a", "a"),), pods=(there,))
    packed = packing(pods(2), [shape("small", 1, 10, zones="ab")], observed)
    assert by_zone(packed) == {"b": 2}


def test_pods_that_want_the_same_port_of_a_host_get_a_node_each() -> None:
    listening = Container(resources=ResourceRequirements({"cpu": "1"}), ports=(Port(host_port=80),))
    assert bought(pods(2, containers=(listening,)), [shape("large", 8, 10)]) == {"large": 2}


def test_only_pods_that_tolerate_its_taint_go_to_a_shape() -> None:
    offered = [shape("cheap", 4, 10, taints=(NodeTaint("batch", "NoSchedule"),)), shape("dear", 4, 50)]
    tolerant = [pod("batch", tolerations=(Toleration("batch", "Exists"),))]
    found = places(packing(pods(4) + tolerant, offered))
    assert found == {"batch": "cheap"} | dict.fromkeys(["web-0", "web-1", "web-2", "web-3"], "dear")


def test_gpus_are_bought_for_pods_that_ask_for_them_and_others_go_along() -> None:
    gpus = [shape(f"gpu-{count}", 4, 1_000 * count, **{GPU: str(count)}) for count in (1, 8)]
    waiting = [pod("train", **{GPU: "3"}), pod("infer", **{GPU: "1"}), pod("plain")]
    assert bought(waiting, [*gpus, shape("plain", 4, 100)]) == {"gpu-8": 1}


def test_gpus_are_not_bought_for_pods_that_do_not_ask_for_them() -> None:
    assert bought(pods(4), [shape("gpu", 4, 100, **{GPU: "8"}), shape("plain", 4, 90)]) == {"plain": 1}


REASONS: dict[str, tuple[Pod, str]] = {
    "too large": (pod("x", cpu="9"), "requests 9000m cpu, and the maximum is 4000m"),
    "something that no shape has": (pod("x", **{GPU: "1"}), f"requests 1 {GPU}, and the maximum is 0"),
    "a zone that nothing is offered in": (
        pod("x", node_selector={names.ZONE: "z"}),
        f"the pod selects nodes with {names.ZONE}=z, the node has a",
    ),
    "near pods that are nowhere": (
        pod("x", affinity=Affinity(pod_affinity=PodTerms((PodTerm(names.ZONE, LabelSelector({"app": "db"})),)))),
        "the pod's affinity needs app=db in default, and none are on suitable nodes",
    ),
    "nodes with a label that none has": (
        pod("x", topology_spread_constraints=(TopologySpreadConstraint(1, "rack", "DoNotSchedule", EACH_OTHER),)),
        "the pod needs a node with the label rack",
    ),
    "apart from what runs everywhere": (
        pod("x", affinity=apart(names.ZONE)),
        "anti-affinity with pods that run there: app=web in default",
    ),
    "a claim that is not there": (
        pod("x", volumes=(Volume(persistent_volume_claim=ClaimSource("lost")),)),
        "PersistentVolumeClaim default/lost does not exist",
    ),
}


@pytest.mark.parametrize("asks", REASONS)
def test_a_pod_that_goes_nowhere_is_told_why(asks: str) -> None:
    waiting, why = REASONS[asks]
    packed = packing([waiting], [shape("small", 2, 10), shape("large", 4, 20)], standing({"a": 1}))
    assert [obstacle_words(each.why) for each in packed.unplaced] == [why]


def test_each_shape_that_is_ruled_out_is_named_once_with_what_rules_it_out() -> None:
    offered = [
        shape("barred", 8, 10, most=0),
        shape("gone", 8, 10, zones=""),
        shape("small", 1, 10),
        shape("smaller", 1, 10, memory="1Gi"),
        shape("tainted", 8, 10, taints=(NodeTaint("batch", "NoSchedule"),)),
    ]
    packed = packing([pod("x", cpu="2")], offered)
    assert [(obstacle_words(each.why), each.shapes) for each in packed.unplaced[0].refusals] == [
        ("no node of the shape may be launched", ("barred",)),
        ("the shape is not available anywhere", ("gone",)),
        ("requests 2000m cpu, and the maximum is 1000m", ("small", "smaller")),
        ("the pod does not tolerate the taint batch:NoSchedule", ("tainted",)),
    ]
    assert obstacle_words(packed.unplaced[0].why) == "requests 2000m cpu, and the maximum is 1000m"


def test_where_nothing_is_on_offer_that_is_said() -> None:
    assert [obstacle_words(each.why) for each in packing(pods(1), []).unplaced] == ["there are no offers"]


def test_pods_that_the_steps_did_not_last_for_are_told_apart_from_those_that_fit_nowhere() -> None:
    waiting = [*(pod(f"pod-{each}", cpu=f"{300 + each}m") for each in range(39)), pod("huge", cpu="99")]
    packed = packing(waiting, [shape("small", 1, 10)], limits=BinpackLimits(steps=20))
    assert packed.not_evaluated
    assert [each.pod.name for each in packed.unplaced] == ["huge"]
    assert len(packed.not_evaluated) + sum(len(each.pods) for each in packed.nodes) == 39


def test_two_shapes_of_one_name_are_turned_away() -> None:
    with pytest.raises(ValueError, match="two shapes are named small: shape names must be unique"):
        packing(pods(1), [shape("small", 1, 10), shape("small", 2, 10)])


@pytest.mark.parametrize("price", [0, 1, 10**15 - 1, 2**62])
def test_a_limit_on_nodes_holds_at_every_price(price: int) -> None:
    packed = packing(pods(3_000), [shape("small", 1, price)], limits=BinpackLimits(nodes=3))
    assert counted(packed) == {"small": 3}


def test_offers_without_a_limit_are_chosen_by_price_however_high_the_prices_are() -> None:
    offered = [shape("dear", 4, 10**15), shape("dearer", 4, 10**15 + 1), shape("cheap", 4, 10**7, most=1)]
    assert bought(pods(12), offered) == {"cheap": 1, "dear": 2}


@pytest.mark.filterwarnings("error")
def test_amounts_larger_than_any_node_has_are_counted_without_an_overflow() -> None:
    offered = [shape("small", 1, 10**6), shape("dear", 1, 10**15, **{GPU: "8"})]
    waiting = [*pods(3), pod("fits", **{GPU: "2"}), *(pod(f"huge-{each}", **{GPU: "8Ei"}) for each in range(3))]
    packed = packing(waiting, offered)
    assert sorted(each.pod.name for each in packed.unplaced) == ["huge-0", "huge-1", "huge-2"]
