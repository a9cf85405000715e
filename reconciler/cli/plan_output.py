"""Output of commands that plan: the header of a report, a saved plan, and the exit code."""

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
from reconciler.cli.options import LastingType
from reconciler.controller import ClusterView, Origins
from reconciler.model.instant import later, timestamp
from reconciler.model.quantity import Duration
from reconciler.plan.files import saved_plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.files.saved_plan import WrittenPlan
from reconciler.report.header import ReportHeader
from reconciler.report.plans.planned import Planned


class PlanOutput(msgspec.Struct, frozen=True):
    """Where it is saved, if anywhere; how long it may be applied; and whether changes show in the exit code."""

    out: Path | None
    valid_for: Duration
    detailed_exitcode: bool

    def written(self, head: PlanningResult) -> WrittenPlan | None:
        """The file, which the report names by its digest; None where none is asked for."""
        if self.out is None:
            return None
        return saved_plan.write(head, later(head.inputs.now, self.valid_for.milliseconds))

    def save(self, head: PlanningResult, written: WrittenPlan | None) -> None:
        """Tells what is in the file, and what is not."""
        if self.out is None or written is None:
            return
        replace_files({self.out: written.content}, mode=PRIVATE)
        actions = "1 action" if written.actions == 1 else f"{written.actions} actions"
        click.echo(f"{self.out}: {actions}, to be applied before {timestamp(written.expires_at)}", err=True)
        click.echo(f"apply it with: reconciler apply {self.out} --digest {written.digest}", err=True)
        if held := sum(each.held for each in head.plan.guarded):
            text = "1 decision that a guard holds is" if held == 1 else f"{held} decisions that guards hold are"
            click.echo(f"note: {text} not in it: plan again once that is approved", err=True)

    def code(self, planned: Planned) -> ExitCode:
        """A blocked hold comes before something to be done."""
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
        help="Save it there, for `reconciler apply FILE` to carry out exactly, or to refuse where something moved.",
    )
    valid = click.option(
        "--valid-for", type=LastingType(), default="24h", show_default=True, help="How long it may be applied."
    )
    detailed = click.option("--detailed-exitcode", is_flag=True, help="Exit with 2 where something is to be done.")
    return file(valid(detailed(with_ending)))


# --- What a report says it is about, from what was asked and seen.

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
