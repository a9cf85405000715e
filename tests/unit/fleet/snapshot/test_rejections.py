"""What rules out nodes for a pod, by predicate and kind of node, and how that is told."""

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.snapshot.rejections import ruled_out
from reconciler.fleet.snapshot.row_indexes import NodeKinds
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.plan.capacity.words import ruled_out_words
from tests.unit.fleet.stage import node, pod


def of_kind(name: str, instance_type: str = "", **labels: str) -> Node:
    typed = {names.INSTANCE_TYPE: instance_type} if instance_type else {}
    return node(name, {"has": {"cpu": 4, "pods": 10}, "labels": {**typed, **labels}})


def fleet() -> Snapshot:
    """Pools by Karpenter's label, or by ours; one node is of none."""
    karpenter, ours = names.KARPENTER_POOL, names.POOL
    return Snapshot(
        Observed(
            nodes=(
                of_kind("n0", "p4d", **{karpenter: "a100"}),
                of_kind("n1", "p4d", **{ours: "a100"}),
                of_kind("n2", "p4d", **{karpenter: "a100", ours: "other"}),
                of_kind("n3", "g6", **{karpenter: "l4"}),
                of_kind("n4"),
            )
        )
    )


def test_nodes_are_counted_by_pool_and_instance_type() -> None:
    what_if = fleet()
    kinds, alive = what_if.part(NodeKinds), what_if.rows.alive
    assert kinds.counted(alive) == {"a100 p4d": 3, "l4 g6": 1, "no pool": 1}
    with what_if.fork():
        what_if.bring(of_kind("n5", "g6", **{names.KARPENTER_POOL: "l4"}))
        assert kinds.counted(what_if.rows.alive)["l4 g6"] == 2
    assert kinds.counted(what_if.rows.alive) == {"a100 p4d": 3, "l4 g6": 1, "no pool": 1}


def test_what_nothing_rules_out_is_counted_apart() -> None:
    what_if = fleet()
    asked = pod("p", {"cpu": 1, "nodeSelector": {names.KARPENTER_POOL: "a100"}})
    found = what_if.part(FilterChain).counted(what_if.classes.of(asked).anew, None)
    assert found == ruled_out({"selection": {"a100 p4d": 1, "l4 g6": 1, "no pool": 1}}, {"a100 p4d": 2})
    assert found.totals == {"selection": 3}
    assert ruled_out_words(found) == (
        "selection: 1 node of a100 p4d, 1 node of l4 g6 and 1 node of no pool; "
        "not together with the other pods: 2 nodes of a100 p4d"
    )


def test_only_the_most_frequent_kinds_are_named() -> None:
    kinds = {"a x": 1, "b x": 12, "c x": 3, "d x": 3, "e x": 2, "f x": 1}
    assert ruled_out_words(ruled_out({"resources": kinds}, {})) == (
        "resources: 12 nodes of b x, 3 nodes of c x, 3 nodes of d x, 2 nodes of e x and 2 nodes of other kinds"
    )
