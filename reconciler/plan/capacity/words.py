"""What is said of requests for capacity: of ways to buy, limits, refusals and claims. Reasons hold these as data."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.fleet.obstacles import OBSTACLES
from reconciler.model.cluster.observed import Unread
from reconciler.model.plan.capacity_limit import CapacityLimit
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.refusals import (
    Bar,
    ClaimState,
    ClaimTrouble,
    ClaimUnseen,
    ClaimUnusable,
    NodePoolAbsent,
    NoFit,
    NoRoom,
    NoStock,
    NotServed,
    PolicySuspended,
    PoolFrozen,
    PoolObserved,
    PoolRefusal,
    PoolRefusals,
    Unserved,
    Why,
)
from reconciler.plan.obstacle_words import obstacle_words
from reconciler.plan.reasons import counted

_UNSERVED = {
    Unserved.WITHOUT_GPUS: "the pod asks for no GPU, and servesPodsWithoutGpus is false",
    Unserved.NO_INSTANCE_TYPE: "the pool has no instance type",
    Unserved.NOT_EVALUATED: "the step budget of this plan was spent",
    Unserved.NOTHING_BOUGHT: "nothing is bought for it now",
}
_CLAIM = {
    ClaimState.ABSENT: "it does not exist",
    ClaimState.SUSPENDED: "it is suspended",
    ClaimState.UNREADABLE: "what it asks for can't be read",
}


def choice_words(choice: LaunchOption) -> str:
    """p4d.24xlarge (spot, in eu-1a)."""
    where = ", ".join(filter(None, (choice.capacity_type, choice.zone and f"in {choice.zone}")))
    return f"{choice.instance_type} ({where})" if where else choice.instance_type


def limit_words(limit: CapacityLimit) -> str:
    """maxSize 16 of NodeProvisioner/a100."""
    match limit.source:
        case "limits":
            return f"limits.{limit.resource} {limit.amount} of GpuPool/{limit.policy}"
        case "maxSize":
            return f"maxSize {limit.amount} of NodeProvisioner/{limit.policy}"
        case "instanceTypes":
            return f"no instance type of GpuPool/{limit.policy} is declared"


def bar_words(bar: Bar) -> str:
    """GpuPool/a100 is suspended."""
    match bar:
        case PolicySuspended(policy=policy):
            return f"{policy.title} is suspended"
        case PoolFrozen(freeze=freeze):
            return f"{freeze.scope_text} is frozen {freeze.until_text}"
        case NodePoolAbsent(node_pool=node_pool):
            return f"{node_pool.title} does not exist yet"
        case PoolObserved(observation=observation):
            return observation.causes_text


def why_words(why: Why) -> str:
    """Of one pool that can't serve a pod."""
    match why:
        case NoRoom(limit=limit):
            return f"{limit_words(limit)} allows no more nodes"
        case NoStock(tried=tried):
            return f"no machine can be had: tried {', '.join(map(choice_words, tried))}"
        case NoFit(why=obstacle, is_packed=is_packed):
            return obstacle_words(obstacle) if is_packed else f"a new node does not fit ({obstacle_words(obstacle)})"
        case NotServed(cause=cause):
            return _UNSERVED[cause]
        case PolicySuspended():
            return bar_words(why)


def refusal_words(refusal: PoolRefusal) -> str:
    """a100: limits.nodes 16 of GpuPool/a100 allows no more nodes."""
    return f"{refusal.pool}: {why_words(refusal.why)}"


def refusals_words(refusals: PoolRefusals) -> str:
    """Why each pool can't serve the pod."""
    parts = [refusal_words(each) for each in refusals.first]
    if refusals.more:
        parts.append(f"nor can {counted(refusals.more, 'more pool')}")
    return "; ".join(parts) or "no GpuPool is declared"


def claim_words(trouble: ClaimTrouble) -> str:
    """it is suspended."""
    match trouble:
        case ClaimUnusable(state=state):
            return _CLAIM[state]
        case ClaimUnseen(unread=unread):
            return unread_words(unread)


def unread_words(unread: Unread) -> str:
    """pods: the API server refuses to list them."""
    return f"{unread.kind}: {unread.why}"


WORDS: Mapping[type, Callable[[Any], str]] = {
    **dict.fromkeys(OBSTACLES.values(), obstacle_words),
    LaunchOption: choice_words,
    CapacityLimit: limit_words,
    **dict.fromkeys((PolicySuspended, PoolFrozen, NodePoolAbsent, PoolObserved), bar_words),
    PoolRefusal: refusal_words,
    PoolRefusals: refusals_words,
    **dict.fromkeys((ClaimUnusable, ClaimUnseen), claim_words),
    Unread: unread_words,
}
