"""Owner of the ports that labs of this process listen on: each is told once, and labs side by side have others.

A part opens its port a while after it was told it. From 32768 on, kernels give ports to whoever asks for any, so what
was free may be taken by then: ours lie below. Processes that run at the same time begin at different places.
"""

import itertools
import os
import socket
from collections.abc import Iterator

_FIRST, _BLOCKS, _BLOCK = 12_000, 200, 100


def _candidates() -> Iterator[int]:
    """Endless: a process that makes lab after lab comes round to its first ports again."""
    first = os.getpid() % _BLOCKS * _BLOCK
    for number in itertools.count(first):
        yield _FIRST + number % (_BLOCKS * _BLOCK)


_ours = _candidates()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on now, all different."""
    return list(itertools.islice((port for port in _ours if _is_free(port)), count))


def _is_free(port: int) -> bool:
    with socket.socket() as asked:
        try:
            asked.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
