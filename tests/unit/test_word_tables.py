"""Each kind of typed answer has its words, and no words are left of kinds that are gone."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from reconciler.plan.explain.counterfactuals.change import Change
from reconciler.plan.status.messages import Message
from reconciler.report.conditions import messages
from reconciler.report.explain import changes


def leaves(of: type[Any]) -> Iterator[type[Any]]:
    below = of.__subclasses__()
    if not below:
        yield of
    for each in below:
        yield from leaves(each)


@pytest.mark.parametrize(
    ("base", "words"), [(Change, changes.WORDS), (Message, messages.WORDS)], ids=["changes", "messages"]
)
def test_each_kind_has_its_words(base: type[Any], words: Mapping[type[Any], Any]) -> None:
    assert set(leaves(base)) == set(words)
