"""Where the inputs of plans are kept: `--history`, or RECONCILER_HISTORY."""

from pathlib import Path

import click

history_option = click.option(
    "--history",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="RECONCILER_HISTORY",
    metavar="DIR",
    help="The folder in which run keeps the inputs of plans that act, for seven days.",
)
