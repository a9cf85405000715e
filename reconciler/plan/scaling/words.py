"""Text for sizes of pools and for marked nodes. Reasons hold these facts as data."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.instant import timestamp
from reconciler.plan.reasons import counted
from reconciler.plan.scaling.marks import MarkTime
from reconciler.plan.scaling.reasons import ForPods, HeldWhile, KeptWhile, NextWindow, SizedBy
from reconciler.plan.scaling.size import Claimants, Growth, SizeReason

KEPT_WHILE: Mapping[KeptWhile, str] = {
    KeptWhile.UNREAD: "the utilization of its pool is unknown",
    KeptWhile.LENT_UNREAD: "the lent GPUs of its pool are unknown",
    KeptWhile.UNREADY: "too many nodes of its pool are not ready",
    KeptWhile.DEMAND: "pods without a node need its pool",
    KeptWhile.SUSPENDED: "its pool is suspended",
    KeptWhile.FROZEN: "a freeze is active",
    KeptWhile.OTHERS: "marks of other nodes are removed",
}


def size_words(why: SizeReason) -> str:
    """Text for a size: 66.7 % of the GPUs are in use; for the minimum of 80 %, the pool may have at most 100 nodes."""
    if why.in_use_tenths is None:
        words = "the pool has no GPUs"
    else:
        in_use = f"{why.in_use_tenths // 10}.{why.in_use_tenths % 10} % of the GPUs are in use"
        if why.full_enough is None:
            words = f"{in_use}, and the minimum is {why.percent} %"
        else:
            kept = f", but {_kept(why.kept)} busy or kept empty" if why.kept is not None else ""
            most = f"the pool may have at most {counted(why.full_enough, 'node')}"
            words = f"{in_use}; for the minimum of {why.percent} %, {most}{kept}"
    if why.bound is None:
        return words
    return (
        f"{words}; {why.bound} {'allows' if why.bound == 'maxSize' else 'requires'} {counted(why.bound_nodes, 'node')}"
    )


def _kept(nodes: int) -> str:
    return f"{counted(nodes, 'node')} {'is' if nodes == 1 else 'are'}"


def growth_words(growth: Growth) -> str:
    """Text for growth: 2 in flight, 1 to be bought."""
    parts = (
        (growth.kept, "marked and kept for the pods"),
        (growth.arriving, "in flight"),
        (growth.asked, "requested by smart pods"),
        (growth.bought, "to be bought"),
        (growth.warm, "to be bought as warm nodes"),
    )
    return ", ".join(f"{count} {words}" for count, words in parts if count) or "no node is bought"


def claimant_words(claimants: Claimants) -> str:
    """2 pods."""
    if claimants.are_evicted:
        return "recently evicted pods"
    return counted(claimants.pods, "pod") if claimants.pods else "pods"


def mark_time_words(time: MarkTime) -> str:
    """The time; if unreadable, the value of the taint."""
    return time.written if time.at is None else timestamp(time.at)


def window_words(window: NextWindow) -> str:
    """Time when the window opens; else what must happen first."""
    return timestamp(window.opens) if window.opens is not None else "a window is added"


def for_words(of: ForPods) -> str:
    """for 3 pods."""
    return f"for {counted(of.pods, 'pod')}"


def sized_by_words(by: SizedBy) -> str:
    """minSize is 4."""
    return f"{by.field} is {by.nodes}"


def held_words(held: HeldWhile) -> str:
    """its pool is suspended and a freeze is active."""
    return " and ".join(KEPT_WHILE[each] for each in held.causes)


WORDS: Mapping[type, Callable[[Any], str]] = {
    SizeReason: size_words,
    Growth: growth_words,
    Claimants: claimant_words,
    MarkTime: mark_time_words,
    NextWindow: window_words,
    ForPods: for_words,
    SizedBy: sized_by_words,
    HeldWhile: held_words,
}
