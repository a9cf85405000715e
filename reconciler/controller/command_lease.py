"""Leadership for as long as a command acts: where a controller runs, a command does not act beside it."""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.kube.api_server import Writer
from reconciler.kube.leader import Candidacy, Leader
from reconciler.ports import Fence

_AT_ONCE_SECONDS = 1.0
_LONGEST_SECONDS = 25.0  # more than the longest lease, and some for an API server in trouble

Tell = Callable[[str], None]


class Occupied(Exception):
    """Someone else leads, or it can't be known; the sentence says who, and what to do."""


@contextmanager
def leading(server: Writer, namespace: str, tell: Tell) -> Iterator[Fence]:
    """The fence to act with; given back at the end. Raises Occupied."""
    leader = Leader(server, Candidacy(f"{socket.gethostname()}_{uuid.uuid4()}", namespace))
    leader.start()
    try:
        term = leader.wait_for_term(_AT_ONCE_SECONDS)
        if term is None and not leader.trouble:
            tell(f"{leader.holder} has the Lease: waiting to see whether it still runs")
            term = leader.wait_for_term(_LONGEST_SECONDS)
        if term is None:
            raise Occupied(_why(leader, namespace))
        yield term
    finally:
        leader.release()


def _why(leader: Leader, namespace: str) -> str:
    if leader.trouble:
        needs = f"it takes the namespace {namespace}, and the rights that `reconciler rbac --write` prints"
        return f"whether a controller runs here can't be known: {leader.trouble}; {needs}"
    return (
        f"a controller runs here, and acts on its own policies: {leader.holder} leads in the namespace {namespace}. "
        "Commit what it should do, or scale it to zero first"
    )
