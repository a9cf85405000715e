"""Exit codes of the process, and handling of closed or full standard streams."""

import errno
import os
import sys
from enum import IntEnum
from typing import IO


class ExitCode(IntEnum):
    """Exit codes, with the same meaning for every command."""

    FINE = 0
    FAILED = 1
    CHANGES_EXIST = 2  # only with --detailed-exitcode
    INVALID_POLICY = 3
    BLOCKED = 4  # a blocked hold: a guard, a missing approval, or a field or object owned by someone else
    PARTLY = 5  # partly done; running the command again finishes it
    WRONG_USAGE = 64
    INTERRUPTED = 130


# --- Standard streams that are closed, full, or no longer read: an exit code and one line, never a traceback.


def open_closed_streams() -> None:
    """Opens a descriptor for each closed standard stream, before a file that is opened gets its number.

    Reads return nothing. Writes to a closed standard output fail, as they would without this function; messages to a
    closed standard error are dropped.
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
    """The exit code, after all output is flushed; 1 if flushing failed, with one line unless the reader closed the
    pipe.

    Otherwise Python would flush at exit, print its own message and exit with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:
            _silence(stream)
            if stream is sys.stdout:
                if not code:  # otherwise the error was already reported
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
    """Discards the rest of the buffer."""
    try:
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    except (OSError, ValueError):
        return


def _opened(number: int, mode: str) -> "IO[str]":
    return open(number, mode, encoding="utf-8", closefd=False)
