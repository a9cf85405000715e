"""Where pods may go for the sake of other pods: the tables of cases, each held against the slow reference too."""

from typing import Any

import pytest

from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.columns import Asker, Columns, Eligibles
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model.cluster.observed import Observed
from reconciler.plan.capacity.words import obstacle_words
from tests.unit.fleet.topology import reference
from tests.unit.fleet.topology.stage import Json, observed_of, pod, pod_of, table, what_if_of, world_of

INTERPOD = table("interpod.yaml")
SPREAD = table("spread.yaml")


def judged(case: dict[str, Any], predicate: type[InterPod] | type[SpreadFilter]) -> tuple[list[str], dict[str, str]]:
    """Where it fits, and why it does not fit elsewhere."""
    fleet = what_if_of(world_of(case))
    asked: Any = fleet.part(predicate)
    pod_class = fleet.classes.of(pod(pod_of(case["pod"])))
    rows = sorted(fleet.rows.row_of.items())
    fits = [name for name, row in rows if asked.fits(pod_class, row, fleet)]
    mask = asked.mask(pod_class, fleet)
    assert fits == [name for name, row in rows if mask is None or mask[row]]
    assert asked.concerns(pod_class, fleet) or len(fits) == len(rows)
    assert fleet.part(Counting).fingerprint(fleet) == []
    return fits, {name: obstacle_words(asked.why(pod_class, row, fleet)) for name, row in rows if name not in fits}


@pytest.mark.parametrize("name", INTERPOD)
def test_near_and_apart(name: str) -> None:
    case = INTERPOD[name]
    fits, why = judged(case, InterPod)
    assert fits == case["fits"]
    assert {node: why.get(node) for node in case.get("why", {})} == case.get("why", {})
    assert all(why.values())
    world = world_of(case)
    nodes = sorted(world["nodes"], key=lambda each: str(each["metadata"]["name"]))
    slow = [each["metadata"]["name"] for each in nodes if reference.interpod_fits(world, pod_of(case["pod"]), each)]
    assert slow == case["fits"]


@pytest.mark.parametrize("name", SPREAD)
def test_spread(name: str) -> None:
    case = SPREAD[name]
    fits, why = judged(case, SpreadFilter)
    assert fits == case["fits"]
    assert {node: why.get(node) for node in case.get("why", {})} == case.get("why", {})
    assert all(why.values())
    world = world_of(case)
    nodes = sorted(world["nodes"], key=lambda each: str(each["metadata"]["name"]))
    slow = [each["metadata"]["name"] for each in nodes if reference.spread_fits(world, pod_of(case["pod"]), each)]
    assert slow == case["fits"]


def test_rules_that_the_same_nodes_are_eligible_for_share_one_count_of_them() -> None:
    rows = what_if_of(world_of({"pod": {}})).rows
    zones, eligibles = Columns().of("zone", rows), Eligibles()
    first, second, third = (Asker("zone", ("zone",), honored) for honored in (b"first", b"second", b"third"))
    some = zones.with_key & (zones.ids != zones.of_row[rows.row_of["b1"]])
    one = eligibles.of(first, rows, lambda: (zones, zones.with_key))
    assert eligibles.of(second, rows, lambda: (zones, zones.with_key)) is one
    assert eligibles.of(third, rows, lambda: (zones, some)).domains == 1
    assert one.domains == 2
    eligibles.flip(rows.row_of["b1"], -1)
    assert (one.domains, eligibles.of(third, rows, lambda: (zones, some)).domains) == (1, 1)


BY_TEAM = {
    "topologyKey": "zone",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "namespaceSelector": {"matchLabels": {"team": "x"}},
}


def where(case: dict[str, Any], observed: Observed) -> list[str]:
    fleet = Snapshot(observed)
    pod_class = fleet.classes.of(pod(pod_of(case["pod"])))
    asked = fleet.part(InterPod)
    return [name for name, row in sorted(fleet.rows.row_of.items()) if asked.fits(pod_class, row, fleet)]


def test_while_namespaces_can_not_be_read_a_pod_that_asks_for_their_labels_fits_nowhere() -> None:
    case = {"pod": {"apart": [BY_TEAM]}}
    unread = [{"kind": "namespaces", "why": "forbidden"}]
    assert where(case, observed_of(world_of(case))) == ["a1", "a2", "b1"]
    assert where(case, observed_of(world_of(case), unread)) == []


def test_while_namespaces_can_not_be_read_pods_that_ask_for_their_labels_keep_away_whomever_they_might_mean() -> None:
    case = {"pods": [{"at": "a1", "apart": [BY_TEAM]}], "pod": {"labels": {"app": "web"}}}
    unread = [{"kind": "namespaces", "why": "forbidden"}]
    assert where(case, observed_of(world_of(case))) == ["a1", "a2", "b1"]
    assert where(case, observed_of(world_of(case), unread)) == ["b1"]


def test_while_namespaces_can_not_be_read_terms_that_do_not_ask_for_their_labels_are_judged() -> None:
    term = {**BY_TEAM, "namespaceSelector": {}}
    case = {"pods": [{"at": "a1", "labels": {"app": "web"}}], "pod": {"apart": [term]}}
    unread = [{"kind": "namespaces", "why": "forbidden"}]
    assert where(case, observed_of(world_of(case), unread)) == ["b1"]


def test_to_the_terms_of_pods_that_are_there_a_namespace_that_is_not_seen_has_no_labels() -> None:
    term = {**BY_TEAM, "namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}
    case: Json = {"pods": [{"at": "a1", "apart": [term]}], "pod": {"namespace": "unseen", "labels": {"app": "web"}}}
    assert where(case, observed_of(world_of(case))) == ["b1"]


def test_a_namespace_that_is_not_seen_is_none_of_those_that_a_pod_selects() -> None:
    case: Json = {"pods": [{"at": "a1", "namespace": "unseen", "labels": {"app": "web"}}], "pod": {"apart": [BY_TEAM]}}
    assert where(case, observed_of(world_of(case))) == ["a1", "a2", "b1"]


def test_labels_of_namespaces_that_change_change_whom_terms_mean() -> None:
    case: Json = {"pods": [{"at": "a1", "namespace": "other", "labels": {"app": "web"}}], "pod": {"apart": [BY_TEAM]}}
    fleet = Snapshot(observed_of(world_of({**case, "namespaces": {"other": {}}})))
    asked, pod_class = fleet.part(InterPod), fleet.classes.of(pod(pod_of(case["pod"])))
    assert asked.mask(pod_class, fleet) is None
    fleet.advance(observed_of(world_of({**case, "namespaces": {"other": {"team": "x"}}})))
    asked, pod_class = fleet.part(InterPod), fleet.classes.of(pod(pod_of(case["pod"])))
    mask = asked.mask(pod_class, fleet)
    assert mask is not None
    assert [name for name, row in sorted(fleet.rows.row_of.items()) if mask[row]] == ["b1"]
    assert fleet.part(Counting).fingerprint(fleet) == []
