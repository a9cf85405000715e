"""What could not be bought for a pool lately, and until when it is not tried again, in words."""

from collections.abc import Iterable

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.shortage import Shortage
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.words import choice_words


def short_of(shortages: Iterable[Shortage], pool: str, now: Instant) -> tuple[Shortage, ...]:
    """Those of a pool that still count, in the order in which they came."""
    return tuple(sorted((each for each in shortages if each.pool == pool and each.until > now), key=_order))


def short_words(shortages: Iterable[Shortage]) -> str:
    """p4d.24xlarge (spot) until 2026-11-16T12:40:31Z; p4de.24xlarge (spot) until 2026-11-16T12:41:06Z."""
    return "; ".join(
        f"{choice_words(LaunchOption.of(each))} until {timestamp(_second(each.until))}" for each in shortages
    )


def _order(shortage: Shortage) -> tuple[Instant, Shortage]:
    return shortage.since, shortage


def _second(moment: Instant) -> Instant:
    return Instant(moment - moment % 1_000)
