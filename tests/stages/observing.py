"""An observer at work in a test, and a judge of what it saw that shares none of its code."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from reconciler.kube.client import Client
from reconciler.kube.connections import Timeouts
from reconciler.kube.observe import Observer
from reconciler.kube.watch.reflector import ReflectorTiming
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from tests.lab import identities
from tests.lab.api import Api, Manifest, Refused
from tests.lab.lab import Lab

Stands = tuple[str, str, str]  # name, uid and resourceVersion: the same version is the same object


def client_of(lab: Lab, url: str = "", timeouts: Timeouts | None = None) -> Client:
    """The reconciler, with the rights that it ships; by another door where one is named."""
    api = identities.reconciler(lab.admin)
    return Client.at(url or api.url, api.authority, api.credential.token, timeouts)


class Watched:
    """An observer, and a wait for what it should come to see."""

    def __init__(self, client: Client, pace: ReflectorTiming) -> None:
        self._changed = threading.Event()
        self.observer = Observer(client, pace=pace, on_change=self._changed.set)

    def __enter__(self) -> "Watched":
        self.observer.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.observer.stop()

    def synced(self, within: float = 60) -> "Watched":
        deadline = time.monotonic() + within
        while not self.observer.is_synced():
            assert time.monotonic() < deadline, self.observer.observe().unread
            time.sleep(0.01)
        return self

    def until(self, is_so: Callable[[Observed], object], within: float = 60) -> Observed:
        """Looks again at each change until it is so."""
        deadline = time.monotonic() + within
        while True:
            self._changed.clear()
            seen = self.observer.observe()
            if is_so(seen):
                return seen
            left = deadline - time.monotonic()
            is_late = left <= 0 or not self._changed.wait(left)
            assert not is_late, f"not within {within:g} s; unread: {seen.unread}"


def seen_by(observed: Observed) -> dict[str, list[Stands]]:
    """What an observer saw, by field."""
    return {
        field: sorted(map(_stands, getattr(observed, field)))
        for field in sorted({each.field for each in RESOURCE_KINDS})
    }


def listed_by(admin: Api) -> dict[str, list[Stands]]:
    """What there is, by the same fields."""
    found: dict[str, list[Stands]] = {each.field: [] for each in RESOURCE_KINDS}
    for each in RESOURCE_KINDS:
        query = {"labelSelector": each.selector} if each.selector else {}
        items = _items(admin, each.plural, each.namespace_for(identities.NAMESPACE), query)
        told = [item["metadata"] for item in items]
        found[each.field] += [(item["name"], item["uid"], item["resourceVersion"]) for item in told]
    return {field: sorted(stands) for field, stands in sorted(found.items())}


def _items(admin: Api, plural: str, namespace: str, query: dict[str, str]) -> list[Manifest]:
    try:
        return admin.list(plural, namespace, **query)
    except Refused as refused:
        if refused.code != 404:  # of a kind that is not served there is none
            raise
        return []


def _stands(each: object) -> Stands:
    metadata = each.metadata  # type: ignore[attr-defined]
    return metadata.name, metadata.uid, metadata.resource_version
