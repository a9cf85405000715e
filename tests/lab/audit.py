"""Reads the API server's audit log: what was really written, by whom, whatever the writer says of itself."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.lab.api import Api

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Write(NamedTuple):
    """One request as the API server saw it."""

    user: str
    verb: str
    object: str  # nodes/n1, pods/default/p1/binding, nodepools.karpenter.sh/a100
    code: int


@dataclass(frozen=True)
class Entry:
    """A line of the log, with more than most tests ask for."""

    write: Write
    dry_run: bool
    user_agent: str
    body: Any = field(repr=False)
    raw: Any = field(repr=False)


class Audit:
    """Owner of the place in the log up to which it has been read."""

    def __init__(self, log: Path, admin: Api) -> None:
        self._log, self._admin = log, admin
        self._read_to = 0

    def writes(self, user: str = "", dry_runs: bool = False) -> list[Write]:
        """All writes since the last call (of one user, where named), refused ones included."""
        return [each.write for each in self.entries(user) if each.write.verb in WRITES and each.dry_run <= dry_runs]

    def entries(self, user: str = "") -> list[Entry]:
        """All entries since the last call; reads too, for the users whose reads are logged."""
        marked = list(self._until_marked())
        return [each for each in marked if not user or each.write.user == user]

    def skip(self) -> None:
        """Forgets what happened so far."""
        self.entries()

    def _until_marked(self) -> Iterator[Entry]:
        """Leaves a mark by a dry-run write of our own, and reads until it appears: everything before it is in.

        The server logs a request when it has answered it, so a request that was answered before the mark was sent
        stands before the mark.
        """
        mark = f"audit-mark-{uuid.uuid4().hex}"
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": mark}}
        self._admin.must("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", manifest)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for line in self._new_lines():
                entry = _entry(json.loads(line))
                if entry.write.object.endswith(mark):
                    return
                if "audit-mark-" not in entry.write.object:
                    yield entry
            time.sleep(0.02)
        raise AssertionError("the audit log does not show a write that was made 60 s ago")

    def _new_lines(self) -> Iterator[bytes]:
        if not self._log.exists():
            return
        with self._log.open("rb") as log:
            log.seek(self._read_to)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                self._read_to += len(line)
                yield line


def _entry(raw: Any) -> Entry:
    reference = raw.get("objectRef", {})
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    # The name of an object to be created stands only in its body or in the answer's.
    name = reference.get("name") or raw.get("requestObject", {}).get("metadata", {}).get("name", "")
    parts = (reference.get("resource", "") + group, reference.get("namespace"), name, reference.get("subresource"))
    write = Write(
        user=raw.get("impersonatedUser", raw["user"]).get("username", ""),
        verb=raw["verb"],
        object="/".join(part for part in parts if part),
        code=raw.get("responseStatus", {}).get("code", 0),
    )
    query = parse_qs(urlsplit(raw["requestURI"]).query)
    return Entry(write, "dryRun" in query, raw.get("userAgent", ""), raw.get("requestObject"), raw)
