"""`reconciler freeze`: nothing is done to a node, a pool, what a guard guards, or anything, until then."""

from typing import Any

import click
import msgspec

from reconciler import controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import LastingType, answered, context_option
from reconciler.kube.cluster import NotWritten
from reconciler.model.fields import LONGEST_LABEL_VALUE, LONGEST_NAME, why_no_name
from reconciler.model.instant import Instant, timestamp
from reconciler.model.quantity import Duration

# What can be frozen, and the most characters that its name has. The name of a pool becomes the value of a label.
_KINDS = {"node": LONGEST_NAME, "pool": LONGEST_LABEL_VALUE, "guard": LONGEST_NAME}


class FreezeTerms(msgspec.Struct, frozen=True):
    """How long, and why; or that a freeze ends."""

    length: Duration | None
    lift: bool
    reason: str

    def until(self) -> str:
        """In whole seconds; nothing where it ends. Raises UsageError."""
        if self.lift == (self.length is not None) or (self.lift and self.reason):
            raise click.UsageError("say how long, as in --for 4h; or --lift a freeze, and nothing else")
        if self.length is None:
            return ""
        return timestamp(Instant(-(-(controller.current_instant() + self.length.milliseconds) // 1000) * 1000))


@click.command()
@click.argument("subject")
@click.option("--for", "length", type=LastingType(), help="How long: 30m, 4h.")
@click.option("--reason", default="", help="Why, for whoever asks.")
@click.option("--lift", is_flag=True, help="Instead, end the freeze now.")
@context_option
def command(subject: str, place: controller.ClusterPlace, **terms: Any) -> int:
    """Freeze SUBJECT: node/NAME, pool/NAME, guard/NAME for all that it guards, or all. Only untainting and releasing go
    on there then. Karpenter does not mind it: it leaves alone what karpenter.sh/do-not-disrupt says so of.

    What freezes all is written on the namespace of the controller: --namespace names it, as it does for run."""
    kind, name = _meant(subject, place.namespace)
    until = FreezeTerms(**terms).until()
    try:
        written = answered(lambda: controller.freeze(place, controller.Freezing(kind, name, until, terms["reason"])))
    except NotWritten as error:
        raise click.ClickException(str(error)) from None
    where = ", ".join(written.titles)
    if written.note:
        click.echo(f"note: {written.note}", err=True)
    if until:
        click.echo(f"{subject} is frozen until {until} ({where}): only untainting and releasing go on there")
    else:
        click.echo(f"{subject} is not frozen any more ({where})")
    return ExitCode.FINE


def _meant(subject: str, namespace: str) -> tuple[str, str]:
    if subject == "all":
        return "all", namespace
    kind, slash, name = subject.partition("/")
    if kind not in _KINDS or not slash:
        raise click.UsageError(f'"{subject}" names nothing to freeze; write node/NAME, pool/NAME, guard/NAME or all')
    if why := why_no_name(name, _KINDS[kind]):
        raise click.UsageError(f'"{name}" is no name of a {kind}: write {why}')
    return kind, name
