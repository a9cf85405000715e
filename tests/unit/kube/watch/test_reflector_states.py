"""What follows from each outcome, in each phase."""

import pytest

from reconciler.kube.api_server import ApiResponse
from reconciler.kube.watch.changes import ListEnding, is_newer, is_older, setback_of
from reconciler.kube.watch.reflector import NEXT, Next, ReflectorPhase, Tell, Wait, next_step
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind

PODS, LEASES = (next(each for each in RESOURCE_KINDS if each.kind == kind) for kind in ("Pod", "Lease"))

STEPS = [
    (
        "a kind that is served is listed",
        ReflectorPhase.LOOK,
        ListEnding.SERVED,
        ReflectorPhase.LIST,
        Wait.NONE,
        Tell.NOTHING,
    ),
    (
        "one that is not is looked for later",
        ReflectorPhase.LOOK,
        ListEnding.NOT_SERVED,
        ReflectorPhase.LOOK,
        Wait.INTERVAL,
        Tell.ABSENT,
    ),
    (
        "one we can't read likewise",
        ReflectorPhase.LOOK,
        ListEnding.UNSUITED,
        ReflectorPhase.LOOK,
        Wait.INTERVAL,
        Tell.REFUSAL,
    ),
    ("a list is watched from", ReflectorPhase.LIST, ListEnding.LISTED, ReflectorPhase.WATCH, Wait.NONE, Tell.NOTHING),
    (
        "a watch that ends is taken up again",
        ReflectorPhase.WATCH,
        ListEnding.ENDED,
        ReflectorPhase.WATCH,
        Wait.BACKOFF,
        Tell.NOTHING,
    ),
    (
        "so is one that said garbage",
        ReflectorPhase.WATCH,
        ListEnding.BROKEN,
        ReflectorPhase.WATCH,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "and one that broke off",
        ReflectorPhase.WATCH,
        ListEnding.FAILED,
        ReflectorPhase.WATCH,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "one that expired is listed again",
        ReflectorPhase.WATCH,
        ListEnding.EXPIRED,
        ReflectorPhase.LIST,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "one whose kind is gone is looked for",
        ReflectorPhase.WATCH,
        ListEnding.MISSING,
        ReflectorPhase.LOOK,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "what may not be watched is tried again",
        ReflectorPhase.WATCH,
        ListEnding.FORBIDDEN,
        ReflectorPhase.WATCH,
        Wait.BACKOFF,
        Tell.REFUSAL,
    ),
    (
        "what may not be listed is tried again",
        ReflectorPhase.LIST,
        ListEnding.FORBIDDEN,
        ReflectorPhase.LIST,
        Wait.BACKOFF,
        Tell.REFUSAL,
    ),
    (
        "a list that is too old is tried again",
        ReflectorPhase.LIST,
        ListEnding.OLDER,
        ReflectorPhase.LIST,
        Wait.BACKOFF,
        Tell.REFUSAL,
    ),
    (
        "a list that fails is tried again",
        ReflectorPhase.LIST,
        ListEnding.FAILED,
        ReflectorPhase.LIST,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "a list that expires is tried again",
        ReflectorPhase.LIST,
        ListEnding.EXPIRED,
        ReflectorPhase.LIST,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "a list of a kind that is gone is not",
        ReflectorPhase.LIST,
        ListEnding.MISSING,
        ReflectorPhase.LOOK,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "a look that fails is tried again",
        ReflectorPhase.LOOK,
        ListEnding.FAILED,
        ReflectorPhase.LOOK,
        Wait.BACKOFF,
        Tell.TROUBLE,
    ),
    (
        "a look that is forbidden likewise",
        ReflectorPhase.LOOK,
        ListEnding.FORBIDDEN,
        ReflectorPhase.LOOK,
        Wait.BACKOFF,
        Tell.REFUSAL,
    ),
]


@pytest.mark.parametrize(
    ("phase", "what", "then", "wait", "tell"), [step[1:] for step in STEPS], ids=[s[0] for s in STEPS]
)
def test_a_step_follows_from_the_last(
    phase: ReflectorPhase, what: ListEnding, then: ReflectorPhase, wait: Wait, tell: Tell
) -> None:
    assert next_step(phase, what, is_overdue=False) == Next(then, wait, tell)


def test_every_outcome_has_a_step() -> None:
    assert set(NEXT) == set(ListEnding) == {what for _, _, what, *_ in STEPS}


@pytest.mark.parametrize("what", [ListEnding.ENDED, ListEnding.BROKEN, ListEnding.FAILED, ListEnding.FORBIDDEN])
def test_a_watch_that_confirmed_nothing_for_long_is_a_list_next(what: ListEnding) -> None:
    assert next_step(ReflectorPhase.WATCH, what, is_overdue=True).phase is ReflectorPhase.LIST


def test_a_list_that_took_long_is_watched_all_the_same() -> None:
    assert next_step(ReflectorPhase.LIST, ListEnding.LISTED, is_overdue=True).phase is ReflectorPhase.WATCH


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (400, ListEnding.FAILED),
        (403, ListEnding.FORBIDDEN),
        (404, ListEnding.MISSING),
        (410, ListEnding.EXPIRED),
        (429, ListEnding.FAILED),
        (504, ListEnding.FAILED),
    ],
)
def test_a_status_means_one_thing(status: int, what: ListEnding) -> None:
    assert setback_of(ApiResponse(status), PODS, "list").outcome.ending is what


BOTH = "the role needs list and watch, and `reconciler rbac` prints one with both"


@pytest.mark.parametrize(
    ("seen", "status", "body", "why"),
    [
        (PODS, 403, b"{}", f"may not watch them: {BOTH}"),
        (LEASES, 403, b"", f"may not watch them in the namespace of reconciler: {BOTH}"),
        (PODS, 500, b'{"message": "no leader"}', "the watch of pods failed: 500: no leader"),
        (PODS, 502, b"<html>", "the watch of pods failed: 502"),
    ],
)
def test_a_refusal_says_what_is_missing(seen: ResourceKind, status: int, body: bytes, why: str) -> None:
    assert str(setback_of(ApiResponse(status, body), seen, "watch")) == why


def test_what_the_api_server_asks_to_wait_is_kept() -> None:
    assert setback_of(ApiResponse(429, b"", 7.0), PODS, "list").outcome.retry_after_seconds == 7.0


@pytest.mark.parametrize(
    ("version", "than", "newer", "older"),
    [
        ("10", "9", True, False),
        ("9", "10", False, True),
        ("9", "9", False, False),
        ("9", "", True, False),
        ("", "9", True, False),
        ("a", "9", True, False),
    ],
)
def test_versions_compare_as_numbers_and_what_is_none_is_news(
    version: str, than: str, newer: bool, older: bool
) -> None:
    assert (is_newer(version, than), is_older(version, than)) == (newer, older)
