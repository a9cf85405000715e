"""Output of commands that plan: report header, saved plan, and exit code."""

import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import PRIVATE, replace_files
from reconciler.cli.options import DURATION
from reconciler.controller.cluster import ClusterView
from reconciler.controller.policies import Origins
from reconciler.model.instant import later, timestamp
from reconciler.model.quantity import Duration
from reconciler.plan.files import saved_plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.files.saved_plan import WrittenPlan
from reconciler.report.header import ReportHeader
from reconciler.report.plans.planned import Planned


class PlanOutput(msgspec.Struct, frozen=True):
    """File of the saved plan, if any; its validity; and whether changes set the exit code."""

    out: Path | None
    valid_for: Duration
    detailed_exitcode: bool

    def written(self, head: PlanningResult) -> WrittenPlan | None:
        """The saved plan, whose digest the report prints; None without --out."""
        if self.out is None:
            return None
        return saved_plan.write(head, later(head.inputs.now, self.valid_for.milliseconds))

    def save(self, head: PlanningResult, written: WrittenPlan | None) -> None:
        """Writes the file, and prints what it contains and what it leaves out."""
        if self.out is None or written is None:
            return
        replace_files({self.out: written.content}, mode=PRIVATE)
        actions = "1 action" if written.actions == 1 else f"{written.actions} actions"
        click.echo(f"{self.out}: {actions}, valid until {timestamp(written.expires_at)}", err=True)
        click.echo(f"apply it with: reconciler apply {self.out} --digest {written.digest}", err=True)
        if held := sum(each.held for each in head.plan.guarded):
            text = "1 decision held by a guard is" if held == 1 else f"{held} decisions held by guards are"
            click.echo(f"note: {text} not in the file: create a new plan after approval", err=True)

    def code(self, planned: Planned) -> ExitCode:
        """Exit code of a plan. A blocked hold takes precedence over changes."""
        if planned.blocked:
            return ExitCode.BLOCKED
        acts = any(not each.held and not each.decision.would for each in planned.decision_texts)
        return ExitCode.CHANGES_EXIST if self.detailed_exitcode and acts else ExitCode.FINE


def ending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The three options; the command gets them as `ending`."""

    @wraps(command)
    def with_ending(out: Path | None, valid_for: Duration, detailed_exitcode: bool, **others: Any) -> Any:
        return command(ending=PlanOutput(out, valid_for, detailed_exitcode), **others)

    file = click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Save the plan. `reconciler apply FILE` applies exactly this plan, or refuses it if it is out of date.",
    )
    valid = click.option(
        "--valid-for", type=DURATION, default="24h", show_default=True, help="How long the plan is valid."
    )
    detailed = click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 if there are changes.")
    return file(valid(detailed(with_ending)))


# --- Report header, from the options and the cluster.

_POLICIES = "policies"  # default path of policies


def setting_of(
    cluster_view: ClusterView, head: PlanningResult, base: PlanningResult | None = None, origins: Origins | None = None
) -> ReportHeader:
    """The report header: policies, cluster, time and version."""
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
    """Options that name the same policies to another command."""
    if origins.resources:
        return "--resources"
    paths = [each.as_posix() for each in origins.paths]
    words = [] if paths == [_POLICIES] else [f"--policies {shlex.quote(each)}" for each in paths]
    if origins.repository:
        words = [f"--repo {shlex.quote(origins.repository)}", f"--revision {shlex.quote(revision)}", *words]
    return " ".join(words)
