"""Binds pods on the lab with and without claims, and counts the writes of the API server's audit log."""

import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from reconciler.model import names
from tests.lab import fleet
from tests.lab.audit import WRITES, Audit, Entry
from tests.lab.lab import Lab
from tests.stages.claims import ClaimSite

WITHIN_SECONDS = 240


@dataclass(frozen=True)
class Bound:
    """How long a batch of pods took, and the writes meanwhile, those of the fake kubelet left out."""

    pods: int
    seconds: float
    writes: Counter[str]  # by resource

    @property
    def pods_a_second(self) -> float:
        return round(self.pods / self.seconds, 1)

    @property
    def leases_a_pod(self) -> float:
        return round(self.writes["leases.coordination.k8s.io"] / self.pods, 2)

    @property
    def other_writes_a_pod(self) -> float:
        """Without the creation of the pod, which the user does."""
        others = self.writes.total() - self.writes["leases.coordination.k8s.io"] - self.writes["pods"]
        return round(others / self.pods, 2)


def bind_waiting(site: ClaimSite, count: int, gpus: int, claim: str = "") -> Bound:
    """All pods exist when the scheduler is continued; until the last Binding."""
    with _paused_scheduler(site.lab):
        made = _create(site, count, gpus, claim)
        audit = site.lab.audit()
        began = time.time()
    entries = _until_bound(site, made, audit)
    return Bound(count, _last_binding(entries) - began, _writes(entries))


def bind_arriving(site: ClaimSite, count: int, gpus: int, claim: str = "") -> Bound:
    """The pods are created while the scheduler runs; from the first creation until the last Binding."""
    audit = site.lab.audit()
    began = time.time()
    made = _create(site, count, gpus, claim)
    entries = _until_bound(site, made, audit)
    return Bound(count, _last_binding(entries) - began, _writes(entries))


def remove_pods(site: ClaimSite) -> None:
    """Pods and Leases; the controller would release the Leases as fast as its write limit allows."""
    for path in ("/api/v1/namespaces/default/pods", _LEASES):
        site.admin.must("DELETE", f"{path}?gracePeriodSeconds=0")
    deadline = time.monotonic() + WITHIN_SECONDS
    while site.admin.list("pods", "default") or site.admin.list("leases", names.LEASES_NAMESPACE):
        assert time.monotonic() < deadline, "the pods are still there"
        time.sleep(0.5)
    time.sleep(2)  # schedulers and replicas see the same a moment later


_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{names.LEASES_NAMESPACE}/leases"
_UNBOUND = "/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3D&limit=1"
_BINDINGS = "/binding"


@contextmanager
def _paused_scheduler(lab: Lab) -> Iterator[None]:
    scheduler = lab.running(names.GPU_SCHEDULER)
    assert scheduler
    scheduler.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        scheduler.process.send_signal(signal.SIGCONT)


def _create(site: ClaimSite, count: int, gpus: int, claim: str) -> list[str]:
    annotations = {names.CLAIM: claim} if claim else {}
    pods = [
        fleet.Pod(f"bench-{number}", gpus=gpus, annotations=annotations)
        .with_spec(schedulerName=names.GPU_SCHEDULER)
        .manifest()
        for number in range(count)
    ]
    return [each["metadata"]["name"] for each in site.lab.load(pods)]


def _until_bound(site: ClaimSite, pods: Sequence[str], audit: Audit) -> list[Entry]:
    """All entries of the audit log until each pod is bound. Read at the end: to parse the log takes processor time."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while site.admin.must("GET", _UNBOUND)["items"]:
        assert time.monotonic() < deadline, "pods wait"
        time.sleep(0.5)
    time.sleep(2)
    entries = audit.entries()
    assert {each.write.object.split("/")[2] for each in entries if _is_binding(each)} >= set(pods)
    return entries


def _is_binding(entry: Entry) -> bool:
    return entry.write.object.endswith(_BINDINGS) and entry.write.code < 300


def _last_binding(entries: Sequence[Entry]) -> float:
    return max(datetime.fromisoformat(each.raw["stageTimestamp"]).timestamp() for each in entries if _is_binding(each))


def _writes(entries: Sequence[Entry]) -> Counter[str]:
    """Also refused ones; by resource and subresource."""
    return Counter(
        resource(each) for each in entries if each.write.verb in WRITES and each.write.user not in {"kwok", "admin"}
    )


def resource(entry: Entry) -> str:
    """Like pods/binding."""
    resource, *_, last = entry.write.object.split("/")
    return f"{resource}/{last}" if entry.raw.get("objectRef", {}).get("subresource") else resource
