"""Where pods may go for the sake of volumes, devices and nominations: the tables of cases."""

import pytest

from reconciler.fleet.filters import PREDICATES
from reconciler.fleet.filters.claims import ResourceClaimFilter
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.volumes import OnePodOnly, VolumeLimits, VolumePlaces
from reconciler.fleet.questions import unmodelled, why_it_stays
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.plan.decision import Obstacle
from reconciler.plan.capacity.words import obstacle_words
from tests.unit.fleet.storage.stage import Case, observed_of, pod_of, table, where

VOLUMES, CLAIMS, NOMINATED = table("volumes.yaml"), table("claims.yaml"), table("nominated.yaml")
OF_VOLUMES: tuple[type[Predicate], ...] = (VolumePlaces, OnePodOnly, VolumeLimits)


def words(obstacle: Obstacle | None) -> str:
    return obstacle_words(obstacle) if obstacle is not None else ""


def judge(case: Case, predicates: tuple[type[Predicate], ...]) -> Snapshot:
    fleet = Snapshot(observed_of(case))
    pod = pod_of(case)
    with fleet.part(Nominated).asking(pod):
        why = where(fleet, pod, predicates)
    assert [name for name, sentence in why.items() if not sentence] == case["fits"], why
    assert {name: why[name] for name in case.get("why", {})} == case.get("why", {})
    pod_class = fleet.classes.of(pod)
    assert words(unmodelled(pod_class, fleet)) == case.get("unmodelled", "")
    if "unmodelled" in case:
        assert set(why.values()) == {case["unmodelled"]}
    return fleet


@pytest.mark.parametrize("name", VOLUMES)
def test_volumes(name: str) -> None:
    judge(VOLUMES[name], OF_VOLUMES)


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(name: str) -> None:
    case = CLAIMS[name]
    fleet = judge(case, (ResourceClaimFilter,))
    assert words(why_it_stays(fleet.classes.of(pod_of(case)), fleet)) == case.get("stays", "")


@pytest.mark.parametrize("name", NOMINATED)
def test_nominated(name: str) -> None:
    judge(NOMINATED[name], PREDICATES)


@pytest.mark.parametrize("case", [*VOLUMES.values(), *CLAIMS.values(), *NOMINATED.values()])
def test_what_is_booked_and_taken_back_leaves_no_trace(case: Case) -> None:
    fleet = Snapshot(observed_of(case))
    pod = pod_of(case)
    with fleet.part(Nominated).asking(pod):
        first = where(fleet, pod, PREDICATES)
        before = fleet.fingerprint()
        with fleet.fork():
            for row in fleet.rows.row_of.values():
                for pod_class in list(fleet.booked_on(row)):
                    fleet.remove(pod_class, row)
                fleet.add(fleet.classes.of(pod), row)
            where(fleet, pod, PREDICATES)
        assert fleet.fingerprint() == before
        assert where(fleet, pod, PREDICATES) == first
