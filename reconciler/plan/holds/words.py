"""What reasons say of taints that stay, in words that several facts make."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model import names
from reconciler.model.plan.reason import Facts
from reconciler.plan.holds.standstill import StandingStill, TaintOfOtherEnvironment, TaintStays


def _the_taints(facts: StandingStill) -> str:
    return f"the taint{'' if len(facts.taints) == 1 else 's'} {' and '.join(facts.taints)}"


def _cause(facts: TaintStays) -> str:
    if facts.observation is not None:
        return facts.observation.causes_text
    if not facts.pool:
        return "belongs to no pool"
    return f"no policy of environment {facts.environment} declares pool {facts.pool}"


def _undone(facts: TaintStays) -> str:
    """What the taints come to."""
    is_one = len(facts.taints) == 1
    stays = "the taint stays" if is_one else "the taints stay"
    if facts.keeps_pods_away:
        stays += f", which {'keeps' if is_one else 'keep'} new pods away"
    if names.DRAINING in facts.taints:
        return f"{facts.node} is neither emptied nor deleted, and {stays}"
    return f"{facts.node} is not deleted, and {stays}" if names.DELETION_TIME in facts.taints else stays


def _goes_on(facts: TaintStays) -> str:
    """What must be so that planners go on with the node."""
    observation = facts.observation
    if observation is None:
        return f"a GpuPool {facts.pool} is declared" if facts.pool else "it belongs to a GpuPool"
    pool = observation.pool
    steps = (
        (observation.by_mode, f"GpuPool/{pool} is in mode Enforce"),
        (observation.is_suspended, f"GpuPool/{pool} is not suspended"),
        (observation.is_unadopted, f"NodePool/{pool} is adopted (adopt: true in GpuPool/{pool})"),
    )
    return " and ".join(words for applies, words in steps if applies)


def _untaint(facts: TaintStays) -> str:
    return f"kubectl taint nodes {facts.node} {' '.join(f'{key}-' for key in facts.taints)}"


def _them(facts: TaintStays) -> str:
    return "the taint" if len(facts.taints) == 1 else "the taints"


PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    TaintOfOtherEnvironment: {"the_taints": _the_taints},
    TaintStays: {
        "the_taints": _the_taints,
        "cause": _cause,
        "undone": _undone,
        "goes_on": _goes_on,
        "untaint": _untaint,
        "them": _them,
    },
}
