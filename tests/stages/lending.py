"""What the audit log says of lent GPUs: who held each Lease at each moment, and what was held when a pod was bound."""

from collections.abc import Iterable
from typing import Any

from reconciler.model import names
from tests.lab.audit import Entry

_LEASES = f"leases.coordination.k8s.io/{names.LEASES_NAMESPACE}/"


def faults_of(entries: Iterable[Entry]) -> list[str]:
    """Each Binding of a pod with GPUs for which the pod did not hold all Leases, and each GPU of two bound pods."""
    judge = _Judge()
    for entry in entries:
        if entry.write.code < 300 and not entry.dry_run:
            judge.heed(entry)
    return judge.faults


class _Judge:
    """Owner of what is held and used at the moment of the last entry."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._holders: dict[str, str] = {}  # by name of the Lease
        self._users: dict[str, str] = {}  # by GPU, the bound pod
        self._gone: set[str] = set()

    def heed(self, entry: Entry) -> None:
        write = entry.write
        if write.object.startswith(_LEASES):
            name = write.object.removeprefix(_LEASES)
            if write.verb == "create":
                self._holders[name] = entry.body["spec"]["holderIdentity"]
            elif write.verb == "delete":
                self._holders.pop(name, None)
        elif write.object.startswith("pods/") and write.object.endswith("/binding"):
            if entry.body is None:
                return  # of the default scheduler, whose bodies are not logged
            self._bound(write.object, entry.body["metadata"])
        elif write.object.startswith("pods/") and write.verb == "delete":
            self._gone.add(write.object)

    def _bound(self, binding: str, metadata: Any) -> None:
        node, _, ids = (metadata.get("annotations") or {}).get(names.ALLOCATED, "").rpartition(":")
        for each in filter(None, ids.split(",")):
            held = self._holders.get(f"gpu-{node}-{each}")
            if held != metadata["uid"]:
                self.faults.append(f"{binding}: GPU {each} of {node} is held by {held}")
            user = self._users.get(f"{node}/{each}")
            if user is not None and user not in self._gone:
                self.faults.append(f"{binding}: GPU {each} of {node} is used by {user}")
            self._users[f"{node}/{each}"] = binding.removesuffix("/binding")


def writes_by_kind(entries: Iterable[Entry], user: str) -> dict[str, int]:
    """How many writes of the user took effect, by verb and resource."""
    found: dict[str, int] = {}
    for entry in entries:
        write = entry.write
        if write.user == user and write.code < 300 and write.verb in {"create", "update", "patch", "delete"}:
            parts = write.object.split("/")
            kind = f"{write.verb} {parts[0]}" + ("/binding" if parts[-1] == "binding" else "")
            found[kind] = found.get(kind, 0) + 1
    return found
