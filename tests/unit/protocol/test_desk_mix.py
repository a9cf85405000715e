"""The desk's answers follow the observed changes and the mix of requests, whichever way they were reached."""

import random

import pytest

from reconciler.protocol.desk import Desk
from tests import builders
from tests.benchmarks.binding.answering import CLAIMS, Fleet

NODES = 60


def answers(desk: Desk, fleet: Fleet) -> dict[str, object]:
    """Ranks and obstacles by claim and node."""
    found = {claim: desk.answers(("default", claim), fleet.names) for claim in sorted(CLAIMS)}
    return {
        claim: {name: (each.rank, each.obstacle) for name, each in answers.items()} for claim, answers in found.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_renewed_answers_are_those_of_a_desk_that_was_never_asked(seed: int) -> None:
    asked, fresh = (Fleet(NODES, random.Random(seed)) for _ in range(2))
    answers(asked.desk, asked)
    for fleet in (asked, fresh):
        for _ in range(4 * NODES):
            fleet.change()
        fleet.desk.look_at_mix()
    while asked.desk.renew_answers(7):
        pass
    assert answers(asked.desk, asked) == answers(fresh.desk, fresh)


def test_what_can_be_served_does_not_wait_for_the_renewal() -> None:
    fleet = Fleet(NODES, random.Random(1))
    answers(fleet.desk, fleet)
    for _ in range(8 * NODES):
        fleet.change()
    fleet.desk.look_at_mix()
    before = {claim: obstacles(found) for claim, found in answers(fleet.desk, fleet).items()}
    while fleet.desk.renew_answers(7):
        pass
    assert {claim: obstacles(found) for claim, found in answers(fleet.desk, fleet).items()} == before


def test_a_mix_that_hardly_changes_outdates_no_answers() -> None:
    fleet = Fleet(NODES, random.Random(1))
    answers(fleet.desk, fleet)
    fleet.desk.drop_pod(builders.pod("waits-0", uid="waits-0"))
    fleet.desk.look_at_mix()
    assert not fleet.desk.renew_answers(0)


def test_a_mix_that_changes_much_outdates_answers() -> None:
    fleet = Fleet(NODES, random.Random(1))
    answers(fleet.desk, fleet)
    for number in range(1_000):
        if number % len(CLAIMS):
            fleet.desk.drop_pod(builders.pod(f"waits-{number}", uid=f"waits-{number}"))
    fleet.desk.look_at_mix()
    assert fleet.desk.renew_answers(0)


def obstacles(found: object) -> dict[str, object]:
    assert isinstance(found, dict)
    return {name: obstacle for name, (_, obstacle) in found.items()}
