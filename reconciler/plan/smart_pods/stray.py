"""Smart pods that belong to nobody: of pools that are no longer declared, or that do not prove to be ours."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.action import Delete
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.refs import pod_ref
from reconciler.plan.capacity.identity import request_by_name
from reconciler.plan.draft import Draft
from reconciler.plan.smart_pods.reasons import PLANNER, SmartPodOrphaned, SmartPodUnreadable


def stray(inputs: Inputs, draft: Draft) -> Iterator[Decision]:
    """In the namespaces of smart pods: those that bear our mark are deleted; others are somebody else's."""
    declared = {pool.name for pool in inputs.desired.pools}
    for pod in draft.requests.smart_pods:
        labels = pod.metadata.labels
        pool = labels.get(names.POOL, "")
        if pod.metadata.leaving or labels.get(names.MANAGED) != "true":
            continue
        subject = pod_ref(pod)
        if pool not in declared and request_by_name(pod) is not None:
            yield Decision(PLANNER, subject, Delete(), Reason(SmartPodOrphaned(subject)), pool)
        elif draft.identity.request_of(pod) is None:
            yield Decision(PLANNER, subject, Delete(), Reason(SmartPodUnreadable(subject)), pool)
