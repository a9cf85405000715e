"""A bar on standard error while something long goes on, where a person looks at it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_PARTS = 1_000


@contextmanager
def progress(label: str) -> Iterator[Callable[[float], None]]:
    """Gives what is to be told how far it is, in parts of 1."""
    if not sys.stderr.isatty():
        yield _nobody
        return
    with click.progressbar(length=_PARTS, label=label, file=sys.stderr) as bar:
        yield lambda part: bar.update(max(0, round(part * _PARTS) - bar.pos))


def _nobody(part: float) -> None:
    """Nobody looks."""
