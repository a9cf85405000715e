"""`reconciler render`: what the policies yield, or they themselves as custom resources, and nothing else, on standard
output or in a file."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from reconciler import __version__, controller
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.files import replace_files
from reconciler.cli.options import origin_options, wants_color
from reconciler.controller.policies import own_templates
from reconciler.model.bundle import Bundle, short_content
from reconciler.model.desired import Desired, Manifest, SmartPod
from reconciler.policy.custom_resources import custom_resources
from reconciler.policy.resolve import NotChosen, chosen
from reconciler.policy.words import CODES
from reconciler.report import write
from reconciler.report.checked import CheckReport
from reconciler.sources.input_file import MOST_MANIFEST_BYTES, read_file

_CAUTION = """\
# adopt: true. Adopting it leaves the labels gpu.scheduling/* out of the template that is there; kubectl apply of this
# would put them in, and so drift every node. `reconciler plan` tells what adopting does.
"""


class RenderTarget(msgspec.Struct, frozen=True):
    """Where the output goes, and whether it may be empty."""

    file: Path | None
    allow_empty: bool


def _target(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command gets two of its options as `target`."""

    @click.option(
        "--out",
        "file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write to this file, whole or not at all: what is refused leaves the file as it is.",
    )
    @click.option(
        "--allow-empty", is_flag=True, help="Write also where the policies yield nothing, which prunes everything."
    )
    @wraps(command)
    def with_target(file: Path | None, allow_empty: bool, **others: Any) -> Any:
        return command(target=RenderTarget(file, allow_empty), **others)

    return with_target


@click.command()
@origin_options
@click.option("-e", "--environment", help="Whose manifests: base, or the name of an overlay.")
@click.option(
    "--smart-pods", is_flag=True, help="Also what asks Karpenter for machines: a pod for each of their types."
)
@click.option("--as-resources", is_flag=True, help="Instead, the policies themselves, as custom resources.")
@_target
def command(
    origins: controller.Origins, environment: str | None, smart_pods: bool, as_resources: bool, target: RenderTarget
) -> int:
    """Print the manifests that the policies in PATHS (policies) yield, as YAML, always in the same order.

    As custom resources, each policy says which bundle it is part of, so that a cluster never follows half of one: apply
    them all, and let what applies them take away what is no longer among them.
    """
    if smart_pods and as_resources:
        raise click.UsageError("--smart-pods goes with manifests: leave out --as-resources")
    bundle = controller.read(origins)
    checkup = controller.check_bundle(bundle, ", ".join(path.as_posix() for path in origins.paths), environment)
    resolved = checkup.resolved
    for notice in checkup.notices:
        click.echo(f"note: {notice}", err=True)
    if resolved.problems:
        report = CheckReport(resolved.problems, resolved.files, __version__, CODES)
        click.echo(write(report, "text", color=wants_color("auto")), err=True, nl=False)
        return ExitCode.INVALID_POLICY
    try:
        wish = chosen(resolved, environment)
    except NotChosen as error:
        raise click.UsageError(str(error)) from None
    documents = _resources(bundle, wish) if as_resources else _manifests(wish)
    documents += [_smart_pod(wish, each) for each in wish.smart_pods] if smart_pods else []
    _write("---\n".join(documents), target)
    return ExitCode.FINE


def _write(text: str, target: RenderTarget) -> None:
    """Whatever applies an empty file takes away all that the file before it held: somebody must agree to that."""
    if not text and not target.allow_empty and not (target.file and _is_empty(target.file)):
        sentence = (
            "nothing was written: the policies yield nothing, and applying that takes away all that was applied before"
        )
        raise click.ClickException(f"{sentence}; correct the paths, or agree with --allow-empty")
    if target.file:
        replace_files({target.file: text.encode()})
    else:
        click.echo(text, nl=False)


def _is_empty(file: Path) -> bool:
    """Whether a file is there that holds no object, so that a further empty one takes nothing away."""
    try:
        return all(document is None for document in yaml.safe_load_all(read_file(file, MOST_MANIFEST_BYTES)))
    except (OSError, yaml.YAMLError):
        return False


def _resources(bundle: Bundle, wish: Desired) -> list[str]:
    if pools := own_templates(bundle, wish):
        text = f"{', '.join(pools)}: custom resources can't bring a template of their own with them"
        raise click.ClickException(f"{text}; name one that reconciler brings, or have it follow the repository")
    return [
        f"# {each.declared.origin().place} at {short_content(wish.revision)}\n{_yaml(each.document)}"
        for each in custom_resources(wish)
    ]


def _manifests(wish: Desired) -> list[str]:
    return [_document(wish, manifest) for manifest in wish.manifests]


def _document(wish: Desired, manifest: Manifest) -> str:
    """YAML with a comment that says where it comes from."""
    body = _yaml(json.loads(manifest.body))
    origin, template = manifest.origin, manifest.template
    pool = wish.pool(manifest.pool)
    adopts = manifest.kind == "NodePool" and pool is not None and pool.spec.adopt
    caution = _CAUTION if adopts else ""
    source = f"by {template.file}" if template.file else "for all pools"
    return f"# {origin.place} {source} at {short_content(origin.revision)}\n{caution}{body}"


def _smart_pod(wish: Desired, pod: SmartPod) -> str:
    """One that would be made with a name, GPUs and memory of its own."""
    pool = wish.pool(pod.pool)
    place = f"{pool.origin().place} " if pool else ""
    head = f"# {place}by {pod.template.file} at {short_content(wish.revision)}, for {pod.instance_type}"
    return f"{head}\n{_yaml(json.loads(pod.body))}"


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=True, allow_unicode=True, width=1_000)
