"""What a report says it is about, from what was asked and seen."""

from reconciler import __version__
from reconciler.plan.kept.scene import Scene
from reconciler.report.setting import Setting
from reconciler.wiring import Sight


def setting_of(sight: Sight, head: Scene, base: Scene | None = None) -> Setting:
    """Policies, cluster, time and version."""
    inputs = head.inputs
    return Setting(
        environment=inputs.desired.environment,
        revision=inputs.desired.revision,
        cluster=sight.name,
        cluster_uid=inputs.observed.cluster_uid,
        seen_at=inputs.observed.seen_at,
        now=inputs.now,
        tool_version=__version__,
        base_revision=base.inputs.desired.revision if base else "",
    )
