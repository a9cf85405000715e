"""One conversation with a child process: it gets all input at once; its lines are taken until it ends or time is up.

A process, as only from outside can a template be kept from taking all time and memory.
"""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

CHUNK_BYTES = 1 << 16


class Exchange(msgspec.Struct, frozen=True):
    """What is said to a child, and how long it may take to answer."""

    command: Sequence[str]
    environment: dict[str, str]
    sent: bytes
    deadline: float  # of time.monotonic()
    longest_line_bytes: int


class Ending(msgspec.Struct, frozen=True):
    """How it went: at the end of its output, at the deadline, with a line that was too long, or never begun."""

    why: Literal["ended", "overdue", "flooded", "not started"]
    signal: int = 0  # that ended it
    detail: str = ""


class _Flooded(Exception):
    """A line is longer than any answer can be."""


def converse(exchange: Exchange, take: Callable[[bytes], None]) -> Ending:
    """Starts the child, hands over each line that it says, and has ended it when this returns."""
    try:
        process = subprocess.Popen(
            exchange.command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=exchange.environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal is for us, and we end it
        )
    except OSError as error:
        return Ending("not started", detail=str(error))
    with process:
        try:
            why: Literal["ended", "overdue", "flooded"] = "ended" if _exchange(process, exchange, take) else "overdue"
        except _Flooded:
            why = "flooded"
        finally:
            if not _ended_by_itself(process, exchange.deadline):
                process.kill()
        return Ending(why, signal=max(0, -process.wait()))


def _ended_by_itself(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """What closed its output is as good as gone; how it ended is worth a moment."""
    if process.stdout is None or not process.stdout.closed:
        return False
    try:
        process.wait(timeout=max(0.0, min(1.0, deadline - time.monotonic())))
    except subprocess.TimeoutExpired:
        return False
    return True


def _exchange(process: subprocess.Popen[bytes], exchange: Exchange, take: Callable[[bytes], None]) -> bool:
    """Whether the child reached the end of its output in time."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        return True
    unsent, heard = memoryview(exchange.sent), bytearray()
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while (left := exchange.deadline - time.monotonic()) > 0:
            ready = {key.fileobj for key, _ in selector.select(left)}
            if stdin in ready:
                unsent = _write(stdin.fileno(), unsent)
                if not unsent:
                    selector.unregister(stdin)
                    stdin.close()
            if stdout in ready:
                said = os.read(stdout.fileno(), CHUNK_BYTES)
                if not said:
                    stdout.close()
                    return True
                _take_lines(heard, said, take)
                if len(heard) > exchange.longest_line_bytes:
                    raise _Flooded
    return False


def _write(descriptor: int, unsent: memoryview) -> memoryview:
    try:
        return unsent[os.write(descriptor, unsent[:CHUNK_BYTES]) :]
    except BrokenPipeError:
        return unsent[:0]  # it has ended; its output says the rest


def _take_lines(heard: bytearray, said: bytes, take: Callable[[bytes], None]) -> None:
    """Adds what was said to what was heard before, and hands over the lines that are whole."""
    *whole, rest = said.split(b"\n")
    for line in whole:
        heard += line
        take(bytes(heard))
        heard.clear()
    heard += rest
