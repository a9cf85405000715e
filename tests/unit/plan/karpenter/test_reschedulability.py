"""Pods whose nodes go are homeless if and only if no node that stays and no new one would take them."""

from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.cluster.workload import Workload
from reconciler.plan.capacity.words import obstacles_words
from reconciler.plan.karpenter.reschedulability import Goes, homeless_of
from tests import builders

TRAINING = {"key": "dedicated", "value": "training", "effect": "NoSchedule"}
UNTOLERATED = "the pod does not tolerate the taint dedicated=training:NoSchedule"


def spec(*, labels: dict[str, str] | None = None, **template: Any) -> dict[str, Any]:
    return {"template": {"metadata": {"labels": labels or {}}, "spec": template}}


def node(name: str, node_pool: str, gpus: int = 8, **labels: Any) -> Node:
    marked = {"karpenter.sh/nodepool": node_pool, "kubernetes.io/hostname": name, **labels}
    return builders.node(name, gpus=gpus, has={"pods": "110"}, labels=marked)


def pod(name: str, on: str, gpus: int = 1, **more: Any) -> Pod:
    owner = {"kind": more.pop("made_by", "ReplicaSet"), "name": name.partition("-")[0], "controller": True}
    requests = {"nvidia.com/gpu": str(gpus)}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "team", "uid": name, "ownerReferences": [owner]},
            "spec": {"nodeName": on, "containers": [{"resources": {"requests": requests}}], **more},
            "status": {"phase": "Running"},
        },
        Pod,
    )


class Given:
    """A fleet: nodes a-0, a-1, ... of NodePool a go, whose pods are asked about."""

    def __init__(self, *seen: Node | Pod, **node_pools: dict[str, Any]) -> None:
        self.nodes = tuple(each for each in seen if isinstance(each, Node))
        self.pods = tuple(each for each in seen if isinstance(each, Pod))
        self.node_pools = tuple(
            Unstructured("karpenter.sh/v1", "NodePool", UnstructuredMetadata(name=name), {"spec": each})
            for name, each in node_pools.items()
        )

    def homeless(self, after: dict[str, Any] | None, steps: int = 1_000) -> dict[str, list[tuple[str, str, int]]]:
        made_by = ((each.metadata.namespace, each.metadata.controller) for each in self.pods)
        sets = [Metadata(of.name, at) for at, of in made_by if of is not None and of.kind == "DaemonSet"]
        workloads = tuple(Workload(each, "DaemonSet") for each in sets)
        observed = Observed(nodes=self.nodes, pods=self.pods, node_pools=self.node_pools, workloads=workloads)
        fleet = Fleet(observed)
        going = [each.name for each in self.nodes if each.pool == "a"]
        moving = {name: [each for each in fleet.pods_on(name) if each.counts] for name in going}
        before = fleet.snapshot.fingerprint()
        found = homeless_of(fleet, Goes("a", after), moving, steps)
        assert fleet.snapshot.fingerprint() == before
        return {
            name: [(each.owner, obstacles_words(each.why), each.pods) for each in told] for name, told in found.items()
        }


def test_a_taint_that_pods_do_not_tolerate_leaves_them_without_a_place() -> None:
    tolerated: dict[str, Any] = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    given = Given(
        node("a-0", "a"), node("a-1", "a"), pod("x-0", "a-0"), pod("x-1", "a-0"), pod("y-0", "a-1", **tolerated)
    )
    assert given.homeless(spec(taints=[TRAINING])) == {"a-0": [("team/x", UNTOLERATED, 2)]}
    assert given.homeless(spec(taints=[])) == {}
    assert given.homeless(spec(startupTaints=[TRAINING])) == {}


def test_a_new_node_of_another_node_pool_will_do_unless_that_is_not_for_them() -> None:
    going = (node("a-0", "a"), pod("x-0", "a-0"))
    tainted = spec(taints=[TRAINING])
    assert Given(*going, node("b-0", "b"), pod("z-0", "b-0", 8), b=spec()).homeless(tainted) == {}
    assert Given(*going, node("b-0", "b"), pod("z-0", "b-0", 8), b=tainted).homeless(tainted) != {}
    assert Given(*going, node("b-0", "b", gpus=0), b=spec()).homeless(tainted) != {}


def test_a_node_pool_without_nodes_may_have_machines_of_any_size() -> None:
    given = Given(node("a-0", "a"), pod("x-0", "a-0", 8), b=spec())
    assert given.homeless(None) == {}
    assert Given(node("a-0", "a"), pod("x-0", "a-0", 8), b=spec(taints=[TRAINING])).homeless(None) != {}


def test_nodes_that_stay_take_as_many_as_they_have_room_for() -> None:
    given = Given(
        node("a-0", "a"), *(pod(f"x-{n}", "a-0", 2) for n in range(4)), node("hand-0", "hand"), pod("z-0", "hand-0", 3)
    )
    found = given.homeless(None)
    assert [(owner, pods) for owner, _, pods in found["a-0"]] == [("team/x", 2)]
    assert "(resources: 1 node of hand" in found["a-0"][0][1]


def test_a_label_that_is_taken_away_or_a_zone_that_is_left_is_missed() -> None:
    labels: dict[str, Any] = {"team": "red", "topology.kubernetes.io/zone": "z1"}
    wanted: dict[str, Any] = {"nodeSelector": labels}
    given = Given(node("a-0", "a", **labels), pod("x-0", "a-0", **wanted))
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In"}
    assert given.homeless(spec(labels={"team": "red"})) == {}
    assert given.homeless(spec(labels={"team": "blue"})) != {}
    assert given.homeless(spec(requirements=[{**zones, "values": ["z2"]}])) != {}
    assert given.homeless(spec(requirements=[{**zones, "values": ["z1", "z2"]}])) == {}


def test_what_daemon_sets_take_of_a_new_node_is_not_free_and_what_they_no_longer_take_is() -> None:
    daemon = pod("driver-0", "a-0", 1, made_by="DaemonSet")
    tolerating = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    given = Given(node("a-0", "a"), node("a-1", "a"), daemon, pod("x-0", "a-1", 8, **tolerating))
    assert given.homeless(spec())["a-1"][0][0] == "team/x"
    assert given.homeless(spec(taints=[TRAINING])) == {}


def test_a_pod_whose_place_cannot_be_judged_is_not_said_to_be_homeless() -> None:
    unjudged = {"hostNetwork": True, "hostUsers": False}
    assert Given(node("a-0", "a"), pod("x-0", "a-0", **unjudged)).homeless(spec(taints=[TRAINING])) == {}


def test_nothing_is_said_of_pods_for_which_no_steps_are_left() -> None:
    given = Given(node("a-0", "a"), pod("x-0", "a-0", 8), node("hand-0", "hand", gpus=4))
    assert given.homeless(None, steps=0) == {}
    assert given.homeless(None) != {}
