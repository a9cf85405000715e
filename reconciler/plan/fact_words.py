"""The words of facts that are no text: of a type wherever it stands in a sentence, and of what several facts say."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model import names
from reconciler.model.cluster.set_aside import Refusal
from reconciler.model.planned.guarded import Measure
from reconciler.model.planned.reason import Facts
from reconciler.plan.guards.frozen import Scope
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.reasons import GuardSum
from reconciler.plan.guards.set_aside import BehindSetAside
from reconciler.plan.holds.standstill import StandingStill, TaintOfOtherEnvironment, TaintStays
from reconciler.plan.manifests.reasons import NodeLabel, NotOurs, OwnedByOther

MEASURES: Mapping[Measure, str] = {
    "removed_nodes": "removed nodes",
    "removed_percent": "removed percent",
    "disrupted_gpus": "disrupted GPUs",
    "deleted_node_pools": "deleted NodePools",
}


def _sum(each: GuardSum) -> str:
    """40 of 24 removed nodes."""
    words = f"{each.counted} of {each.allowed} {MEASURES[each.measure]}"
    return f"{words} of {each.pool}" if each.pool else words


def _other(facts: BehindSetAside) -> str:
    other = facts.other
    return "/".join(part for part in (other.kind, other.namespace, other.name or "(without a name)") if part)


def _and_its_nodes(facts: NotOurs | OwnedByOther) -> str:
    """What it means for nodes that their NodePool is not ours."""
    return ", and its nodes are only observed" if facts.object.kind == "NodePool" else ""


def _the_taints(facts: StandingStill) -> str:
    return f"the taint{'' if len(facts.taints) == 1 else 's'} {' and '.join(facts.taints)}"


def _cause(facts: TaintStays) -> str:
    if facts.observation is not None:
        return facts.observation.told
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


def _refusal(refusal: Refusal) -> str:
    return refusal.why


def _scope(scope: Scope) -> str:
    return scope.words


def _observation(observation: Observation) -> str:
    return observation.told


def _label(label: NodeLabel) -> str:
    return f"{label.key}={label.value}"


# By the type of a fact.
WORDS: Mapping[type, Callable[[Any], str]] = {
    GuardSum: _sum,
    NodeLabel: _label,
    Observation: _observation,
    Refusal: _refusal,
    Scope: _scope,
}

# By code, what stands in its template and is no fact, or is written otherwise than by its type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    BehindSetAside: {"other": _other},
    NotOurs: {"observed": _and_its_nodes},
    OwnedByOther: {"observed": _and_its_nodes},
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
