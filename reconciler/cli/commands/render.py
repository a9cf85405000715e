"""`reconciler render`: prints the rendered manifests, or the policies as custom resources, to standard output or a
file."""

import json
from pathlib import Path
from typing import Any

import click
import yaml

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import replace_files
from reconciler.cli.options import answered, origin_options, wants_color
from reconciler.controller.policies import Origins, check_bundle, own_templates, read
from reconciler.model.bundle import Bundle, short_content
from reconciler.model.desired import Desired, Manifest, SmartPod
from reconciler.policy.custom_resources import custom_resources
from reconciler.policy.resolve import chosen
from reconciler.policy.words import CODES
from reconciler.report import write
from reconciler.report.checked import CheckReport
from reconciler.sources.input_file import MOST_MANIFEST_BYTES, read_file

_CAUTION = """\
# adopt: true. Adopting keeps the labels gpu.scheduling/* out of the existing template. kubectl apply of this file
# would add them and make every node drift. `reconciler plan` shows the effect of adopting.
"""


@click.command()
@origin_options
@click.option("-e", "--environment", help="Environment to render: base, or the name of an overlay.")
@click.option(
    "--smart-pods",
    is_flag=True,
    help="Also print smart pods, which request nodes from Karpenter: one per instance type.",
)
@click.option("--as-resources", is_flag=True, help="Print the policies as custom resources instead.")
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file atomically: on failure the file does not change.",
)
@click.option(
    "--allow-empty",
    is_flag=True,
    help="Write the output also if it is empty. A tool that applies an empty output with pruning deletes all "
    "NodePools.",
)
def command(origins: Origins, environment: str | None, file: Path | None, **asked: bool) -> int:
    """Print the manifests rendered from the policies in PATHS (default: the folder policies), as YAML, in stable
    order.

    With --as-resources, the policies are printed as custom resources. Each of them contains the digest of the whole
    set, and the controller follows only a complete set. Apply all these objects, and let the tool that applies them
    delete the objects that are no longer printed.
    """
    if asked["smart_pods"] and asked["as_resources"]:
        raise click.UsageError("--smart-pods cannot be combined with --as-resources")
    bundle = read(origins)
    checkup = check_bundle(bundle, ", ".join(path.as_posix() for path in origins.paths), environment)
    resolved = checkup.resolved
    for notice in checkup.notices:
        click.echo(f"note: {notice}", err=True)
    if resolved.problems:
        report = CheckReport(resolved.problems, resolved.files, __version__, CODES)
        click.echo(write(report, "text", color=wants_color("auto")), err=True, nl=False)
        return ExitCode.INVALID_POLICY
    wish = answered(lambda: chosen(resolved, environment))
    documents = (
        _resources(bundle, wish) if asked["as_resources"] else [_document(wish, each) for each in wish.manifests]
    )
    documents += [_smart_pod(wish, each) for each in wish.smart_pods] if asked["smart_pods"] else []
    _write("---\n".join(documents), file, allow_empty=asked["allow_empty"])
    return ExitCode.FINE


def _write(text: str, file: Path | None, *, allow_empty: bool) -> None:
    """Writes the output. Applying an empty file deletes everything applied before, so an empty output needs
    --allow-empty."""
    if not text and not allow_empty and not (file and _is_empty(file)):
        sentence = "nothing was written: policies render nothing, and applying that deletes everything applied before"
        raise click.ClickException(f"{sentence}; correct the paths, or use --allow-empty")
    if file:
        replace_files({file: text.encode()})
    else:
        click.echo(text, nl=False)


def _is_empty(file: Path) -> bool:
    """Whether the existing file contains no object, so that another empty file deletes nothing."""
    try:
        return all(document is None for document in yaml.safe_load_all(read_file(file, MOST_MANIFEST_BYTES)))
    except (OSError, yaml.YAMLError):
        return False


def _resources(bundle: Bundle, wish: Desired) -> list[str]:
    if pools := own_templates(bundle, wish):
        text = f"{', '.join(pools)}: custom resources cannot include their own templates"
        raise click.ClickException(f"{text}; use a template of reconciler, or let the controller follow the repository")
    return [
        f"# {declared.origin().place} at {short_content(wish.revision)}\n{_yaml(document)}"
        for declared, document in zip(wish.declared, custom_resources(wish), strict=True)
    ]


def _document(wish: Desired, manifest: Manifest) -> str:
    """YAML with a comment that names its origin."""
    body = _yaml(json.loads(manifest.body))
    origin, template = manifest.origin, manifest.template
    pool = wish.pool(manifest.pool)
    adopts = manifest.kind == "NodePool" and pool is not None and pool.spec.adopt
    caution = _CAUTION if adopts else ""
    source = f"by {template.file}" if template.file else "for all pools"
    return f"# {origin.place} {source} at {short_content(origin.revision)}\n{caution}{body}"


def _smart_pod(wish: Desired, pod: SmartPod) -> str:
    """A sample smart pod; real ones get their own name, GPUs and memory."""
    pool = wish.pool(pod.pool)
    place = f"{pool.origin().place} " if pool else ""
    head = f"# {place}by {pod.template.file} at {short_content(wish.revision)}, for {pod.instance_type}"
    return f"{head}\n{_yaml(json.loads(pod.body))}"


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=True, allow_unicode=True, width=1_000)
