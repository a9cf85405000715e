"""References to nodes and pods that were observed."""

from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Ref


def node_ref(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def pod_ref(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)
