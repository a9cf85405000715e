"""What keeps a pod off a node, in words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.fleet import obstacles
from reconciler.fleet.amounts import CPU, PODS
from reconciler.fleet.obstacles import ClaimState, Lack
from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.obstacle import Obstacle
from reconciler.plan.capacity.ruled_out_words import ruled_out_words
from reconciler.plan.reasons import counted

_STATES: Mapping[ClaimState, str] = {
    "not made": "is not made yet",
    "absent": "is not there",
    "leaving": "is being deleted",
    "of another pod": "was not made for this pod",
}
_MOST_DOMAINS = 5


def obstacle_words(obstacle: Obstacle) -> str:
    """As a part of a sentence."""
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
        return ruled_out_words(value) or "none does"
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _unit(resource: str) -> str:
    return "m" if resource == CPU else ""


def _lack(lack: Lack) -> str:
    if lack.resource == PODS:
        return f"{lack.allocatable - lack.free} pods are there, and it takes {lack.allocatable}"
    unit = _unit(lack.resource)
    return f"{lack.asked}{unit} {lack.resource} asked, {max(lack.free, 0)}{unit} of {lack.allocatable}{unit} free"


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


# Of those whose facts are not written as they are.
_WORDS: Mapping[type[Obstacle], Callable[[Any], str]] = {
    obstacles.TaintNotTolerated: lambda it: it.template.format(
        key=it.key, value=f"={it.value}" if it.value else "", effect=it.effect
    ),
    obstacles.LabelDiffers: lambda it: it.template.format(key=it.key, value=it.value, there=it.there or "nothing"),
    obstacles.ResourcesLacking: lambda it: "; ".join(map(_lack, it.lacks)),
    obstacles.HostPortsTaken: lambda it: (
        f"{'port' if len(it.ports) == 1 else 'ports'} {', '.join(it.ports)} of the host taken"
    ),
    obstacles.VolumeClaimUnusable: _claim,
    obstacles.DeviceClaimUnusable: _claim,
    obstacles.AntiAffinity: _by_others,
    obstacles.RepelledByOthers: _by_others,
    obstacles.ShapesTooSmall: _too_small,
    obstacles.AffinityNowhereMet: lambda it: it.template.format(selectors=" and ".join(it.selectors)),
    obstacles.SpreadUnevenAnywhere: _uneven,
}
