"""`reconciler freeze`: stops changes to a node, a pool, everything a guard covers, or everything, for a time."""

import click

from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import DURATION, answered, context_option
from reconciler.controller.cluster import ClusterPlace, current_instant
from reconciler.controller.user_writes import freeze
from reconciler.kube.cluster import NotWritten
from reconciler.model.fields import LONGEST_LABEL_VALUE, LONGEST_NAME, why_no_name
from reconciler.model.instant import Instant, timestamp
from reconciler.model.quantity import Duration

# What can be frozen, and the maximum length of its name. A pool's name becomes a label value.
_KINDS = {"node": LONGEST_NAME, "pool": LONGEST_LABEL_VALUE, "guard": LONGEST_NAME}


@click.command()
@click.argument("subject")
@click.option("--for", "length", type=DURATION, help="Duration, such as 30m or 4h.")
@click.option("--reason", default="", help="Reason, recorded with the freeze.")
@click.option("--lift", is_flag=True, help="End the freeze now instead.")
@context_option
def command(subject: str, place: ClusterPlace, length: Duration | None, reason: str, lift: bool) -> int:
    """Freeze SUBJECT: node/NAME, pool/NAME, guard/NAME for everything that the guard covers, or all. While SUBJECT is
    frozen, the controller only removes its own taints, gates, Leases and eviction times from it. A freeze does not
    stop Karpenter: for that, annotate nodes or pods with karpenter.sh/do-not-disrupt.

    `freeze all` writes an annotation to the namespace of the controller. Give this namespace with --namespace, as for
    `reconciler run`.
    """
    kind, name = _meant(subject, place.namespace)
    if lift == (length is not None) or (lift and reason):
        raise click.UsageError(
            "add --for with a duration, such as --for 4h; or end a freeze with --lift, without --for and --reason"
        )
    until = _end_of(length) if length is not None else ""
    written = answered(lambda: freeze(place, kind, name, until, reason), NotWritten)
    where = ", ".join(written.titles)
    if written.note:
        click.echo(f"note: {written.note}", err=True)
    if until:
        rest = "the controller only removes its own taints, gates, Leases and eviction times"
        click.echo(f"{subject} is frozen until {until} ({where}): {rest}")
    else:
        click.echo(f"{subject} is no longer frozen ({where})")
    return ExitCode.FINE


def _end_of(length: Duration) -> str:
    """In whole seconds."""
    return timestamp(Instant(-(-(current_instant() + length.milliseconds) // 1000) * 1000))


def _meant(subject: str, namespace: str) -> tuple[str, str]:
    if subject == "all":
        return "all", namespace
    kind, slash, name = subject.partition("/")
    if kind not in _KINDS or not slash:
        raise click.UsageError(f'"{subject}" cannot be frozen; write node/NAME, pool/NAME, guard/NAME or all')
    if why := why_no_name(name, _KINDS[kind]):
        raise click.UsageError(f'"{name}" is not a valid name of a {kind}: write {why}')
    return kind, name
