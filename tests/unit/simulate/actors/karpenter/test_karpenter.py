"""The imagined Karpenter: what it buys, whom it waits for, and what it takes away."""

from typing import Any

import msgspec
import pytest

from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.lifecycle import born
from reconciler.simulate.actors.karpenter.machines import Timing
from tests.lab.capacity import G5, G6, P4D, P5, NodePool
from tests.lab.fleet import Pod
from tests.stages.buying.purchases import START, imagined, market
from tests.stages.buying.scenarios import SCENARIOS
from tests.unit.simulate.site import AT_ONCE, ONE_BY_ONE, Site, labelled


def test_a_machine_takes_its_time_from_purchase_to_the_first_pod() -> None:
    site = Site(NodePool("a100", [P4D]), timing=Timing(launch_ms=3_000, registration_ms=90_000))
    site.put(Pod("train", gpus=8))
    site.run(30)
    (claim,) = site.claims()
    assert claim["status"]["providerID"]
    assert site.nodes() == []
    site.run(90)
    assert site.nodes() == [claim["metadata"]["name"]]
    assert site.world.get(Ref("Pod", "default", "train"))["spec"].get("nodeName") is None  # type: ignore[index]
    site.run(90)
    assert site.world.get(Ref("Pod", "default", "train"))["status"]["phase"] == "Running"  # type: ignore[index]


def test_what_is_out_of_stock_is_not_asked_for_again_at_once_and_something_else_is_bought() -> None:
    site = Site(NodePool("first", [P4D], more={"weight": 10}), NodePool("second", [P5]))
    site.karpenter.cloud.sold_out.append(Stockout(instance_type=P4D.name))
    site.put(Pod("train", gpus=8))
    site.run(60)
    assert labelled(site, names.KARPENTER_POOL) == ["second"]
    assert [what for _, what in site.events if what.startswith("launch")] == [
        "launch first-00001",
        "launch second-00002",
    ]


def test_a_zone_that_is_out_of_stock_leaves_the_others() -> None:
    site = Site(NodePool("a100", [P4D]))
    for zone in ("eu-1a", "eu-1b"):
        site.karpenter.cloud.sold_out.append(Stockout(zone=zone))
    site.put(*[Pod(f"train-{number}", gpus=8) for number in range(4)])
    site.run(60)
    assert labelled(site, names.ZONE) == ["eu-1c"] * 4


def test_what_is_restocked_is_bought_when_pods_ask_again() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.karpenter.cloud.sold_out.append(Stockout())
    site.put(Pod("train", gpus=8))
    site.run(600)
    assert site.claims() == []
    site.karpenter.cloud.restock(site.karpenter.cloud.sold_out, Stockout())
    site.run(300)
    assert len(site.claims()) == 1


def test_a_deleted_node_is_emptied_first_and_goes_with_its_claim() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.put(Pod("train", gpus=8))
    site.run(300)
    (node,) = site.nodes()
    site.world.delete(Ref("Node", "", node))
    site.run(1)
    assert site.world.get(Ref("Pod", "default", "train"))["metadata"]["deletionTimestamp"]  # type: ignore[index]
    taints = site.world.get(Ref("Node", "", node))["spec"]["taints"]  # type: ignore[index]
    assert names.DISRUPTED in {each["key"] for each in taints}
    site.run(120)
    assert site.world.get(Ref("NodeClaim", "", node)) is None
    assert node not in site.nodes()


def test_a_pod_that_must_not_be_disturbed_holds_its_node_until_its_time_is_up() -> None:
    site = Site(NodePool("a100", [P4D], template={"terminationGracePeriod": "10m"}))
    site.put(Pod("train", gpus=8, annotations={names.DO_NOT_DISRUPT: "true"}))
    site.run(300)
    (node,) = site.nodes()
    site.world.delete(Ref("Node", "", node))
    site.run(500)
    assert node in site.nodes()
    assert not site.world.get(Ref("Pod", "default", "train"))["metadata"].get("deletionTimestamp")  # type: ignore[index]
    site.run(200)
    assert node not in site.nodes()


def test_a_budget_that_allows_no_disruption_holds_a_node_as_long_as_it_does() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.put(Pod("train", gpus=8, labels={"app": "train"}))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
    }
    site.world.put({**budget, "spec": {"selector": {"matchLabels": {"app": "train"}}}})
    site.world.edit(Ref("PodDisruptionBudget", "default", "b"), {"status": {"observedGeneration": 1}})
    site.run(300)
    (node,) = site.nodes()
    site.world.delete(Ref("Node", "", node))
    site.run(300)
    assert node in site.nodes()
    site.world.edit(Ref("PodDisruptionBudget", "default", "b"), {"status": {"disruptionsAllowed": 1}})
    site.run(120)
    assert node not in site.nodes()


def test_a_dead_machine_is_not_waited_for() -> None:
    site = Site(NodePool("a100", [P4D]))
    site.put(Pod("train", gpus=8))
    site.run(300)
    (node,) = site.nodes()
    site.stage.dead_nodes.add(node)
    site.world.delete(Ref("NodeClaim", "", node))
    site.run(5)
    assert node not in site.nodes()
    assert node not in [each["metadata"]["name"] for each in site.claims()]


def test_drifted_nodes_go_one_by_one_where_the_budget_says_so_and_only_once_another_is_ready() -> None:
    site = Site(NodePool("a100", [P4D], more=ONE_BY_ONE))
    site.keep(Pod("train", gpus=8), 3)
    site.run(300)
    before = set(site.nodes())
    site.drift("a100")
    fewest, most = 3, 3
    for _ in range(200):
        site.run(10)
        staying = [each for each in site.world.of("Node") if not each["metadata"].get("deletionTimestamp")]
        ready = [each for each in staying if "karpenter.sh/initialized" in each["metadata"]["labels"]]
        fewest, most = min(fewest, len(ready)), max(most, len(site.nodes()))
    assert (fewest, most) == (3, 4)
    assert not before & set(site.nodes())


def test_a_drift_that_is_taken_back_replaces_nothing_more() -> None:
    site = Site(NodePool("a100", [P4D], more=ONE_BY_ONE))
    site.put(*[Pod(f"train-{number}", gpus=8) for number in range(3)])
    site.run(300)
    site.drift("a100")
    site.run(5)
    assert all("Drifted" in {one["type"] for one in each["status"]["conditions"]} for each in site.claims())
    site.world.edit(Ref("NodePool", "", "a100"), {"spec": {"template": {"metadata": {"labels": {"team": None}}}}})
    before = set(site.nodes())
    site.run(600)
    assert set(site.nodes()) == before


def test_a_deleted_node_pool_takes_its_nodes_with_it_whatever_its_budgets() -> None:
    site = Site(NodePool("a100", [P4D], more={"disruption": {**AT_ONCE["disruption"], "budgets": [{"nodes": "0"}]}}))
    site.put(*[Pod(f"train-{number}", gpus=8) for number in range(3)])
    site.run(300)
    assert len(site.nodes()) == 3
    site.world.delete(Ref("NodePool", "", "a100"))
    site.run(300)
    assert site.nodes() == []
    assert site.claims() == []


def test_expired_nodes_are_deleted_whatever_the_budgets_say() -> None:
    shut = {"disruption": {**AT_ONCE["disruption"], "budgets": [{"nodes": "0"}]}}
    site = Site(NodePool("a100", [P4D], template={"expireAfter": "1h"}, more=shut))
    site.put(Pod("train", gpus=8))
    site.run(3_500)
    assert len(site.nodes()) == 1
    site.run(300)
    assert site.nodes() == []


def test_underused_nodes_are_consolidated_onto_fewer() -> None:
    policy = {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": []}
    }
    site = Site(NodePool("l4", [G6], more=policy))
    site.put(*[Pod(f"large-{number}", gpus=3) for number in range(3)])
    site.run(200)
    assert len(site.nodes()) == 3
    site.keep(Pod("small", gpus=1), 3)
    site.run(20)
    for number in range(3):
        site.world.delete(Ref("Pod", "default", f"large-{number}"))
    site.run(600)
    assert len(site.nodes()) == 1


def test_a_dear_node_is_replaced_by_a_cheaper_one_that_will_do() -> None:
    policy = {
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s", "budgets": []}
    }
    site = Site(NodePool("any", [G6, G5], more=policy))
    site.put(Pod("large", gpus=3))
    site.keep(Pod("small", gpus=1, cpu="1"), 1)
    site.run(200)
    assert labelled(site, names.INSTANCE_TYPE) == [G6.name]
    site.world.delete(Ref("Pod", "default", "large"))
    site.run(600)
    assert labelled(site, names.INSTANCE_TYPE) == [G5.name]


def test_nodes_that_a_scenario_begins_with_are_neither_drifted_nor_bought_again() -> None:
    site = Site(NodePool("a100", [P4D], labels={"team": "research"}))
    site.run(10)
    pool = site.world.get(Ref("NodePool", "", "a100"))
    assert pool is not None
    offering = next(each for each in market() if each.instance_type == P4D.name)
    for body in born(pool, offering, "old", START):
        site.world.put(body)
    site.put(Pod("train", gpus=8))
    site.run(600)
    assert site.nodes() == ["old"]
    (claim,) = site.claims()
    assert [each["type"] for each in claim["status"]["conditions"]] == ["Launched", "Registered", "Initialized"]


def test_the_same_seed_gives_the_same_bytes() -> None:
    def end() -> bytes:
        site = Site(NodePool("any", [P4D, P5, G6], more=AT_ONCE))
        site.put(*[Pod(f"pod-{number}", gpus=1 + number % 8) for number in range(20)])
        site.run(400)
        site.drift("any")
        site.run(1_000)
        return msgspec.json.encode([site.events, site.claims(), list(site.world.of("Node"))])

    assert end() == end()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_each_scenario_of_the_comparison_comes_to_rest(scenario: Any) -> None:
    found = imagined(scenario)
    assert len(found) == scenario.phases
    assert found == imagined(scenario)
