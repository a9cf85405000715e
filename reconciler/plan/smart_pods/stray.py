"""Smart pods that belong to nobody: of pools that are no longer declared, or whose request can't be read."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.planned.action import Delete, Ref
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.requests.request import request_of
from reconciler.plan.requests.requests import Requests
from reconciler.plan.smart_pods.reasons import ORPHANED, PLANNER, UNREADABLE


def stray(inputs: Inputs, requests: Requests) -> Iterator[Decision]:
    """Those that we made are deleted; what bears the label and not our mark is somebody else's."""
    declared = {pool.name for pool in inputs.desired.pools}
    for pod in requests.smart_pods:
        labels = pod.metadata.labels
        pool = labels.get(names.POOL, "")
        if pod.metadata.leaving or labels.get(names.MANAGED) != "true":
            continue
        subject = Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)
        request = request_of(pod)
        if request is None or request.pool != pool:
            yield Decision(PLANNER, subject, Delete(), UNREADABLE.reason(pod=subject.title), pool)
        elif pool not in declared:
            yield Decision(PLANNER, subject, Delete(), ORPHANED.reason(pod=subject.title), pool)
