"""What keeps a pod where it is, whatever room there is elsewhere: an ordered table, the first line that applies.

A pod that says it is safe to evict may be one without a controller or of a custom one, of a controller that no longer
exists, with local storage, or of the system. Budgets are weighed as the eviction API does, less what pods need that go
before.

The drainability rules of Cluster Autoscaler 1.35, and what corresponds to each of them:

- Mirror, DaemonSet, Terminal: such pods are never asked (Pod.counts).
- LongTerminating: a leaving pod is not asked. The node of one that never goes is removed where it is not ready.
- ReplicaCount: PodControllerGone, except that a pod may go that says it is safe to evict, and that the pod of a
  DaemonSet which no longer exists goes with its node. PodDisruptionBudgets take the place of min-replica-count.
- SafeToEvict: lifts the lines that ask `is_safe`. Budgets and karpenter.sh/do-not-disrupt hold all the same.
- OnCompletion: PodRunsToCompletion. The pod is not evicted, and its node is a candidate that waits
  (batch.py).
- Replicated: PodWithoutController and PodOfCustomController.
- System: SystemPod, until systemPodTimeout.
- NotSafeToEvict, LocalStorage: the lines of these names. There may be blanks between the names of volumes.
- PDB: as the eviction API weighs them. Several budgets, or one without a status, keep a pod too.
- SkipReschedule, ForceScaleDown: not read. Each pod that is evicted has another place.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, Volume, is_silent, is_stuck
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.decision import Decision, Facts, Hold, Reason, Ref, pod_ref
from reconciler.plan.capacity.requests import is_labelled_as_smart
from reconciler.plan.drain.codes.blockers import (
    LOSES,
    BudgetBlocker,
    NodeLost,
    NodeLostWithPod,
    PodBlocker,
    PodBudgetSpent,
    PodBudgetTaken,
    PodBudgetUnseen,
    PodControllerGone,
    PodDoNotDisrupt,
    PodNotSafeToEvict,
    PodOfClaim,
    PodOfCustomController,
    PodPlaceUnknown,
    PodRunsToCompletion,
    PodSeveralBudgets,
    PodWithLocalStorage,
    PodWithoutController,
    SmartPodStays,
    SystemPod,
)
from reconciler.plan.drain.context import WATCHED, DrainContext, DrainNode, ref_of_budget
from reconciler.plan.nodes import eviction
from reconciler.plan.nodes.eviction import EvictionObstacle, Remaining

_NOT_ANNOTATED = Annotations()
_SYSTEM = "kube-system"
# Controllers of which it is known that they make a pod anew that goes: those of Cluster Autoscaler
# (skip-nodes-with-custom-controller-pods). A Job of Volcano is none of them; where no version is told they are.
_MAKE_ANEW = frozenset({(kind, version) for own, kind in WATCHED for version in (own, "")})


class PodToEvict(msgspec.Struct, frozen=True):
    """A pod that is to leave a node."""

    context: DrainContext
    remaining: Remaining
    drain_node: DrainNode
    pod: Pod

    @property
    def ref(self) -> Ref:
        return pod_ref(self.pod)

    @property
    def is_safe(self) -> bool:
        return self.pod.metadata.annotations.safe_to_evict == "true"


class _BlockerRule(msgspec.Struct, frozen=True):
    concerns: Callable[[Pod], bool]  # whether it could ever apply to such a pod, by what the pod alone says
    facts: Callable[[PodToEvict], Facts | None]  # None: it does not apply


def _if(code: type[PodBlocker], applies: Callable[[PodToEvict], bool]) -> Callable[[PodToEvict], Facts | None]:
    return lambda pod_to_evict: (
        code(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name) if applies(pod_to_evict) else None
    )


def _claim(pod_to_evict: PodToEvict) -> Facts | None:
    doubt = pod_to_evict.context.claims.why_unknown(pod_to_evict.pod)
    if doubt is None:
        return None
    return PodOfClaim(
        pod=pod_to_evict.ref,
        node=pod_to_evict.drain_node.name,
        claim=pod_to_evict.pod.metadata.annotations.claim,
        why=doubt,
    )


def custom_controller(pod: Pod) -> OwnerReference | None:
    """Its controller, where that is of a kind of which nobody knows whether it makes a pod anew that goes."""
    owner = pod.metadata.controller
    is_known = owner is None or (owner.kind, owner.api_version) in _MAKE_ANEW
    return None if is_known or pod.stays_with_its_node else owner


def _has_no_known_maker(pod: Pod) -> bool:
    """Whether it has no controller, or a custom one: one look for both lines, as it is asked of every pod."""
    owner = pod.metadata.controller
    return owner is None or (owner.kind, owner.api_version) not in _MAKE_ANEW


def _custom_controller(pod_to_evict: PodToEvict) -> Facts | None:
    owner = None if pod_to_evict.is_safe else custom_controller(pod_to_evict.pod)
    if owner is None:
        return None
    return PodOfCustomController(
        pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, controller=Ref(owner.kind, "", owner.name)
    )


def _local(pod: Pod) -> Volume | None:
    """The first that is on the disk of its node, and that the pod does not say may be lost."""
    for each in pod.spec.volumes:
        if each.is_local and each.name not in _spared(pod):
            return each
    return None


def _spared(pod: Pod) -> frozenset[str]:
    written = pod.metadata.annotations.safe_to_evict_local_volumes
    return frozenset(each.strip() for each in written.split(",")) if written else frozenset()


def _local_storage(pod_to_evict: PodToEvict) -> Facts | None:
    volume = None if pod_to_evict.is_safe else _local(pod_to_evict.pod)
    if volume is None:
        return None
    return PodWithLocalStorage(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, volume=volume.name)


def _of_the_system(pod_to_evict: PodToEvict) -> Facts | None:
    """Without a budget, and younger than the policy wants. One without a creation time is never known to be older."""
    if (
        pod_to_evict.pod.metadata.namespace != _SYSTEM
        or pod_to_evict.is_safe
        or pod_to_evict.remaining.budgets_of(pod_to_evict.pod)
    ):
        return None
    created = moment(pod_to_evict.pod.metadata.creation_timestamp)
    if created is None:
        return SystemPod(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, time=None)
    until = later(created, pod_to_evict.drain_node.policy.spec.system_pod_timeout.milliseconds)
    if until <= pod_to_evict.context.now:
        return None
    pod_to_evict.context.wakes.append(until)
    return SystemPod(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, time=until)


def _not_to_be_disrupted(pod_to_evict: PodToEvict) -> Facts | None:
    until = eviction.stays_until(pod_to_evict.pod)
    if until <= pod_to_evict.context.now:
        return None
    if until != eviction.FOREVER:
        pod_to_evict.context.wakes.append(until)
    return PodDoNotDisrupt(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name)


def _controller_gone(pod_to_evict: PodToEvict) -> Facts | None:
    owner = pod_to_evict.pod.metadata.controller
    if (
        owner is None
        or pod_to_evict.is_safe
        or not pod_to_evict.context.controllers.is_gone(pod_to_evict.pod.metadata.namespace, owner)
    ):
        return None
    return PodControllerGone(
        pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, controller=Ref(owner.kind, "", owner.name)
    )


def _place_unknown(pod_to_evict: PodToEvict) -> Facts | None:
    obstacle = pod_to_evict.context.why_it_stays(pod_to_evict.pod)
    return PodPlaceUnknown(pod=pod_to_evict.ref, node=pod_to_evict.drain_node.name, why=obstacle) if obstacle else None


def _is_annotated(pod: Pod) -> bool:
    return pod.metadata.annotations != _NOT_ANNOTATED


_LINES = (
    _BlockerRule(_is_annotated, _if(PodRunsToCompletion, lambda pod_to_evict: pod_to_evict.pod.runs_to_completion)),
    _BlockerRule(_is_annotated, _not_to_be_disrupted),
    _BlockerRule(
        _is_annotated,
        _if(PodNotSafeToEvict, lambda pod_to_evict: pod_to_evict.pod.metadata.annotations.safe_to_evict == "false"),
    ),
    _BlockerRule(
        is_labelled_as_smart,
        _if(SmartPodStays, lambda pod_to_evict: pod_to_evict.context.draft.identity.is_smart(pod_to_evict.pod)),
    ),
    _BlockerRule(_is_annotated, _claim),
    _BlockerRule(
        _has_no_known_maker,
        _if(
            PodWithoutController,
            lambda pod_to_evict: pod_to_evict.pod.metadata.controller is None and not pod_to_evict.is_safe,
        ),
    ),
    _BlockerRule(_has_no_known_maker, _custom_controller),
    # Asked of all controllers of a node's pods at once (Moving.controllers), not of each pod.
    _BlockerRule(lambda _: False, _controller_gone),
    _BlockerRule(lambda pod: _local(pod) is not None, _local_storage),
    _BlockerRule(lambda pod: pod.metadata.namespace == _SYSTEM, _of_the_system),
    # What may concern any pod is asked of its class, beside this table.
    _BlockerRule(lambda _: False, _place_unknown),
)

_CONCERNING = tuple(dict.fromkeys(each.concerns for each in _LINES))


# Looked at after all of these, and once.
_OF_BUDGETS: dict[EvictionObstacle, type[BudgetBlocker]] = {
    EvictionObstacle.SEVERAL_BUDGETS: PodSeveralBudgets,
    EvictionObstacle.BUDGET_UNSEEN: PodBudgetUnseen,
    EvictionObstacle.BUDGET_SPENT: PodBudgetSpent,
    EvictionObstacle.BUDGET_TAKEN: PodBudgetTaken,
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


def blocker(context: DrainContext, remaining: Remaining, drain_node: DrainNode, pod: Pod) -> Reason | None:
    """What keeps it; nothing when it may be asked to leave now."""
    pod_to_evict = PodToEvict(context, remaining, drain_node, pod)
    for line in _LINES:
        facts = line.facts(pod_to_evict)
        if facts is not None:
            return drain_node.reason(facts)
    case = remaining.why_not(pod)
    if case is None:
        return None
    budgets = tuple([ref_of_budget(each) for each in remaining.budgets_of(pod)])
    return drain_node.reason(_OF_BUDGETS[case](pod=pod_to_evict.ref, node=drain_node.name, budgets=budgets))


# --- Nodes that nobody can empty: their kubelet is gone, so that their pods stay Terminating.
#
# Karpenter ends the machine of such a node when the Node object is deleted. Of a node that is not Karpenter's nobody
# ends the machine: its pods may still run there, and to delete the Node object would let others take their volumes and
# names. Such a node is held until a person ends the machine.


def is_karpenters(node: Node) -> bool:
    """Whether Karpenter ends the machine once the Node object is deleted."""
    return bool(node.metadata.labels.get(names.KARPENTER_POOL))


def why_lost(context: DrainContext, drain_node: DrainNode) -> Reason | None:
    """Why a node is held that is not Karpenter's: its kubelet has stopped to report, or a pod is stuck on it."""
    if drain_node.is_ready or is_karpenters(drain_node.node):
        return None
    if is_silent(drain_node.node):
        return drain_node.reason(NodeLost(node=drain_node.name))
    stuck = next(iter(stuck_pods(context.fleet.pods_on(drain_node.name), drain_node, context.now)), None)
    return None if stuck is None else drain_node.reason(NodeLostWithPod(node=drain_node.name, pod=pod_ref(stuck)))


def stuck_pods(pods: Iterable[Pod], drain_node: DrainNode, now: Instant) -> Iterator[Pod]:
    """Those that count, and that nobody will end."""
    return (pod for pod in pods if pod.counts and is_stuck(pod, drain_node.node, now, drain_node.longest_grace_seconds))


def held(context: DrainContext, refused: Mapping[str, Reason]) -> Iterator[Decision]:
    """The hold on each such node."""
    for drain_node in context.drain_nodes:
        reason = refused.get(drain_node.name)
        if reason is not None and type(reason.facts) in LOSES:
            yield context.act(drain_node, Hold(), reason)
