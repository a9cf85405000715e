"""What would make a node a candidate for a drain that is none: the nearest change, and what else stands behind it.

Each reason that a single edit can lift has its line. The edit is made, in thought, and candidates are looked for again;
what stands in the way then is lifted in its turn. Only what, all of it done, makes the node a candidate is told.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.pod import Pod
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.weighed import Weighed
from reconciler.model.quantity import Quantity
from reconciler.plan.draft import Draft
from reconciler.plan.drain import reasons
from reconciler.plan.drain.planner import drain
from reconciler.plan.eviction import PodBudgets

_MOST_EDITS = 6  # what takes more is not near

_replace = msgspec.structs.replace


class Edit(msgspec.Struct, frozen=True):
    """The inputs after it, and what it is."""

    inputs: Inputs
    told: str


def changes_of(inputs: Inputs, weighed: Weighed) -> Iterator[str]:
    """One sentence at most: what would have to be otherwise."""
    told: list[str] = []
    current: Weighed | None = weighed
    while current is not None and not current.is_candidate and len(told) < _MOST_EDITS:
        line = LINES.get(current.reason.code)
        edit = line(inputs, current) if line is not None else None
        if edit is None:
            return
        inputs = edit.inputs
        told.append(edit.told)
        current = weighed_again(inputs, weighed.node)
    if told and current is not None and current.is_candidate:
        yield " and ".join(told)


def weighed_again(inputs: Inputs, node: str) -> Weighed | None:
    """What the node is found to be with these inputs."""
    verdict = drain(inputs, Draft(Fleet(inputs.observed)))
    return next((each for each in verdict.weighed if each.node == node), None)


def _of_policy(inputs: Inputs, weighed: Weighed, **fields: Any) -> Inputs:
    desired = inputs.desired
    drains = tuple(
        _replace(each, spec=_replace(each.spec, **fields)) if each.name == weighed.policy else each
        for each in desired.drains
    )
    return _replace(inputs, desired=_replace(desired, drains=drains))


def _threshold(inputs: Inputs, weighed: Weighed) -> Edit | None:
    used, total = (int(weighed.reason.fact(name) or 0) for name in ("used", "total"))
    percent = 100 * used // total + 1 if total else 101
    if percent > 100:
        return None
    after = _of_policy(inputs, weighed, utilization_threshold_percent=percent)
    return Edit(after, f"utilizationThresholdPercent of DrainPolicy/{weighed.policy} is {percent} or more")


def _cluster_min(inputs: Inputs, weighed: Weighed) -> Edit | None:
    policy = next((each for each in inputs.desired.drains if each.name == weighed.policy), None)
    resource, left = str(weighed.reason.fact("resource")), str(weighed.reason.fact("left"))
    if policy is None:
        return None
    after = _of_policy(inputs, weighed, cluster_min={**policy.spec.cluster_min, resource: Quantity.parse(left)})
    return Edit(after, f"clusterMin of DrainPolicy/{weighed.policy} wants {left} of {resource} or less")


def _min_size(inputs: Inputs, weighed: Weighed) -> Edit | None:
    facts = dict(weighed.reason.facts)
    wanted = int(facts["size"]) - int(facts["leaving"]) - 1
    desired, name = inputs.desired, str(facts["provisioner"]).partition("/")[2]
    wish = next((each for each in desired.provisioners if each.name == name), None)
    if wish is None or wish.spec.min_size <= wanted or wanted < 0:
        return None
    provisioners = tuple(
        _replace(each, spec=_replace(each.spec, min_size=wanted)) if each is wish else each
        for each in desired.provisioners
    )
    after = _replace(inputs, desired=_replace(desired, provisioners=provisioners))
    return Edit(after, f"minSize of NodeProvisioner/{name} is {wanted} or less")


def _annotated(told: str, **annotations: str) -> Callable[[Inputs, Weighed], Edit | None]:
    def line(inputs: Inputs, weighed: Weighed) -> Edit | None:
        title = str(weighed.reason.fact("pod"))
        pods = tuple(_with(pod, annotations) if f"Pod/{pod.title}" == title else pod for pod in inputs.observed.pods)
        return Edit(_replace(inputs, observed=_replace(inputs.observed, pods=pods)), f"{title} {told}")

    return line


def _with(pod: Pod, annotations: dict[str, str]) -> Pod:
    after: Annotations = _replace(pod.metadata.annotations, **annotations)
    return _replace(pod, metadata=_replace(pod.metadata, annotations=after))


def _budget(inputs: Inputs, weighed: Weighed) -> Edit | None:
    title = str(weighed.reason.fact("pod"))
    pod = next((each for each in inputs.observed.pods if f"Pod/{each.title}" == title), None)
    budgets = PodBudgets(inputs.observed.budgets).of(pod) if pod is not None else ()
    if len(budgets) != 1:
        return None
    opened = _replace(budgets[0], status=_replace(budgets[0].status, disruptions_allowed=1))
    after = tuple(opened if each is budgets[0] else each for each in inputs.observed.budgets)
    observed = _replace(inputs.observed, budgets=after)
    return Edit(_replace(inputs, observed=observed), f"{opened.title} allows a disruption")


_SAFE = _annotated("carries cluster-autoscaler.kubernetes.io/safe-to-evict: true", safe_to_evict="true")

LINES: dict[str, Callable[[Inputs, Weighed], Edit | None]] = {
    reasons.TOO_MUCH_USED.code: _threshold,
    reasons.CLUSTER_AT_MINIMUM.code: _cluster_min,
    reasons.AT_MINIMUM.code: _min_size,
    reasons.NO_CONTROLLER.code: _SAFE,
    reasons.LOCAL_STORAGE.code: _SAFE,
    reasons.SYSTEM_POD.code: _SAFE,
    reasons.NOT_SAFE_TO_EVICT.code: _annotated("does not say that it is not safe to evict", safe_to_evict=""),
    reasons.DO_NOT_DISRUPT_POD.code: _annotated("does not carry karpenter.sh/do-not-disrupt", do_not_disrupt=""),
    reasons.BUDGET_SPENT.code: _budget,
}
