"""Every code that a decision may have and the class of its facts; reads what holds reasons."""

from typing import Any, TypeVar

import msgspec

from reconciler.fleet.obstacles import OBSTACLES, OtherObstacle
from reconciler.model.plan.decision import CodeFacts, Facts, Obstacle
from reconciler.plan import containment, release
from reconciler.plan.features import FEATURES
from reconciler.plan.guards import admission, frozen, set_aside, tally
from reconciler.plan.guards import reasons as guards
from reconciler.plan.holds import standstill
from reconciler.plan.nodes import ownership
from reconciler.plan.reasons import by_code
from reconciler.plan.status import reasons as statuses

REASONS = by_code(
    (
        *guards.REASONS,
        *frozen.REASONS,
        *admission.REASONS,
        *standstill.REASONS,
        *ownership.REASONS,
        *containment.REASONS,
        *set_aside.REASONS,
        *tally.REASONS,
        *(facts for feature in FEATURES for facts in feature.reasons),
        *release.REASONS,
        *statuses.REASONS,
    )
)

T = TypeVar("T")


def decoded(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """Raises msgspec.MsgspecError for what is no such value, a reason of an unknown code among it."""
    return msgspec.json.decode(content, type=kind, dec_hook=facts_of)


def facts_of(kind: Any, plain: Any) -> Any:
    """For a decoder of msgspec: the facts of a reason."""
    if kind is Obstacle:
        return _obstacle_of(plain)
    if kind is not Facts:
        raise TypeError(f"no reader of {kind}")
    code = plain.get("code") if isinstance(plain, dict) else None
    declared = REASONS.get(code) if isinstance(code, str) else None
    if declared is None:
        raise ValueError(f"{code!r} is no code of a reason")
    if not issubclass(declared, CodeFacts):
        raise TypeError(declared)
    return msgspec.convert(plain, declared, dec_hook=facts_of)


def _obstacle_of(plain: Any) -> Obstacle:
    """An earlier version stored words."""
    if isinstance(plain, str):
        return OtherObstacle(plain)
    kind = plain.get("type") if isinstance(plain, dict) else None
    declared = OBSTACLES.get(kind) if isinstance(kind, str) else None
    if declared is None:
        raise ValueError(f"{kind!r} is no obstacle")
    return msgspec.convert(plain, declared, dec_hook=facts_of)
