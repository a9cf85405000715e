"""What keeps a pod on its node, whatever room other nodes have: an ordered table, the first matching rule applies.

A pod that is annotated as safe to evict may have no controller, a custom controller or a deleted controller, may use
local storage, or may be a system pod. PodDisruptionBudgets are checked as the eviction API does, minus the
disruptions of pods that are evicted earlier.

Drainability rules of Cluster Autoscaler 1.35, and the corresponding rules here:

- Mirror, DaemonSet, Terminal: such pods are never evicted (Pod.counts).
- LongTerminating: a terminating pod is not evicted. The node of a pod that never terminates is removed if the node
  is not ready.
- ReplicaCount: PodControllerGone, except that a safe-to-evict pod may be evicted, and that a pod of a deleted
  DaemonSet goes with its node. PodDisruptionBudgets take the place of min-replica-count.
- SafeToEvict: disables the rules that check `is_safe`. Budgets and all other annotations still apply.
- OnCompletion: PodRunsToCompletion. The pod is not evicted, and its node is a candidate that waits (batch.py).
- Replicated: PodWithoutController and PodOfCustomController.
- System: SystemPod, until systemPodTimeout.
- NotSafeToEvict, LocalStorage: the rules of these names. The list of volume names may contain blanks.
- PDB: as the eviction API. Several budgets, or a budget without a status, keep a pod too.
- SkipReschedule, ForceScaleDown: not supported. Each evicted pod has a destination.
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
    ANNOTATION_BLOCKERS,
    LOSES,
    AnnotationBlocker,
    BudgetBlocker,
    NodeLost,
    NodeLostWithPod,
    PodBlocker,
    PodBudgetSpent,
    PodBudgetTaken,
    PodBudgetUnseen,
    PodControllerGone,
    PodDoNotDisrupt,
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
# Controllers that are known to replace an evicted pod: those of Cluster Autoscaler
# (skip-nodes-with-custom-controller-pods). A Job of Volcano is not included. A controller of a known kind without an
# API version is.
_MAKE_ANEW = frozenset({(kind, version) for own, kind in WATCHED for version in (own, "")})


class PodToEvict(msgspec.Struct, frozen=True):
    """A pod that should leave its node."""

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
    concerns: Callable[[Pod], bool]  # whether the rule could apply, judged by the pod alone
    facts: Callable[[PodToEvict], Facts | None]  # None: the rule does not apply


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
    """The pod's controller, if it is of a kind that is not known to replace evicted pods."""
    owner = pod.metadata.controller
    is_known = owner is None or (owner.kind, owner.api_version) in _MAKE_ANEW
    return None if is_known or pod.stays_with_its_node else owner


def _has_no_known_maker(pod: Pod) -> bool:
    """Whether the pod has no controller or a custom controller: one check for both rules, because it runs for every
    pod.
    """
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
    """First volume on the node's disk that the pod does not declare expendable."""
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
    """Hold for a young system pod without a budget. A pod without a creation time never becomes old enough."""
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


def _by_annotation(code: type[AnnotationBlocker]) -> _BlockerRule:
    return _BlockerRule(_is_annotated, _if(code, lambda pod_to_evict: code.keeps(pod_to_evict.pod)))


# In this order; the first rule that applies names the blocker of the pod.
_RULES = (
    _by_annotation(PodRunsToCompletion),
    _BlockerRule(_is_annotated, _not_to_be_disrupted),
    *(_by_annotation(code) for code in ANNOTATION_BLOCKERS if code is not PodRunsToCompletion),
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
    # This rule concerns no pod by itself: first_blocker asks once for all controllers of a node (Moving.controllers).
    _BlockerRule(lambda _: False, _controller_gone),
    _BlockerRule(lambda pod: _local(pod) is not None, _local_storage),
    _BlockerRule(lambda pod: pod.metadata.namespace == _SYSTEM, _of_the_system),
    # Applies to any pod, so this rule is checked by pod class, beside this table.
    _BlockerRule(lambda _: False, _place_unknown),
)

_CONCERNING = tuple(dict.fromkeys(each.concerns for each in _RULES))


# Budgets are checked once, after all rules.
_OF_BUDGETS: dict[EvictionObstacle, type[BudgetBlocker]] = {
    EvictionObstacle.SEVERAL_BUDGETS: PodSeveralBudgets,
    EvictionObstacle.BUDGET_UNSEEN: PodBudgetUnseen,
    EvictionObstacle.BUDGET_SPENT: PodBudgetSpent,
    EvictionObstacle.BUDGET_TAKEN: PodBudgetTaken,
}


def moves(pod: Pod) -> bool:
    """Whether the pod needs another node when its node is removed. Terminating pods do not, and the node waits for pods
    that run to completion.
    """
    return stays(pod) and not pod.runs_to_completion


def stays(pod: Pod) -> bool:
    """Whether the pod stays until it is evicted or has completed."""
    return pod.counts and not pod.metadata.leaving


def is_plain(pod: Pod) -> bool:
    """Whether only a budget, or an unknown placement, could keep the pod."""
    for concerns in _CONCERNING:  # noqa: SIM110 - runs for every pod, and a generator is slow
        if concerns(pod):
            return False
    return True


def blocker(context: DrainContext, remaining: Remaining, drain_node: DrainNode, pod: Pod) -> Reason | None:
    """Why the pod is kept; None if the pod may be evicted now."""
    pod_to_evict = PodToEvict(context, remaining, drain_node, pod)
    for rule in _RULES:
        facts = rule.facts(pod_to_evict)
        if facts is not None:
            return drain_node.reason(facts)
    case = remaining.why_not(pod)
    if case is None:
        return None
    budgets = tuple([ref_of_budget(each) for each in remaining.budgets_of(pod)])
    return drain_node.reason(_OF_BUDGETS[case](pod=pod_to_evict.ref, node=drain_node.name, budgets=budgets))


# --- Nodes that nobody can empty: the kubelet has stopped, so the pods stay Terminating.
#
# Karpenter terminates the machine when the Node object is deleted. The machine of another node is not terminated by
# anybody: its pods may still run there, and after a deletion of the Node object other pods could take their volumes and
# names. So such a node is held until a person terminates the machine.


def is_karpenters(node: Node) -> bool:
    """Whether Karpenter terminates the machine when the Node object is deleted."""
    return bool(node.metadata.labels.get(names.KARPENTER_POOL))


def why_lost(context: DrainContext, drain_node: DrainNode) -> Reason | None:
    """Why a node that is not Karpenter's is held: its kubelet has stopped reporting, or a pod is stuck on the node."""
    if drain_node.is_ready or is_karpenters(drain_node.node):
        return None
    if is_silent(drain_node.node):
        return drain_node.reason(NodeLost(node=drain_node.name))
    stuck = next(iter(stuck_pods(context.fleet.pods_on(drain_node.name), drain_node, context.now)), None)
    return None if stuck is None else drain_node.reason(NodeLostWithPod(node=drain_node.name, pod=pod_ref(stuck)))


def stuck_pods(pods: Iterable[Pod], drain_node: DrainNode, now: Instant) -> Iterator[Pod]:
    """Workload pods that will stay Terminating, because their kubelet is gone."""
    return (pod for pod in pods if pod.counts and is_stuck(pod, drain_node.node, now, drain_node.longest_grace_seconds))


def held(context: DrainContext, refused: Mapping[str, Reason]) -> Iterator[Decision]:
    """Holds on lost nodes."""
    for drain_node in context.drain_nodes:
        reason = refused.get(drain_node.name)
        if reason is not None and type(reason.facts) in LOSES:
            yield context.act(drain_node, Hold(), reason)
