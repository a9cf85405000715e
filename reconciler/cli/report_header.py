"""What a report says it is about, from what was asked and seen."""

import shlex

from reconciler import __version__
from reconciler.controller import ClusterView, Origins
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.report.setting import ReportHeader

_POLICIES = "policies"  # where commands look without options


def setting_of(
    cluster_view: ClusterView, head: PlanningResult, base: PlanningResult | None = None, origins: Origins | None = None
) -> ReportHeader:
    """Policies, cluster, time and version."""
    inputs = head.inputs
    return ReportHeader(
        environment=inputs.desired.environment,
        revision=inputs.desired.revision,
        cluster=cluster_view.name,
        cluster_uid=inputs.observed.cluster_uid,
        seen_at=inputs.observed.seen_at,
        now=inputs.now,
        tool_version=__version__,
        base_revision=base.inputs.desired.revision if base else "",
        is_claimed=inputs.desired.is_claimed,
        policies_from=None if origins is None else _options(origins, inputs.desired.revision),
    )


def _options(origins: Origins, revision: str) -> str:
    """Such as name the same policies to another command."""
    if origins.resources:
        return "--resources"
    paths = [each.as_posix() for each in origins.paths]
    words = [] if paths == [_POLICIES] else [f"--policies {shlex.quote(each)}" for each in paths]
    if origins.repository:
        words = [f"--repo {shlex.quote(origins.repository)}", f"--revision {shlex.quote(revision)}", *words]
    return " ".join(words)
