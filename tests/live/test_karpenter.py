"""Karpenter buys real capacity in the lab, and only what is on offer."""

from tests.lab import capacity, fleet
from tests.lab.capacity import GPU
from tests.lab.lab import Lab


def ready(cluster: Lab) -> Lab:
    cluster.start("scheduler", "kwok", "karpenter")
    return cluster


def test_a_pending_pod_that_asks_for_8_gpus_gets_a_node_and_runs(cluster: Lab) -> None:
    admin = ready(cluster).admin
    admin.apply(capacity.NodePool("a100", [capacity.P4D], labels={"team": "research"}).manifest())
    admin.create(fleet.Pod("train", gpus=8, cpu="8").manifest())
    pod = admin.wait_for("pods", "train", fleet.is_running, "default")
    (claim,) = admin.list("nodeclaims")
    node = admin.wait_for("nodes", pod["spec"]["nodeName"], fleet.is_ready)
    assert claim["metadata"]["labels"]["karpenter.sh/nodepool"] == "a100"
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "p4d.24xlarge"
    assert node["metadata"]["labels"]["team"] == "research"
    assert node["status"]["allocatable"][GPU] == "8"


def test_it_buys_the_cheapest_type_and_capacity_type_that_will_do(cluster: Lab) -> None:
    admin = ready(cluster).admin
    pool = capacity.NodePool("any", [capacity.P5, capacity.G6, capacity.G5], capacity_types=["spot", "on-demand"])
    admin.apply(pool.manifest())
    admin.create(fleet.Pod("infer", gpus=1, cpu="1", memory="4Gi").manifest())
    pod = admin.wait_for("pods", "infer", fleet.is_running, "default")
    labels = admin.wait_for("nodes", pod["spec"]["nodeName"], fleet.is_ready)["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "g5.xlarge"
    assert labels["karpenter.sh/capacity-type"] == "spot"


def test_what_is_no_longer_offered_cannot_be_bought(cluster: Lab) -> None:
    ready(cluster).start_karpenter((capacity.G5,))
    admin = cluster.admin
    admin.apply(capacity.NodePool("gone", [capacity.P4D]).manifest())
    admin.apply(capacity.NodePool("there", [capacity.G5]).manifest())
    admin.create(fleet.Pod("large", gpus=8).manifest())
    admin.create(fleet.Pod("small", gpus=1).manifest())
    admin.wait_for("pods", "small", fleet.is_running, "default")
    large = admin.get("pods", "large", "default")
    assert large
    assert large["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert [each["metadata"]["labels"]["karpenter.sh/nodepool"] for each in admin.list("nodeclaims")] == ["there"]
    cluster.start_karpenter()


def test_a_deleted_node_goes_with_its_claim(cluster: Lab) -> None:
    admin = ready(cluster).admin
    admin.apply(capacity.NodePool("a100", [capacity.P4D]).manifest())
    admin.create(fleet.Pod("train", gpus=8).manifest())
    node = admin.wait_for("pods", "train", fleet.is_running, "default")["spec"]["nodeName"]
    (claim,) = admin.list("nodeclaims")
    admin.delete("pods", "train", "default")
    admin.delete("nodes", node)
    admin.wait_for("nodes", node, lambda found: found is None)
    admin.wait_for("nodeclaims", claim["metadata"]["name"], lambda found: found is None)


def test_a_pool_that_would_take_reserved_capacity_gets_on_demand_nodes_and_karpenter_lives(cluster: Lab) -> None:
    admin = ready(cluster).admin
    admin.apply(capacity.NodePool("a100", [capacity.P4D], capacity_types=["reserved", "on-demand"]).manifest())
    admin.create(fleet.Pod("train", gpus=8).manifest())
    pod = admin.wait_for("pods", "train", fleet.is_running, "default")
    labels = admin.wait_for("nodes", pod["spec"]["nodeName"], fleet.is_ready)["metadata"]["labels"]
    assert labels["karpenter.sh/capacity-type"] == "on-demand"
    assert cluster.running("karpenter")
