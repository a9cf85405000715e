"""What is said of smart pods. Reasons hold these as data."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.plan.smart_pods.reasons import Unbought

_UNBOUGHT = {
    Unbought.NO_CLAIM: "no NodeClaim yet",
    Unbought.UNSCHEDULED: "the scheduler has not looked at it yet",
}

WORDS: Mapping[type, Callable[[Any], str]] = {Unbought: _UNBOUGHT.__getitem__}
