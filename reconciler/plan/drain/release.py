"""Release of drains: removes notices from pods."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.decision import Annotate, CodeFacts, Decision, Ref
from reconciler.plan.feature.release_context import ReleaseContext, released


class EvictionReleased(CodeFacts, frozen=True):
    template = "{object} has the annotation {key} and is not evicted: the annotation is removed."

    object: Ref
    key: str


def eviction_times(context: ReleaseContext) -> Iterator[Decision]:
    """Removal of the notice from pods that reconciler does not evict any more."""
    for pod in context.observed.pods:
        metadata = pod.metadata
        if metadata.annotations.evict_at and not metadata.leaving and context.is_of_pool(metadata.labels, pod.node):
            subject = Ref("Pod", metadata.namespace, metadata.name, metadata.uid)
            act = Annotate(annotations=((names.EVICT_AT, None),))
            why = EvictionReleased(object=subject, key=names.EVICT_AT)
            yield released(subject, act, why, metadata.labels.get(names.POOL, ""))
