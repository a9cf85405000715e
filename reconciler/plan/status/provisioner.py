"""What a NodeProvisioner is told beside how it stands: the size of its pool, and what keeps it from the target."""

import msgspec

from reconciler.model.plan.size_evaluation import LimitKind, SizeEvaluation
from reconciler.plan.sentences import sentence
from reconciler.plan.status.body import LONGEST
from reconciler.plan.status.conditions import FOLLOWED, Condition, ObjectCondition

_LIMITS: tuple[tuple[LimitKind, str], ...] = (
    ("ScaleUpLimited", "nothing keeps it from what pods need"),
    ("ScaleDownHeld", "nothing keeps its empty nodes"),
)
_NONE = "NotLimited"


def sized(standing: ObjectCondition, evaluated: SizeEvaluation | None) -> ObjectCondition:
    """The same standing with the figures; one that has nothing else to say says why the pool has its size."""
    if evaluated is None:
        return standing
    why = sentence(evaluated.reason)
    report: tuple[tuple[str, str | int], ...] = (
        ("currentSize", evaluated.size),
        ("targetSize", evaluated.target),
        ("tainted", evaluated.tainted),
        ("busy", evaluated.use.busy_nodes),
        ("gpusUsed", evaluated.use.gpus_used),
        ("gpusTotal", evaluated.use.gpus_total),
        ("reason", why[:LONGEST]),
    )
    if standing == FOLLOWED:
        standing = msgspec.structs.replace(standing, reason=evaluated.reason.code, message=why)
    further = tuple(_condition(evaluated, kind, otherwise) for kind, otherwise in _LIMITS)
    return msgspec.structs.replace(standing, further=further, report=report)


def _condition(evaluated: SizeEvaluation, kind: LimitKind, otherwise: str) -> Condition:
    found = next((each.reason for each in evaluated.limits if each.kind == kind), None)
    if found is None:
        return Condition(kind, False, _NONE, otherwise)
    return Condition(kind, True, found.code, sentence(found))
