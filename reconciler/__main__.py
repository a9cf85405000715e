"""The entry point: `reconciler`, or `python -m reconciler`."""

from reconciler.cli.exit_codes import flushed, open_closed_streams
from reconciler.cli.main import main


def run() -> None:
    """What the console script calls; ends the process with one of the exit codes."""
    open_closed_streams()
    try:
        code = main()
    except SystemExit as ended:  # click, where nobody reads the output any more
        code = ended.code if isinstance(ended.code, int) else 1
    raise SystemExit(flushed(code))


if __name__ == "__main__":
    run()
