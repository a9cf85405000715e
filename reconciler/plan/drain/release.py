"""What drains leave on a cluster: the times that pods were told to save their work by."""

from collections.abc import Iterator

from reconciler.model import names
from reconciler.model.plan.decision import Annotate, CodeFacts, Decision, Ref
from reconciler.plan.feature.release_context import ReleaseContext, released


class EvictionReleased(CodeFacts, frozen=True):
    template = "{object} carries {key}, and is not evicted by us: that is taken off."

    object: Ref
    key: str


def eviction_times(context: ReleaseContext) -> Iterator[Decision]:
    """Pods that were told to save their work, and are not evicted by us."""
    for pod in context.observed.pods:
        metadata = pod.metadata
        if metadata.annotations.evict_at and not metadata.leaving and context.is_of_pool(metadata.labels, pod.node):
            subject = Ref("Pod", metadata.namespace, metadata.name, metadata.uid)
            act = Annotate(annotations=((names.EVICT_AT, None),))
            why = EvictionReleased(object=subject, key=names.EVICT_AT)
            yield released(subject, act, why, metadata.labels.get(names.POOL, ""))
