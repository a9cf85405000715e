"""Where pods of GpuClaims may be: in pools that have what their claim asks for, while somebody says which those are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.words import obstacle_words
from tests import builders

AMOUNTS = {"cpu": "8", "memory": "8Gi", "pods": "10"}
POOLS = ("", "a100", "l4")
LABELS = (names.KARPENTER_POOL, names.POOL)


def pod(claim: str) -> Pod:
    return builders.pod("train-0", namespace="team", labels={"app": "train"}, annotations=Annotations(claim=claim))


NODES = some.lists(some.dictionaries(some.sampled_from(LABELS), some.sampled_from(POOLS)), max_size=6)


@given(NODES, some.frozensets(some.sampled_from(POOLS[1:])), some.frozensets(some.integers(0, 5).map("n{}".format)))
def test_what_is_said_of_all_nodes_is_what_is_said_of_each(
    labels: list[dict[str, str]], pools: frozenset[str], lent: frozenset[str]
) -> None:
    fleet = Snapshot(
        Observed(
            nodes=tuple(builders.node(f"n{number}", has=AMOUNTS, labels=each) for number, each in enumerate(labels))
        )
    )
    asked, predicate = fleet.classes.of(pod("one")), fleet.part(GpuClaims)
    with predicate.judged({("team", "one"): pools}, lent):
        mask = predicate.mask(asked, fleet)
        assert mask is not None
        for name, row in fleet.rows.row_of.items():
            there = fleet.rows.node(row)
            assert mask[row] == predicate.fits(asked, row, fleet) == (there.pool in pools and name not in lent)
            assert mask[row] or "GpuClaim/team/one" in obstacle_words(predicate.why(asked, row, fleet))


def test_nothing_is_ruled_out_where_nobody_says_what_the_claim_asks_for() -> None:
    fleet = Snapshot(Observed(nodes=(builders.node("n", has=AMOUNTS, labels={names.KARPENTER_POOL: "l4"}),)))
    judging, predicate = fleet.part(FilterChain), fleet.part(GpuClaims)
    asked = fleet.classes.of(pod("one"))
    with predicate.judged({("team", "two"): frozenset()}, frozenset()):
        assert np.count_nonzero(judging.mask(asked)) == 1
    with predicate.judged({("team", "one"): frozenset()}, frozenset()):
        assert np.count_nonzero(judging.mask(asked)) == 0
    assert np.count_nonzero(judging.mask(asked)) == 1


def test_pods_that_differ_in_their_claim_alone_are_not_of_one_class() -> None:
    fleet = Snapshot(Observed())
    assert len({fleet.classes.of(pod(claim)) for claim in ("one", "two", "", "one")}) == 3
