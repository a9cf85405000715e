"""What watches told of nodes and pods, in the one order in which the API server wrote it.

The version of an object is etcd's revision, which all kinds share: sorted by it, the events of several watches are
what was, step by step. Owner of the threads that watch.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from urllib3.exceptions import HTTPError

from tests.lab.api import Api, Manifest
from tests.lab.fleet import Pod

_END = "end-of-history"
_KINDS = ("nodes", "pods")
_LONGEST_SECONDS = 1_800


class Event(NamedTuple):
    """One write."""

    version: int
    plural: str
    type: str
    object: Manifest


class Moment(NamedTuple):
    """How all stood once an event had happened; not to be changed or kept."""

    event: Event
    nodes: dict[str, Manifest]
    pods: dict[str, Manifest]  # by uid

    def pods_on(self, node: str) -> list[Manifest]:
        """Those that are not over."""
        return [each for each in self.pods.values() if each["spec"].get("nodeName") == node and not _is_over(each)]


class History:
    """From its making until its end."""

    def __init__(self, admin: Api) -> None:
        self._admin = admin
        self._events: dict[str, list[Event]] = {plural: [] for plural in _KINDS}
        self._ended: set[str] = set()
        self._threads = [threading.Thread(target=self._watch, args=(each,), daemon=True) for each in _KINDS]
        self.since = int(admin.must("GET", admin.path("pods") + "?limit=1")["metadata"]["resourceVersion"])
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Once all that happened so far was told."""
        self._admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": _END}})
        self._admin.create(Pod(_END).unseen().manifest())
        for thread in self._threads:
            thread.join(60)
        assert self._ended == set(_KINDS), "a watch broke off, or does not tell what was written a minute ago"
        self._admin.delete("nodes", _END)
        self._admin.delete("pods", _END, "default", grace_seconds=0)

    def moments(self) -> Iterator[Moment]:
        """After each event since the beginning."""
        nodes: dict[str, Manifest] = {}
        pods: dict[str, Manifest] = {}
        for event in sorted((each for found in self._events.values() for each in found), key=lambda each: each.version):
            kept, key = (nodes, "name") if event.plural == "nodes" else (pods, "uid")
            kept[event.object["metadata"][key]] = event.object
            if event.type == "DELETED":
                del kept[event.object["metadata"][key]]
            if event.version > self.since:
                yield Moment(event, nodes, pods)

    def _watch(self, plural: str) -> None:
        with suppress(HTTPError):  # where the lab ends before the history does
            for told in self._admin.watch(plural, timeout_seconds=_LONGEST_SECONDS):
                metadata = told["object"]["metadata"]
                if metadata["name"] == _END:
                    self._ended.add(plural)
                    return
                event = Event(int(metadata["resourceVersion"]), plural, told["type"], told["object"])
                self._events[plural].append(event)


def _is_over(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
