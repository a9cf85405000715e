"""What keeps a pod where it is, whatever room there is elsewhere: an ordered table, the first line that applies.

A pod that says it is safe to evict may be one without a controller or of a custom one, of a controller that no longer
exists, with local storage, or of the system. Budgets are weighed as the eviction API does, less what pods need that go
before.

The drainability rules of Cluster Autoscaler 1.35, and what corresponds to each of them:

- Mirror, DaemonSet, Terminal: such pods are never asked (Pod.counts).
- LongTerminating: a leaving pod is not asked. The node of one that never goes is removed where it is not ready.
- ReplicaCount: CONTROLLER_GONE, except that a pod may go that says it is safe to evict, and that the pod of a DaemonSet
  which no longer exists goes with its node. PodDisruptionBudgets take the place of min-replica-count.
- SafeToEvict: lifts the lines that ask `is_safe`. Budgets and karpenter.sh/do-not-disrupt hold all the same.
- OnCompletion: TO_COMPLETION. The pod is not evicted, and its node is a candidate that waits (beginning/batch.py).
- Replicated: NO_CONTROLLER and CUSTOM_CONTROLLER.
- System: SYSTEM_POD, until systemPodTimeout.
- NotSafeToEvict, LocalStorage: the lines of these names. There may be blanks between the names of volumes.
- PDB: as the eviction API weighs them. Several budgets, or one without a status, keep a pod too.
- SkipReschedule, ForceScaleDown: not read. Each pod that is evicted has another place.
"""

from collections.abc import Callable

import msgspec

from reconciler.model.cluster.metadata import Annotations, OwnerReference
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.pod_volume import Volume
from reconciler.model.instant import later, moment, timestamp
from reconciler.model.planned.reason import Reason
from reconciler.plan import eviction
from reconciler.plan.drain import reasons
from reconciler.plan.drain.nodes.controllers import WATCHED
from reconciler.plan.drain.site import Seen, Site, why
from reconciler.plan.eviction import Remaining
from reconciler.plan.reasons import Because
from reconciler.plan.requests.identity import is_labelled_as_smart

_NOT_ANNOTATED = Annotations()
_SYSTEM = "kube-system"
# Controllers of which it is known that they make a pod anew that goes: those of Cluster Autoscaler
# (skip-nodes-with-custom-controller-pods). A Job of Volcano is none of them; where no version is told they are.
_MAKE_ANEW = frozenset({(kind, version) for own, kind in WATCHED for version in (own, "")})


class Asked(msgspec.Struct, frozen=True):
    """A pod that is to leave a node."""

    site: Site
    remaining: Remaining
    seen: Seen
    pod: Pod

    @property
    def is_safe(self) -> bool:
        return self.pod.metadata.annotations.safe_to_evict == "true"


Facts = dict[str, str | int]


class _Line(msgspec.Struct, frozen=True):
    because: Because
    concerns: Callable[[Pod], bool]  # whether it could ever apply to such a pod, by what the pod alone says
    facts: Callable[[Asked], Facts | None]  # None: it does not apply


def _if(applies: Callable[[Asked], bool]) -> Callable[[Asked], Facts | None]:
    return lambda asked: {} if applies(asked) else None


def _claim(asked: Asked) -> Facts | None:
    told = asked.site.claims.why_unknown(asked.pod)
    return {"claim": asked.pod.metadata.annotations.claim, "why": told} if told else None


def custom_controller(pod: Pod) -> OwnerReference | None:
    """Its controller, where that is of a kind of which nobody knows whether it makes a pod anew that goes."""
    owner = pod.metadata.controller
    is_known = owner is None or (owner.kind, owner.api_version) in _MAKE_ANEW
    return None if is_known or pod.stays_with_its_node else owner


def _has_no_known_maker(pod: Pod) -> bool:
    """Whether it has no controller, or a custom one: one look for both lines, as it is asked of every pod."""
    owner = pod.metadata.controller
    return owner is None or (owner.kind, owner.api_version) not in _MAKE_ANEW


def _custom_controller(asked: Asked) -> Facts | None:
    owner = None if asked.is_safe else custom_controller(asked.pod)
    return {"controller": f"{owner.kind}/{owner.name}"} if owner is not None else None


def _local(pod: Pod) -> Volume | None:
    """The first that is on the disk of its node, and that the pod does not say may be lost."""
    for each in pod.spec.volumes:
        if each.is_local and each.name not in _spared(pod):
            return each
    return None


def _spared(pod: Pod) -> frozenset[str]:
    written = pod.metadata.annotations.safe_to_evict_local_volumes
    return frozenset(each.strip() for each in written.split(",")) if written else frozenset()


def _local_storage(asked: Asked) -> Facts | None:
    volume = None if asked.is_safe else _local(asked.pod)
    return {"volume": volume.name} if volume is not None else None


def _of_the_system(asked: Asked) -> Facts | None:
    """Without a budget, and younger than the policy wants. One without a creation time is never known to be older."""
    if asked.pod.metadata.namespace != _SYSTEM or asked.is_safe or asked.remaining.budgets_of(asked.pod):
        return None
    created = moment(asked.pod.metadata.creation_timestamp)
    if created is None:
        return {"time": "its time of creation is known"}
    until = later(created, asked.seen.policy.spec.system_pod_timeout.milliseconds)
    if until <= asked.site.now:
        return None
    asked.site.wakes.append(until)
    return {"time": timestamp(until)}


def _not_to_be_disrupted(asked: Asked) -> Facts | None:
    until = eviction.stays_until(asked.pod)
    if until <= asked.site.now:
        return None
    if until != eviction.FOREVER:
        asked.site.wakes.append(until)
    return {}


def _controller_gone(asked: Asked) -> Facts | None:
    owner = asked.pod.metadata.controller
    if owner is None or asked.is_safe or not asked.site.controllers.is_gone(asked.pod.metadata.namespace, owner):
        return None
    return {"controller": f"{owner.kind}/{owner.name}"}


def _place_unknown(asked: Asked) -> Facts | None:
    told = asked.site.why_it_stays(asked.pod)
    return {"why": told} if told else None


def _is_annotated(pod: Pod) -> bool:
    return pod.metadata.annotations != _NOT_ANNOTATED


_LINES = (
    _Line(reasons.TO_COMPLETION, _is_annotated, _if(lambda asked: asked.pod.runs_to_completion)),
    _Line(
        reasons.DO_NOT_DISRUPT_POD,
        _is_annotated,
        _not_to_be_disrupted,
    ),
    _Line(
        reasons.NOT_SAFE_TO_EVICT,
        _is_annotated,
        _if(lambda asked: asked.pod.metadata.annotations.safe_to_evict == "false"),
    ),
    _Line(reasons.SMART_POD, is_labelled_as_smart, _if(lambda asked: asked.site.draft.identity.is_smart(asked.pod))),
    _Line(reasons.CLAIM, _is_annotated, _claim),
    _Line(
        reasons.NO_CONTROLLER,
        _has_no_known_maker,
        _if(lambda asked: asked.pod.metadata.controller is None and not asked.is_safe),
    ),
    _Line(reasons.CUSTOM_CONTROLLER, _has_no_known_maker, _custom_controller),
    # Asked of all controllers of a node's pods at once (Moving.controllers), not of each pod.
    _Line(reasons.CONTROLLER_GONE, lambda _: False, _controller_gone),
    _Line(reasons.LOCAL_STORAGE, lambda pod: _local(pod) is not None, _local_storage),
    _Line(reasons.SYSTEM_POD, lambda pod: pod.metadata.namespace == _SYSTEM, _of_the_system),
    # What may concern any pod is asked of its class, beside this table.
    _Line(reasons.PLACE_UNKNOWN, lambda _: False, _place_unknown),
)

_CONCERNING = tuple(dict.fromkeys(each.concerns for each in _LINES))


# Looked at after all of these, and once.
_OF_BUDGETS = {
    eviction.SEVERAL_BUDGETS: reasons.SEVERAL_BUDGETS,
    eviction.BUDGET_UNSEEN: reasons.BUDGET_UNSEEN,
    eviction.BUDGET_SPENT: reasons.BUDGET_SPENT,
    eviction.BUDGET_TAKEN: reasons.BUDGET_TAKEN,
}


def moves(pod: Pod) -> bool:
    """Whether it has to find another place when its node goes: a leaving pod has one, or needs none, and the node waits
    for a pod that runs to completion."""
    return stays(pod) and not pod.runs_to_completion


def stays(pod: Pod) -> bool:
    """Whether it is there until it is evicted, or has completed."""
    return pod.counts and not pod.metadata.leaving


def is_plain(pod: Pod) -> bool:
    """Whether nothing could keep it but a budget, or that nobody can tell where such a pod would fit."""
    for concerns in _CONCERNING:  # noqa: SIM110 - asked of every pod, and a generator costs as much as a few lines
        if concerns(pod):
            return False
    return True


def blocker(site: Site, remaining: Remaining, seen: Seen, pod: Pod) -> Reason | None:
    """What keeps it; nothing when it may be asked to leave now."""
    asked = Asked(site, remaining, seen, pod)
    for line in _LINES:
        facts = line.facts(asked)
        if facts is not None:
            return why(seen, line.because, pod=f"Pod/{pod.title}", **facts)
    code = remaining.why_not(pod)
    if code == eviction.NOTHING:
        return None
    budgets = ", ".join(each.title for each in remaining.budgets_of(pod))
    return why(seen, _OF_BUDGETS[code], pod=f"Pod/{pod.title}", budgets=budgets)
