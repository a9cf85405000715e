"""What holds of every packing, whatever is packed onto whatever."""

from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.binpack.offers import BinpackLimits, Offering, Shape
from reconciler.fleet.binpack.pack import pack
from reconciler.fleet.binpack.result import NewNode, Packed
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Container, Pod, PodSpec, ResourceRequirements
from tests.unit.fleet.binpack.checker import faults, new_place, refusals, world_of
from tests.unit.fleet.binpack.worlds import fleets, pods, shapes

few = settings(max_examples=60)


@given(fleets(), pods(), shapes())
def test_every_pod_is_placed_once_where_every_filter_lets_it_or_has_a_reason(
    observed: Observed, waiting: list[Pod], offered: list[Shape]
) -> None:
    packed = pack(Snapshot(observed), waiting, offered)
    assert faults(observed, offered, waiting, packed) == []
    assert not packed.not_evaluated


@few
@given(fleets(), pods(), shapes(), some.randoms(use_true_random=False))
def test_the_order_of_pods_shapes_offerings_and_nodes_does_not_matter(
    observed: Observed, waiting: list[Pod], offered: list[Shape], chance: Random
) -> None:
    turned = msgspec.structs.replace(observed, nodes=observed.nodes[::-1], pods=observed.pods[::-1])
    others = [msgspec.structs.replace(each, offerings=each.offerings[::-1]) for each in offered]
    shuffled = list(waiting)
    chance.shuffle(shuffled)
    chance.shuffle(others)
    assert told(pack(Snapshot(turned), shuffled, others)) == told(pack(Snapshot(observed), waiting, offered))


@given(
    some.integers(1, 40),
    some.lists(
        some.tuples(some.integers(1, 12), some.integers(1, 40), some.sampled_from([None, None, 1, 3])),
        min_size=1,
        max_size=4,
    ),
)
def test_equal_pods_cost_the_fewest_dollars_that_they_can_and_then_the_fewest_nodes(
    count: int, offered: list[tuple[int, int, int | None]]
) -> None:
    described = [
        Shape(f"s{number}", {}, (), {"cpu": str(cpus), "pods": "110"}, (Offering("", "", price),), most)
        for number, (cpus, price, most) in enumerate(offered)
    ]
    spec = PodSpec(containers=(Container(resources=ResourceRequirements({"cpu": "1"})),))
    packed = pack(Snapshot(Observed()), [Pod(Metadata(f"p{each}", "d"), spec) for each in range(count)], described)
    best = fewest_dollars_then_nodes(count, offered)
    if best is None:
        assert packed.unplaced
    else:
        assert (packed.micro_dollars_per_hour, len(packed.nodes)) == best


@given(fleets(), pods().map(lambda waiting: waiting[0]), shapes())
def test_a_pod_alone_without_a_place_is_let_onto_no_node_that_is_on_offer(
    observed: Observed, pod: Pod, offered: list[Shape]
) -> None:
    packed = pack(Snapshot(observed), [pod], offered)
    if packed.unplaced:
        lets = [
            f"{shape.name} in {offering.zone}, {offering.capacity_type}"
            for shape in offered
            for offering in shape.offerings
            if offering.available and shape.most_nodes != 0
            if not refused(observed, pod, shape, offering)
        ]
        assert lets == []


@few
@given(fleets(), pods(), shapes())
def test_packing_leaves_the_fleet_as_it_was(observed: Observed, waiting: list[Pod], offered: list[Shape]) -> None:
    fleet = Snapshot(observed)
    pack(fleet, waiting, offered)
    before = fleet.fingerprint()
    pack(fleet, waiting, offered)
    assert fleet.fingerprint() == before
    assert set(fleet.rows.row_of) == {node.name for node in observed.nodes}


@few
@given(fleets(), pods(), shapes(), some.integers(0, 60))
def test_pods_that_the_steps_did_not_last_for_are_not_said_to_fit_nowhere(
    observed: Observed, waiting: list[Pod], offered: list[Shape], steps: int
) -> None:
    packed = pack(Snapshot(observed), waiting, offered, BinpackLimits(steps=steps))
    assert faults(observed, offered, waiting, packed) == []
    whole = pack(Snapshot(observed), waiting, offered)
    assert {each.pod.name for each in packed.unplaced} <= {each.pod.name for each in whole.unplaced}
    if whole.steps < steps:
        assert told(packed) == told(whole)


def fewest_dollars_then_nodes(count: int, offered: list[tuple[int, int, int | None]]) -> tuple[int, int] | None:
    """The least of all ways to hold so many, by the best ways to hold fewer."""
    best: dict[int, tuple[int, int]] = {0: (0, 0)}  # of how many
    for holds, price, most in offered:
        before = dict(best)
        for nodes in range(1, (count if most is None else most) + 1):
            for held, (dollars, others) in before.items():
                reached = min(held + nodes * holds, count)
                found = dollars + nodes * price, others + nodes
                best[reached] = min(found, best.get(reached, found))
    return best.get(count)


def refused(observed: Observed, pod: Pod, shape: Shape, offering: Offering) -> list[str]:
    """Why the scheduler would not let the pod onto a node that was bought for it alone."""
    node = NewNode(shape.name, offering.zone, offering.capacity_type, 0, ())
    place = new_place("bought-0", node, [shape])
    return list(refusals(world_of(observed, [place]), pod, place))


def told(packed: Packed) -> object:
    nodes = [(each.shape, each.zone, each.capacity_type, [pod.name for pod in each.pods]) for each in packed.nodes]
    return nodes, [(each.pod.name, each.why, each.refusals) for each in packed.unplaced], packed.order, packed.steps
