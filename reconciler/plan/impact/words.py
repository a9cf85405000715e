"""Nodes that come, in words: which, what for, and when."""

from collections.abc import Iterator

from reconciler.model.human_time import clock
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Consequence, MachineOrder
from reconciler.plan.capacity.words import limit_words
from reconciler.plan.reasons import counted


def bought_words(consequence: Consequence) -> str:
    """bought for minSize, p4d.24xlarge (reserved); of nodes that are bought, scheduled or held back."""
    order = consequence.order
    if order is None:
        return "bought"
    match consequence.fate:
        case "limited":
            return f"wanted{_for(consequence, order)}, held back by a limit"
        case "scheduled":
            return f"bought by a schedule{_for(consequence, order)}, {order.words}"
        case _:
            is_coming = order.stage == "machine"
            return (
                f"bought, on the way, {order.words}"
                if is_coming
                else f"bought{_for(consequence, order)}, {order.words}"
            )


def _for(consequence: Consequence, order: MachineOrder) -> str:
    match order.why:
        case "demand":
            return f" for {counted(consequence.serves, 'pod')}" if consequence.serves else " for pods"
        case "minSize" | "warmNodes":
            return f" for {order.why}"
        case None:
            return ""


def bought_when(consequence: Consequence, now: Instant) -> Iterator[str]:
    """How far it is; and that part of it is paid for already."""
    order = consequence.order
    if order is None:
        return
    yield _when(consequence, order, now)
    if covered := _on_commitment(consequence):
        some = "" if covered == len(consequence.nodes) else f"{covered} of them "
        yield f"{some}on the commitment, paid for anyway"


def _when(consequence: Consequence, order: MachineOrder, now: Instant) -> str:
    first = consequence.first_at
    match order.stage:
        case "machine":
            return "Karpenter has bought them" if len(consequence.nodes) > 1 else "Karpenter has bought it"
        case "asked":
            return "asked for already"
        case "karpenter":
            return "left to Karpenter, which sees the pods"
        case "attempt":
            return f"at the next attempt{f', {clock(first, now)}' if first is not None else ''}"
        case "node_pool":
            return f"once NodePool/{consequence.node_pool} is there"
        case "refill":
            return "once nodes that Karpenter removes are gone"
        case "schedule":
            return f"from {clock(first, now)}, while the schedule holds; in no total" if first is not None else ""
        case "limit":
            least = "at least so many: " if order.why == "demand" else ""
            limit = limit_words(order.limit) if order.limit is not None else "a limit"
            return f"{least}{limit} allows no more"
        case "request" | None:
            return "at once"


def _on_commitment(consequence: Consequence) -> int:
    if consequence.fate != "bought":
        return 0
    return sum(not (each.is_paid_for or each.unpriced or each.micro_dollars_per_hour) for each in consequence.shares)
