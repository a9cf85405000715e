"""Exit codes of the process, and how a command ends whose standard streams are closed or full."""

import errno
import os
import sys
from enum import IntEnum
from typing import IO


class ExitCode(IntEnum):
    """One meaning each, the same for every command."""

    FINE = 0
    FAILED = 1
    CHANGES_EXIST = 2  # only where --detailed-exitcode asks for it
    INVALID_POLICY = 3
    BLOCKED = 4  # a blocked hold: a guard, a missing approval, a field or an object that is someone else's
    PARTLY = 5  # some of it was done, and running it again finishes it
    WRONG_USAGE = 64
    INTERRUPTED = 130


# --- Standard streams that are closed, full, or read by nobody any more: an exit code and one line, never a traceback.


def open_closed_streams() -> None:
    """Gives each standard stream that is closed a descriptor, before a file that is opened gets its number.

    Nothing can be read there. What is written to a closed standard output fails, as it would without us; what is told
    on a closed standard error is told to nobody.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            descriptor = os.open(os.devnull, flags)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = _opened(0, "r")
    if sys.stdout is None:
        sys.stdout = _opened(1, "w")
    if sys.stderr is None:
        sys.stderr = _opened(2, "w")


def flushed(code: int) -> int:
    """The exit code, once all output is written; 1 where it could not be, told in one line unless the reader left.

    Python would flush once more at the end, tell of it in its own words and exit with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            _silence(stream)
            if stream is sys.stdout:
                if not code:  # else what went wrong was told
                    _tell(error)
                code = code or ExitCode.FAILED
    return code


def _tell(error: Exception) -> None:
    if getattr(error, "errno", 0) == errno.EPIPE:
        return
    try:
        sys.stderr.write(f"Error: standard output could not be written: {getattr(error, 'strerror', error)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        _silence(sys.stderr)


def _silence(stream: IO[str]) -> None:
    """What is left in its buffer goes nowhere."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    except (OSError, ValueError):
        return


def _opened(number: int, mode: str) -> "IO[str]":
    return open(number, mode, encoding="utf-8", closefd=False)
