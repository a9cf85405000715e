"""Why something is released, or stays."""

from reconciler.model.plan.action import Ref
from reconciler.model.plan.reason import CodeFacts


class TaintReleased(CodeFacts, frozen=True):
    template = "{object} bears the taint {key}:{effect}, which is ours: it is taken off."

    object: Ref
    key: str
    effect: str


class LabelsReleased(CodeFacts, frozen=True):
    template = "{object} bears labels of ours ({keys}): they are taken off."

    object: Ref
    keys: tuple[str, ...]


class FreezeReleased(CodeFacts, frozen=True):
    template = "{object} is frozen, which says nothing without us: that is taken off."

    object: Ref


class ObjectReleased(CodeFacts, frozen=True):
    template = "{object} was made for a pool: it is deleted."

    object: Ref


class ReleasedWhenUnused(CodeFacts, frozen=True):
    template = "{object} was made for a pool, and {pods} pods name it: it stays, as others of theirs need it."

    object: Ref
    pods: int


REASONS = (
    TaintReleased,
    LabelsReleased,
    FreezeReleased,
    ObjectReleased,
    ReleasedWhenUnused,
)
