"""What the pressure feature reports in a plan: nodes under pressure, and migrations in progress."""

import msgspec

from reconciler.model.plan.feature_report import FeatureReport
from reconciler.plan.pressure.reasons import PressedResource


class PressedNode(msgspec.Struct, frozen=True, gc=False):
    """A node under pressure, whether or not migrations account for the pressure."""

    node: str
    pool: str
    pressed: tuple[PressedResource, ...]
    migrating: int = 0  # pods that are leaving after this plan


class PressureReport(msgspec.Struct, FeatureReport, frozen=True, tag=True):
    nodes: tuple[PressedNode, ...] = ()  # by name
    migrating: dict[str, int] = {}  # pods that are leaving because of pressure, by pool
