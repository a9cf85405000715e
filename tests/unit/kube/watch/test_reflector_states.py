"""What follows from each outcome, in each phase."""

import pytest

from reconciler.kube.api_server import Answer
from reconciler.kube.watch.list_result import What, setback_of
from reconciler.kube.watch.reflector_states import NEXT, Next, Phase, Tell, Wait, next_step
from reconciler.kube.watch.resource_versions import is_newer, is_older
from reconciler.model.cluster.kinds import SEEN, ResourceKind

PODS, LEASES = (next(each for each in SEEN if each.kind == kind) for kind in ("Pod", "Lease"))

STEPS = [
    ("a kind that is served is listed", Phase.LOOK, What.SERVED, Phase.LIST, Wait.NONE, Tell.NOTHING),
    ("one that is not is looked for later", Phase.LOOK, What.NOT_SERVED, Phase.LOOK, Wait.INTERVAL, Tell.ABSENT),
    ("one we can't read likewise", Phase.LOOK, What.UNSUITED, Phase.LOOK, Wait.INTERVAL, Tell.REFUSAL),
    ("a list is watched from", Phase.LIST, What.LISTED, Phase.WATCH, Wait.NONE, Tell.NOTHING),
    ("a watch that ends is taken up again", Phase.WATCH, What.ENDED, Phase.WATCH, Wait.BACKOFF, Tell.NOTHING),
    ("so is one that said garbage", Phase.WATCH, What.BROKEN, Phase.WATCH, Wait.BACKOFF, Tell.TROUBLE),
    ("and one that broke off", Phase.WATCH, What.FAILED, Phase.WATCH, Wait.BACKOFF, Tell.TROUBLE),
    ("one that expired is listed again", Phase.WATCH, What.EXPIRED, Phase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    ("one whose kind is gone is looked for", Phase.WATCH, What.MISSING, Phase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    ("what may not be watched is tried again", Phase.WATCH, What.FORBIDDEN, Phase.WATCH, Wait.BACKOFF, Tell.REFUSAL),
    ("what may not be listed is tried again", Phase.LIST, What.FORBIDDEN, Phase.LIST, Wait.BACKOFF, Tell.REFUSAL),
    ("a list that is too old is tried again", Phase.LIST, What.OLDER, Phase.LIST, Wait.BACKOFF, Tell.REFUSAL),
    ("a list that fails is tried again", Phase.LIST, What.FAILED, Phase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    ("a list that expires is tried again", Phase.LIST, What.EXPIRED, Phase.LIST, Wait.BACKOFF, Tell.TROUBLE),
    ("a list of a kind that is gone is not", Phase.LIST, What.MISSING, Phase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    ("a look that fails is tried again", Phase.LOOK, What.FAILED, Phase.LOOK, Wait.BACKOFF, Tell.TROUBLE),
    ("a look that is forbidden likewise", Phase.LOOK, What.FORBIDDEN, Phase.LOOK, Wait.BACKOFF, Tell.REFUSAL),
]


@pytest.mark.parametrize(
    ("phase", "what", "then", "wait", "tell"), [step[1:] for step in STEPS], ids=[s[0] for s in STEPS]
)
def test_a_step_follows_from_the_last(phase: Phase, what: What, then: Phase, wait: Wait, tell: Tell) -> None:
    assert next_step(phase, what, is_overdue=False) == Next(then, wait, tell)


def test_every_outcome_has_a_step() -> None:
    assert set(NEXT) == set(What) == {what for _, _, what, *_ in STEPS}


@pytest.mark.parametrize("what", [What.ENDED, What.BROKEN, What.FAILED, What.FORBIDDEN])
def test_a_watch_that_confirmed_nothing_for_long_is_a_list_next(what: What) -> None:
    assert next_step(Phase.WATCH, what, is_overdue=True).phase is Phase.LIST


def test_a_list_that_took_long_is_watched_all_the_same() -> None:
    assert next_step(Phase.LIST, What.LISTED, is_overdue=True).phase is Phase.WATCH


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (400, What.FAILED),
        (403, What.FORBIDDEN),
        (404, What.MISSING),
        (410, What.EXPIRED),
        (429, What.FAILED),
        (504, What.FAILED),
    ],
)
def test_a_status_means_one_thing(status: int, what: What) -> None:
    assert setback_of(Answer(status), PODS, "list").outcome.what is what


BOTH = "the role needs list and watch, and `reconciler rbac` prints one with both"


@pytest.mark.parametrize(
    ("seen", "status", "body", "why"),
    [
        (PODS, 403, b"{}", f"may not watch them: {BOTH}"),
        (LEASES, 403, b"", f"may not watch them in our namespace: {BOTH}"),
        (PODS, 500, b'{"message": "no leader"}', "to watch pods was answered with 500: no leader"),
        (PODS, 502, b"<html>", "to watch pods was answered with 502"),
    ],
)
def test_a_refusal_says_what_is_missing(seen: ResourceKind, status: int, body: bytes, why: str) -> None:
    assert str(setback_of(Answer(status, body), seen, "watch")) == why


def test_what_the_api_server_asks_to_wait_is_kept() -> None:
    assert setback_of(Answer(429, b"", 7.0), PODS, "list").outcome.retry_after_seconds == 7.0


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
