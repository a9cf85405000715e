"""`reconciler schema`: prints schemas of the kinds, for editors and API servers."""

from pathlib import Path

import click

from reconciler.cli.files import write_all
from reconciler.model.bundle import Text
from reconciler.policy.json_schema import combined_schema_of, overlay_schema_of, schema_of
from reconciler.policy.rules.kinds import KINDS, POLICY_KINDS
from reconciler.policy.shape import Kind
from reconciler.policy.words import choice, did_you_mean
from reconciler.report.generated import published_files
from reconciler.schema.crd import crd_of
from reconciler.schema.generated import as_json, as_yaml, generated_files
from reconciler.simulate.scenario.reading import scenario_files


@click.command()
@click.argument("kind", required=False)
@click.option(
    "--overlay", is_flag=True, help="Print the schema of an overlay: no field is required, null restores a default."
)
@click.option("--crd", is_flag=True, help="Print the CustomResourceDefinition instead, as YAML.")
@click.option(
    "--write",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all schemas, definitions, reference pages and RBAC below this folder, and print the file names.",
)
def command(kind: str | None, overlay: bool, crd: bool, folder: Path | None) -> None:
    """Print the JSON Schema or the CustomResourceDefinition of a KIND; without KIND, of all kinds."""
    if overlay and crd:
        raise click.UsageError("--overlay and --crd cannot be combined")
    if folder is not None:
        if kind or overlay or crd:
            raise click.UsageError("--write writes everything: remove the other options")
        _write(folder)
        return
    chosen = _chosen(kind) if kind else None
    if crd:
        manifests = [as_yaml(crd_of(each)) for each in ([chosen] if chosen else KINDS)]
        click.echo("---\n".join(manifests), nl=False)
    else:
        click.echo(_schema(chosen, overlay), nl=False)


def _chosen(name: str) -> Kind:
    for kind in KINDS:
        if kind.name.casefold() == name.casefold():
            return kind
    names = tuple(kind.name for kind in KINDS)
    remedy = did_you_mean(name, names) or f"; write {choice(names)}"
    raise click.UsageError(f'there is no kind "{name}"{remedy}')


def _schema(kind: Kind | None, overlay: bool) -> str:
    if kind is None:
        return as_json(combined_schema_of(POLICY_KINDS, overlay))
    return as_json(overlay_schema_of(kind) if overlay else schema_of(kind))


def _write(folder: Path) -> None:
    contents = generated_files() | published_files() | scenario_files()
    files = [Text(name, content.encode()) for name, content in sorted(contents.items())]
    try:
        write_all(folder, files, overwrite=True)
    except OSError as error:
        raise click.ClickException(f"nothing was written: {error}") from None
    for file in files:
        click.echo(file.path)
