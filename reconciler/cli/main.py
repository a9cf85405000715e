"""The `reconciler` command: finds a command by its name and imports only that one."""

import importlib
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO

import click

from reconciler import __version__
from reconciler.cli.exit_codes import ExitCode
from reconciler.report.wording import visible_lines

# Name and first line of help, in the order of the help. The text stands here so that `--help` imports no command:
# start-up is then the same however many there are.
COMMANDS = (
    ("demo", "See what it does, in half a minute and on an imagined cluster."),
    ("validate", "Tell every problem of the policies, in base and in each overlay."),
    ("render", "Print the manifests that the policies yield."),
    ("plan", "Tell what would happen to the cluster, and why. Nothing is ever written."),
    ("apply", "Make the cluster follow the policies, once; or carry out exactly a saved plan."),
    ("run", "Make the cluster follow the policies, until told to stop: the controller."),
    ("simulate", "Play a scenario through on an imagined cluster: days in seconds, with a report."),
    ("approve", "Let one revision pass a guard, up to ceilings, for a time."),
    ("freeze", "Do nothing to a node, a pool, or anything at all, for a time."),
    ("explain", "Tell why a node, pod, pool or provisioner is, or is not, being acted on."),
    ("status", "Tell how the policies and the cluster stand, at one look."),
    ("dump", "Write policies and cluster into one file that any plan can be made from again."),
    ("replay", "Plan again from a dump or from the history, and tell whether the same plan comes of it."),
    ("release", "Take everything of ours off a cluster; NodePools and Nodes stay."),
    ("schema", "Print the JSON Schema or the CustomResourceDefinition of a kind."),
    ("rbac", "Print the least rights that the policies need, to look or to write."),
    ("import", "Write policies and templates that say what NodePools in the cluster are."),
)
# Where a command is called what no module can be.
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
    """What quotes words of others is made visible; an exception with a report of its own has seen to that."""
    if type(error).show not in {click.ClickException.show, click.UsageError.show}:
        error.show()
        return
    shown = StringIO()
    error.show(shown)
    click.echo(visible_lines(shown.getvalue()), err=True, nl=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code; click's own code for wrong usage, 2, means something else here."""
    try:
        result = reconciler.main(arguments, prog_name="reconciler", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        with suppress(OSError):
            click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        with suppress(OSError):  # there may be no room where it would be told
            _show(error)
        return ExitCode.WRONG_USAGE if isinstance(error, click.UsageError) else ExitCode.FAILED
    except OSError as error:  # a file that can't be written, say; a closed pipe click itself minds
        with suppress(OSError):
            text = f"standard output could not be written: {error.strerror}"
            text = text if error.errno and not error.filename else str(error)
            click.echo(f"Error: {visible_lines(text)}", err=True)
        return ExitCode.FAILED
    return int(result or ExitCode.FINE)
