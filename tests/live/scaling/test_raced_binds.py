"""A pod that is bound while its node is found empty and deleted is not lost; and why not, by what happens otherwise."""

from collections import Counter
from collections.abc import Iterator

import pytest

from reconciler.kube.api_server import ApiRequest
from reconciler.plan.scaling.marks import HARD, SOFT
from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.scaling.races import LOST, Fate, Races

BY_SCHEDULER, BY_NOBODY = ("scheduler", "kwok"), ()
SCHEDULED, BOUND, ALL_SCHEDULED = 60, 60, 200


@pytest.fixture
def races(cluster: Lab, request: pytest.FixtureRequest) -> Iterator[Races]:
    count, effect, parts = request.param
    for part in BY_SCHEDULER:
        if part not in parts:
            cluster.stop_part(part)
    cluster.start(*parts)
    made = Races(cluster, count, effect)
    yield made
    made.close()


def racing(count: int, effect: str, parts: tuple[str, ...], count_if_long: int = 0) -> pytest.MarkDecorator:
    more = [long((count_if_long, effect, parts))] if count_if_long else []
    return pytest.mark.parametrize("races", [(count, effect, parts), *more], indirect=True, ids=lambda asked: asked[0])


@racing(SCHEDULED, SOFT, BY_SCHEDULER, ALL_SCHEDULED)
def test_no_pod_is_lost_that_the_scheduler_places_as_its_node_goes(races: Races) -> None:
    found = Counter(races.schedule_at_random().values())
    assert set(found) == {Fate.KEPT, Fate.WAITING}
    assert min(found.values()) > found.total() // 10


@racing(BOUND, HARD, BY_NOBODY)
def test_no_pod_is_overlooked_whoever_bound_it_before_its_node_was_found_empty(races: Races) -> None:
    found = Counter(races.bind_at_random().values())
    assert not found[Fate.OVERLOOKED]
    assert found[Fate.KEPT]
    assert found.total() == BOUND


@racing(1, HARD, BY_NOBODY)
def test_a_pod_on_a_node_that_is_deleted_without_a_look_is_lost(races: Races) -> None:
    (name,) = races.names
    races.comes(name)
    assert races.bind(name) < 300
    assert [each.result for each in races.delete([name])] == ["stale"]
    assert races.fates() == {name: Fate.KEPT}
    assert [each.result for each in races.delete([name], looks=False)] == ["done"]
    assert races.fates()[name] in LOST


@pytest.mark.parametrize(
    ("races", "fates"),
    [((1, HARD, BY_SCHEDULER), {Fate.WAITING}), ((1, SOFT, BY_SCHEDULER), LOST)],
    indirect=["races"],
    ids=["hard", "soft"],
)
def test_between_the_look_and_the_deletion_only_a_hard_taint_keeps_pods_away(races: Races, fates: set[Fate]) -> None:
    """However long it is in between: here as long as the scheduler takes."""
    (name,) = races.names

    def come(node: str, request: ApiRequest) -> None:
        races.comes(node)
        races.is_judged(node)

    races.witness.before = come
    assert [each.result for each in races.delete([name])] == ["done"]
    assert races.fates()[name] in fates
