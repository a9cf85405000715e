"""What a shell calls in place of the console script: passes arguments, environment and streams on to the server.

Runs as `python -IS client.py SOCKET PROGRAM FOLDER ARGUMENT...`, and imports little, so that it starts in milliseconds.
"""

import os
import socket
import sys

STREAMS = (0, 1, 2)
LENGTH_BYTES = 4


def main() -> int:
    """The exit code of the command."""
    address, program, folder, *arguments = sys.argv[1:]
    if _needs_a_start():
        os.execv(program, [program, *arguments])  # noqa: S606 - a shell called us
    parts = map(os.fsencode, (folder, str(len(arguments)), *arguments))
    message = b"\0".join([*parts, *(b"=".join(pair) for pair in os.environb.items())])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [len(message).to_bytes(LENGTH_BYTES, "big")], STREAMS)
        connection.sendall(message)
        code = connection.recv(1)
    return code[0] if code else 1


def _needs_a_start() -> bool:
    """A stream that is closed cannot be passed on, and some variables are read by an interpreter when it starts."""
    try:
        for stream in STREAMS:
            os.fstat(stream)
    except OSError:
        return True
    return any(name.startswith("PYTHON") for name in os.environ)


if __name__ == "__main__":
    sys.exit(main())
