"""`reconciler render`: the manifests that the policies yield, and nothing else, on standard output."""

import json

import click
import yaml

from reconciler import __version__, wiring
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.origins import origin_options
from reconciler.cli.output import wants_color
from reconciler.model.desired import Desired, Manifest
from reconciler.policy.codes import CODES
from reconciler.policy.environments import NotChosen, chosen
from reconciler.report import write
from reconciler.report.checked import Checked

_CAUTION = """\
# adopt: true. Adopting it leaves the labels gpu.scheduling/* out of the template that is there; kubectl apply of this
# would put them in, and so drift every node. `reconciler plan` tells what adopting does.
"""


@click.command()
@origin_options
@click.option("-e", "--environment", help="Whose manifests: base, or the name of an overlay.")
def command(origins: wiring.Origins, environment: str | None) -> int:
    """Print the manifests that the policies in PATHS (policies) yield, as YAML, always in the same order."""
    checkup = wiring.check(origins)
    resolved = checkup.resolved
    for notice in checkup.notices:
        click.echo(f"note: {notice}", err=True)
    if resolved.problems:
        told = Checked(resolved.problems, resolved.files, __version__, CODES)
        click.echo(write(told, "text", color=wants_color("auto")), err=True, nl=False)
        return ExitCode.INVALID_POLICY
    try:
        wish = chosen(resolved, environment)
    except NotChosen as wrong:
        raise click.UsageError(str(wrong)) from None
    click.echo("---\n".join(_document(wish, manifest) for manifest in wish.manifests), nl=False)
    return ExitCode.FINE


def _document(wish: Desired, manifest: Manifest) -> str:
    """YAML with a comment that says where it comes from."""
    body = yaml.safe_dump(json.loads(manifest.body), sort_keys=True, allow_unicode=True, width=1_000)
    origin, template = manifest.origin, manifest.template
    pool = wish.pool(manifest.pool)
    adopts = manifest.kind == "NodePool" and pool is not None and pool.spec.adopt
    caution = _CAUTION if adopts else ""
    return f"# {origin.file}:{origin.line} by {template.file} at {origin.revision}\n{caution}{body}"
