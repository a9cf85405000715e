"""The entry point: `reconciler`, or `python -m reconciler`."""

from reconciler.cli.main import main


def run() -> None:
    """What the console script calls; ends the process with one of the exit codes."""
    raise SystemExit(main())


if __name__ == "__main__":
    run()
