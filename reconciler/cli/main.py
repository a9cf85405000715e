"""The `reconciler` command: finds a command by its name and imports only that one."""

import importlib
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.report.wording import visible_lines

# Name and first line of help, in the order of the help. The text is here so that `--help` imports no command, and
# start-up time does not depend on their number.
COMMANDS = (
    ("demo", "Show what reconciler does, in half a minute, on a simulated cluster."),
    ("validate", "Show all problems of the policies, in base and in each overlay."),
    ("render", "Print the manifests rendered from the policies."),
    ("plan", "Show what would happen to the cluster, and why. Never writes to the cluster."),
    ("apply", "Apply the policies to the cluster once, or apply a saved plan exactly."),
    ("run", "Run the controller: apply the policies to the cluster continuously."),
    ("agent", "Run beside a workload, and ask the controller for the resources that the workload needs."),
    ("simulate", "Simulate a scenario: days of cluster time in seconds, with a report."),
    ("approve", "Allow changes to exceed the limits of a guard, up to given values, until a given time."),
    ("freeze", "Stop changes to a node, a pool, or everything, for a given time."),
    ("explain", "Show why a node, pod, pool or provisioner is, or is not, acted on."),
    ("status", "Show an overview of policies and cluster."),
    ("dump", "Write policies and cluster into one file from which a plan can be repeated."),
    ("replay", "Repeat plans from a dump or from the history, and compare the results."),
    (
        "release",
        "Remove what reconciler added to a cluster: taints, labels, gates, pods, freezes. NodePools and Nodes stay.",
    ),
    ("schema", "Print the JSON Schema or the CustomResourceDefinition of a kind."),
    ("rbac", "Print the minimal rights that the policies need, to observe or to act."),
    ("import", "Write policies and templates that match the NodePools in the cluster."),
)
# Module names of commands whose names are reserved words.
MODULES = {"import": "import_pools"}


class CommandGroup(click.Group):
    """A group whose commands are modules of `reconciler.cli.commands`, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"reconciler.cli.commands.{MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = module.command
        if not command.help:  # python -OO leaves docstrings out
            command.help = dict(COMMANDS)[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS))


@click.command(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def reconciler() -> None:
    """Plans and applies policies for GPU clusters on Kubernetes."""


def _show(error: click.ClickException) -> None:
    """Prints an error with invisible characters escaped; an exception with its own report has escaped them already."""
    if type(error).show not in {click.ClickException.show, click.UsageError.show}:
        error.show()
        return
    shown = StringIO()
    error.show(shown)
    click.echo(visible_lines(shown.getvalue()), err=True, nl=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. click's exit code for wrong usage, 2, has another meaning here."""
    try:
        result = reconciler.main(arguments, prog_name="reconciler", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        with suppress(OSError):
            click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        with suppress(OSError):  # standard error may not be writable
            _show(error)
        return ExitCode.WRONG_USAGE if isinstance(error, click.UsageError) else ExitCode.FAILED
    except OSError as error:  # a file that cannot be written, for example; click handles a closed pipe
        with suppress(OSError):
            text = f"standard output could not be written: {error.strerror}"
            text = text if error.errno and not error.filename else str(error)
            click.echo(f"Error: {visible_lines(text)}", err=True)
        return ExitCode.FAILED
    return int(result or ExitCode.FINE)
