"""Imports the whole command once, and runs each call of it in a fork of its own, until its standard input ends.

A fork has the streams, the working folder and the environment of its caller, so pipes, redirections and exit codes are
those of a process that was started. What only a start shows is left to the tests that start the command itself.
"""

import gc
import importlib
import os
import pkgutil
import select
import signal
import socket
import sys
from pathlib import Path

import reconciler
from reconciler.__main__ import run
from tests.processes.forked.client import LENGTH_BYTES, STREAMS


def serve(address: str) -> None:
    """Answers callers at a Unix socket."""
    _import_everything()
    gc.collect()
    gc.freeze()  # what is never looked at by a collection is never copied by a fork
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that answer
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while sys.stdin not in select.select([sys.stdin, door], [], [])[0]:
            connection, _ = door.accept()
            with connection:
                if os.fork() == 0:
                    door.close()
                    _answer(connection, str(Path(address).with_name("reconciler")))


def _import_everything() -> None:
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _answer(connection: socket.socket, program: str) -> None:
    """Runs the command in another fork, which ends as every process does, and passes its exit code on."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    beginning, streams, _, _ = socket.recv_fds(connection, LENGTH_BYTES, len(STREAMS))
    folder, count, *rest = _read(connection, int.from_bytes(beginning, "big")).split(b"\0")
    worker = os.fork()
    if worker == 0:
        connection.close()
        _become(streams, folder, rest[int(count) :])
        sys.argv = [program, *map(os.fsdecode, rest[: int(count)])]
        run()
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _read(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        received += connection.recv(length - len(received))
    return received


def _become(streams: list[int], folder: bytes, environment: list[bytes]) -> None:
    for stream, received in zip(STREAMS, streams, strict=True):
        os.dup2(received, stream)
        os.close(received)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update((name, value) for name, _, value in (each.partition(b"=") for each in environment))


if __name__ == "__main__":
    serve(sys.argv[1])
