"""All reason codes, each with the class of its facts, and the decoder of stored reasons, obstacles and reports."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from reconciler.fleet.obstacles import OBSTACLES, OtherObstacle
from reconciler.model.plan.decision import CodeFacts, Facts, Obstacle
from reconciler.model.plan.feature_report import FeatureReport
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

REPORTS = {each.report.__name__: each.report for each in FEATURES if each.report is not None}

T = TypeVar("T")


def decoded(content: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """Decoded value. Raises msgspec.MsgspecError for invalid content, for example a reason with an unknown code."""
    return msgspec.json.decode(content, type=kind, dec_hook=facts_of)


def facts_of(kind: Any, plain: Any) -> Any:
    """Decode hook of msgspec for the facts of a reason, for obstacles and for the reports of features."""
    if kind is Obstacle:
        return _obstacle_of(plain)
    if kind is FeatureReport:
        return _declared(REPORTS, plain, "report of a feature")
    if kind is not Facts:
        raise TypeError(f"no decoder for {kind}")
    code = plain.get("code") if isinstance(plain, dict) else None
    declared = REASONS.get(code) if isinstance(code, str) else None
    if declared is None:
        raise ValueError(f"{code!r} is not a reason code")
    if not issubclass(declared, CodeFacts):
        raise TypeError(declared)
    return msgspec.convert(plain, declared, dec_hook=facts_of)


def _obstacle_of(plain: Any) -> Obstacle:
    """Decode an obstacle. Earlier versions stored obstacles as text."""
    if isinstance(plain, str):
        return OtherObstacle(plain)
    obstacle: Obstacle = _declared(OBSTACLES, plain, "obstacle")
    return obstacle


def _declared(declared: Mapping[str, type[Any]], plain: Any, title: str) -> Any:
    """Decode a struct by its tag."""
    tag = plain.get("type") if isinstance(plain, dict) else None
    kind = declared.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise ValueError(f"{tag!r} is not declared as {title}")
    return msgspec.convert(plain, kind, dec_hook=facts_of)
