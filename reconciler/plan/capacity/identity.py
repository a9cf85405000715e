"""Which pods are our own smart pods, and which only look like them.

Anybody who may create pods in a namespace writes all labels and annotations of these pods, and chooses their names. So
labels alone prove nothing: a smart pod counts only in the namespace that its GpuPool names for smart pods, where nobody
but us is to have rights to create pods; and only under the name that follows from the request in its annotation, since
that is the name under which we would have made it. A pod elsewhere that bears our labels is a pod like any other.
"""

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.parsers import json_value
from reconciler.model.policy.gpu_pool import SmartPods
from reconciler.plan.capacity.request import COMPONENT, CapacityRequest


class SmartPodIdentity:
    """By the pools as they are declared."""

    def __init__(self, desired: Desired) -> None:
        self._namespace_of = {pool.name: pool.spec.smart_pods.namespace for pool in desired.pools}
        # Smart pods of undeclared pools are where pools have theirs unless they say otherwise. An older version
        # had them in the namespace of the controller, where nobody else has rights either.
        self._namespaces = frozenset({SmartPods().namespace, names.OWN_NAMESPACE, *self._namespace_of.values()})

    def is_smart(self, pod: Pod) -> bool:
        """Whether the pod was made as a smart pod, readable or not: no workload of anybody."""
        return is_labelled_as_smart(pod) and pod.metadata.namespace in self._namespaces

    def request_of(self, pod: Pod) -> CapacityRequest | None:
        """What the smart pod asks for; None for a pod that does not prove to be a smart pod of a declared pool."""
        if not self.is_smart(pod):
            return None
        request = request_by_name(pod)
        if request is None or request.pool not in self._namespace_of:
            return None
        return request if pod.metadata.namespace in {self._namespace_of[request.pool], names.OWN_NAMESPACE} else None


def is_labelled_as_smart(pod: Pod) -> bool:
    """Whether the pod bears the label of smart pods, whoever wrote the label."""
    return pod.metadata.labels.get(names.COMPONENT) == COMPONENT


def request_by_name(pod: Pod) -> CapacityRequest | None:
    """The request on a pod that bears all labels of a smart pod and the name that follows from the request; None for
    other pods. Of the namespace nothing is said."""
    labels = pod.metadata.labels
    if not is_labelled_as_smart(pod) or labels.get(names.MANAGED) != "true":
        return None
    request = json_value(pod.metadata.annotations.original_request, CapacityRequest)
    if request is None or request.pool != labels.get(names.POOL) or request.name != pod.name:
        return None
    return request
