"""Nodes that nobody can empty: their kubelet is gone, so that their pods stay Terminating.

Karpenter ends the machine of such a node when the Node object is deleted. Of a node that is not Karpenter's nobody ends
the machine: its pods may still run there, and to delete the Node object would let others take their volumes and names.
Such a node is held until a person ends the machine.
"""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.stuck_pods import is_silent, is_stuck
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.drain.codes.eligibility import LOSES, NodeLost, NodeLostWithPod
from reconciler.plan.drain.context import DrainContext, DrainNode


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
