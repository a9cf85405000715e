"""The imagined Karpenter: what it does not buy, whom it gives up, and NodePools of a fixed size."""

from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.simulate.actors.karpenter.machines import Timing
from tests.lab.capacity import G6, P4D, P5, NodePool
from tests.lab.fleet import Pod
from tests.unit.simulate.site import ONE_BY_ONE, Object, Site


def varied(pool: NodePool, least: int) -> Object:
    body = pool.manifest()
    body["spec"]["template"]["spec"]["requirements"][0]["minValues"] = least
    return body


def test_nothing_is_bought_where_fewer_instance_types_are_left_than_must_be() -> None:
    site = Site()
    site.world.put(varied(NodePool("any", [P4D, P5, G6]), 2))
    site.put(Pod("large", gpus=8))
    site.run(60)
    assert len(site.claims()) == 1, "two types have eight GPUs"
    site.world.put(varied(NodePool("any", [P4D, P5, G6]), 3))
    site.put(Pod("as-large", gpus=8), Pod("small", gpus=3))
    site.run(60)
    _, second = site.claims()
    assert second["metadata"]["labels"][names.INSTANCE_TYPE] == G6.name, "only the small one has three to choose from"


def test_a_machine_that_does_not_join_within_fifteen_minutes_is_given_up_and_another_is_bought() -> None:
    site = Site(NodePool("a100", [P4D]), timing=Timing(registration_ms=3_600_000))
    site.put(Pod("train", gpus=8))
    site.run(880)
    assert [each["metadata"]["name"] for each in site.claims()] == ["a100-00001"]
    site.run(200)
    assert [each["metadata"]["name"] for each in site.claims()] == ["a100-00002"]
    assert site.nodes() == []


def test_a_purchase_that_takes_longer_than_five_minutes_is_given_up() -> None:
    site = Site(NodePool("a100", [P4D]), timing=Timing(launch_ms=3_600_000))
    site.put(Pod("train", gpus=8))
    site.run(290)
    assert [each["metadata"]["name"] for each in site.claims()] == ["a100-00001"]
    site.run(60)
    assert [each["metadata"]["name"] for each in site.claims()] == ["a100-00002"]


def test_a_node_pool_of_a_fixed_size_has_its_nodes_whoever_asks_and_shrinks_by_empty_ones_first() -> None:
    site = Site(NodePool("fixed", [P4D], more={"replicas": 3, "limits": {"nodes": "4"}}))
    site.run(300)
    assert len(site.nodes()) == 3
    site.put(*[Pod(f"train-{number}", gpus=8) for number in range(4)])
    site.run(300)
    assert len(site.nodes()) == 3, "no pod makes it grow"
    site.world.edit(Ref("NodePool", "", "fixed"), {"spec": {"replicas": 9}})
    site.run(300)
    assert len(site.nodes()) == 4, "its limit"
    site.put(Pod("late", gpus=8))
    site.world.edit(Ref("Pod", "default", "train-1"), {"metadata": {"annotations": {names.DO_NOT_DISRUPT: "true"}}})
    site.world.delete(Ref("Pod", "default", "late"))
    site.world.delete(Ref("Pod", "default", "train-0"))
    site.run(60)
    site.world.edit(Ref("NodePool", "", "fixed"), {"spec": {"replicas": 3}})
    site.run(300)
    running = {each["spec"]["nodeName"] for each in site.world.of("Pod")}
    assert len(site.nodes()) == 3
    assert running == set(site.nodes())


def test_drifted_nodes_of_a_fixed_size_are_replaced_though_they_are_empty() -> None:
    site = Site(NodePool("fixed", [P4D], more={"replicas": 2, **ONE_BY_ONE}))
    site.run(300)
    before = site.nodes()
    site.drift("fixed")
    site.run(1_500)
    assert len(site.nodes()) == 2
    assert not set(before) & set(site.nodes())


def test_nodes_of_a_fixed_size_are_not_consolidated() -> None:
    going = {"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}}
    site = Site(NodePool("fixed", [P4D], more={"replicas": 2, **going}))
    site.run(1_000)
    assert site.nodes() == ["fixed-00001", "fixed-00002"]
