"""Each kind of typed answer has its words, and no words are left of kinds that are gone."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from reconciler.fleet.obstacles import OBSTACLES, OtherObstacle
from reconciler.model.plan.decision import Reason
from reconciler.plan.capacity.words import obstacle_words
from reconciler.plan.reason_catalog import decoded
from reconciler.plan.status.reasons import Message
from reconciler.report import conditions
from tests.unit.plan.some_reasons import reason_of, some_value


def leaves(of: type[Any]) -> Iterator[type[Any]]:
    below = of.__subclasses__()
    if not below:
        yield of
    for each in below:
        yield from leaves(each)


def test_each_message_has_its_words() -> None:
    assert set(leaves(Message)) == set(conditions.WORDS)


@pytest.mark.parametrize("kind", OBSTACLES.values(), ids=OBSTACLES)
def test_an_obstacle_is_read_back_as_it_was_written_and_has_words(kind: type[Any]) -> None:
    obstacle = some_value(kind)
    reason = reason_of("PodPlaceUnknown", why=obstacle)
    assert decoded(msgspec.json.encode(reason), Reason) == reason
    words = obstacle_words(obstacle)
    assert words
    assert not re.search(r"[{}<>]|\w+\(\w+=", words), "no fact is left without words"


def test_what_an_earlier_version_remembered_as_text_is_read() -> None:
    stored = msgspec.json.encode(reason_of("PodPlaceUnknown", why=OtherObstacle("TEXT")))
    earlier = re.sub(rb'"why":\{[^}]*\}', b'"why":"it has volumes"', stored)
    assert earlier != stored
    assert decoded(earlier, Reason) == reason_of("PodPlaceUnknown", why=OtherObstacle("it has volumes"))


@pytest.mark.parametrize("why", [1, {"type": "None"}, {}])
def test_no_obstacle_is_refused(why: Any) -> None:
    plain = msgspec.to_builtins(reason_of("PodPlaceUnknown"))
    plain["facts"]["why"] = why
    with pytest.raises(msgspec.ValidationError):
        decoded(msgspec.json.encode(plain), Reason)
