"""Text for capacity facts: offerings, limits, shortages, claims, and predicates that rule out nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.fleet import obstacles
from reconciler.fleet.amounts import CPU, PODS
from reconciler.fleet.obstacles import OBSTACLES, Lack
from reconciler.fleet.obstacles import ClaimState as ObstaclesClaimState
from reconciler.fleet.snapshot.rejections import NodesOfKind, Rejections
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.capacity import CapacityLimit, Shortage
from reconciler.model.plan.decision import Obstacle
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
from reconciler.plan.reasons import counted

# --- Recent shortages of a pool, and when they expire.


def short_of(shortages: Iterable[Shortage], pool: str, now: Instant) -> tuple[Shortage, ...]:
    """Shortages of a pool that have not expired, oldest first."""
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


# --- Text for the predicates that rule out nodes, with the number of nodes by kind.

_MOST_KINDS = 4  # kinds named for one predicate


def ruled_out_words(rejections: Rejections) -> str:
    """resources: 12 nodes of a100 p4d.24xlarge and 1 node of l4 g6.12xlarge; selection: 3 nodes of l4 g6.12xlarge."""
    by = sorted(rejections.by, key=lambda each: each.predicate)
    parts = [f"{each.predicate}: {_kinds_words(each.kinds)}" for each in by]
    if rejections.free:
        parts.append(f"not together with the other pods: {_kinds_words(rejections.free)}")
    return "; ".join(parts)


def _kinds_words(kinds: Sequence[NodesOfKind]) -> str:
    """Text for nodes by kind, the largest number first."""
    order = sorted(kinds, key=lambda each: (-each.nodes, each.kind))
    parts = [f"{counted(each.nodes, 'node')} of {each.kind}" for each in order[:_MOST_KINDS]]
    if rest := sum(each.nodes for each in order[_MOST_KINDS:]):
        parts.append(f"{counted(rest, 'node')} of other kinds")
    return listed(parts)


def listed(parts: list[str]) -> str:
    """A list in words: a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# --- Text for the obstacles that keep a pod off a node.

_STATES: Mapping[ObstaclesClaimState, str] = {
    "not made": "does not exist yet",
    "absent": "does not exist",
    "leaving": "is being deleted",
    "of another pod": "was created for another pod",
}
_MOST_DOMAINS = 5


def obstacle_words(obstacle: Obstacle) -> str:
    """Text for an obstacle, as a clause of a sentence."""
    if (words := _WORDS.get(type(obstacle))) is not None:
        return words(obstacle)
    names = obstacle.__struct_fields__  # type: ignore[attr-defined]
    return obstacle.template.format(**{name: _fact(getattr(obstacle, name)) for name in names})


def obstacles_words(several: Sequence[Obstacle]) -> str:
    return "; ".join(map(obstacle_words, several))


def _fact(value: Any) -> str:
    if isinstance(value, Obstacle):
        return obstacle_words(value)
    if isinstance(value, Rejections):
        return ruled_out_words(value) or "no node has room"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _unit(resource: str) -> str:
    return "m" if resource == CPU else ""


def _lack(lack: Lack) -> str:
    if lack.resource == PODS:
        return f"{lack.allocatable - lack.free} of {lack.allocatable} pod slots are used"
    unit = _unit(lack.resource)
    return f"{lack.asked}{unit} {lack.resource} requested, {max(lack.free, 0)}{unit} of {lack.allocatable}{unit} free"


def _uneven(it: obstacles.SpreadUnevenAnywhere) -> str:
    shown = ", ".join(f"{value} has {count}" for value, count in it.domains[:_MOST_DOMAINS])
    few = f", and {len(it.domains)} of at least {it.min_domains} domains" if len(it.domains) < it.min_domains else ""
    return it.template.format(key=it.key, max_skew=it.max_skew, selector=it.selector, domains=f"{shown}{few}")


def _claim(it: obstacles.VolumeClaimUnusable | obstacles.DeviceClaimUnusable) -> str:
    return it.template.format(claim=it.claim, state=_STATES[it.state])


def _by_others(it: obstacles.AntiAffinity | obstacles.RepelledByOthers) -> str:
    return it.template.format(domain=it.domain, pods=counted(it.pods, "pod"), selector=it.selector)


def _too_small(it: obstacles.ShapesTooSmall) -> str:
    unit = _unit(it.resource)
    return it.template.format(asked=f"{it.asked}{unit}", resource=it.resource, most=f"{it.most}{unit}")


def _few_gpus(it: obstacles.TooFewFreeGpus | obstacles.NoIslandOfFreeGpus) -> str:
    facts = msgspec.structs.asdict(it) | {"wanted": counted(it.wanted, "GPU")}
    return it.template.format(**facts)


# Obstacles whose facts need their own text.
_WORDS: Mapping[type[Obstacle], Callable[[Any], str]] = {
    obstacles.TaintNotTolerated: lambda it: it.template.format(
        key=it.key, value=f"={it.value}" if it.value else "", effect=it.effect
    ),
    obstacles.LabelDiffers: lambda it: it.template.format(key=it.key, value=it.value, there=it.there or "nothing"),
    obstacles.ResourcesLacking: lambda it: "; ".join(map(_lack, it.lacks)),
    obstacles.HostPortsTaken: lambda it: (
        f"{'port' if len(it.ports) == 1 else 'ports'} {', '.join(it.ports)} of the host in use"
    ),
    obstacles.VolumeClaimUnusable: _claim,
    obstacles.DeviceClaimUnusable: _claim,
    obstacles.AntiAffinity: _by_others,
    obstacles.RepelledByOthers: _by_others,
    obstacles.ShapesTooSmall: _too_small,
    obstacles.AffinityNowhereMet: lambda it: it.template.format(selectors=" and ".join(it.selectors)),
    obstacles.SpreadUnevenAnywhere: _uneven,
    obstacles.TooFewFreeGpus: _few_gpus,
    obstacles.NoIslandOfFreeGpus: _few_gpus,
    obstacles.GpuModelDiffers: lambda it: it.template.format(model=it.model, there=listed(list(it.there)) or "none"),
    obstacles.GpuMemoryTooSmall: lambda it: it.template.format(wanted=it.wanted, most=it.most or "an unknown amount"),
}

_UNSERVED = {
    Unserved.WITHOUT_GPUS: "the pod requests no GPU, and servesPodsWithoutGpus is false",
    Unserved.NO_INSTANCE_TYPE: "the pool has no instance type",
    Unserved.NOT_EVALUATED: "the plan used up its step budget",
    Unserved.NOTHING_BOUGHT: "the pool buys nothing for the pod now",
}
_CLAIM = {
    ClaimState.ABSENT: "the claim does not exist",
    ClaimState.SUSPENDED: "the claim is suspended",
    ClaimState.UNREADABLE: "the request of the claim can't be read",
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
            return f"GpuPool/{limit.policy} declares no instance type"


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
    """Why one pool can't serve a pod."""
    match why:
        case NoRoom(limit=limit):
            return f"{limit_words(limit)} allows no more nodes"
        case NoStock(tried=tried):
            return f"no machine is available: tried {', '.join(map(choice_words, tried))}"
        case NoFit(why=obstacle, is_packed=is_packed):
            return (
                obstacle_words(obstacle)
                if is_packed
                else f"the pod does not fit on a new node ({obstacle_words(obstacle)})"
            )
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
    """Why a GpuClaim can't be used: the claim is suspended."""
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
