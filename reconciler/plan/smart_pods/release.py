"""Release of smart pods: removes gates from waiting pods."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.decision import CodeFacts, Decision, Ref, Ungate
from reconciler.plan.feature.release_context import ReleaseContext, made_by_us, released


class GateReleased(CodeFacts, frozen=True):
    template = "{object} has the gate {gate}, which only reconciler removes: the gate is removed."

    object: Ref
    gate: str


def gates(context: ReleaseContext) -> Iterator[Decision]:
    for pod in context.observed.pods:
        metadata = pod.metadata
        if metadata.leaving or not context.is_of_pool(metadata.labels, pod.node) or made_by_us(pod):
            continue
        for gate in pod.spec.scheduling_gates:
            if gate.name.startswith(names.OURS):
                subject = Ref("Pod", metadata.namespace, metadata.name, metadata.uid)
                why = GateReleased(object=subject, gate=gate.name)
                act = Ungate(gate=gate.name)
                yield released(subject, act, why, metadata.labels.get(names.POOL, ""))
