"""Waiting after failures: longer each time, bounded, spread, and started afresh only by what lasted."""

import random

import pytest

from reconciler.kube.api_server import Backoff, BackoffBounds

WAITS = BackoffBounds(first_seconds=1.0, most_seconds=10.0, healthy_seconds=5.0)


class Fixed(random.Random):
    """Always the same draw."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self._drawn = drawn

    def random(self) -> float:
        return self._drawn


@pytest.mark.parametrize(
    ("drawn", "waited"), [(0.0, [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]), (1.0, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0])]
)
def test_each_failure_in_a_row_doubles_the_bound_up_to_the_most(drawn: float, waited: list[float]) -> None:
    backoff = Backoff(WAITS, Fixed(drawn))
    assert [backoff.seconds_after(0) for _ in waited] == waited


def test_what_lasted_a_while_starts_the_count_afresh() -> None:
    backoff = Backoff(WAITS, Fixed(1.0))
    assert [backoff.seconds_after(lasted) for lasted in (0, 0, 0, 5.0, 0)] == [1.0, 2.0, 4.0, 1.0, 2.0]


def test_what_opens_and_ends_at_once_starts_nothing_afresh() -> None:
    backoff = Backoff(WAITS, Fixed(1.0))
    assert [backoff.seconds_after(4.9) for _ in range(3)] == [1.0, 2.0, 4.0]


def test_no_number_of_failures_is_too_many() -> None:
    backoff = Backoff(WAITS, Fixed(1.0))
    assert [backoff.seconds_after(0) for _ in range(5_000)][-1] == 10.0


def test_those_that_fail_together_do_not_come_again_together() -> None:
    chance = random.Random(1)
    waited = {Backoff(WAITS, chance).seconds_after(0) for _ in range(100)}
    assert len(waited) == 100
    assert all(0.5 <= each <= 1.0 for each in waited)
