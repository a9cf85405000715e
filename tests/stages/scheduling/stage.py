"""Owner of a scheduler that a witness listens to, and of the one drawn fleet that stands in the lab at a time.

Nothing is bound and nothing preempted, so any number of pods can be judged against the same cluster at once. The nodes
of a fleet have no kubelet, not even a fake one: they stay Ready for the 40 s after which a dead node is noticed, which
is much longer than a fleet stands.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Self, TypeVar

from reconciler.kube.observe import observe_once
from reconciler.model.cluster.observed import Observed
from tests.lab.api import Manifest, Refused
from tests.lab.lab import Lab
from tests.stages.observing import client_of
from tests.stages.scheduling import fixtures
from tests.stages.scheduling.draw import volumes
from tests.stages.scheduling.draw.chance import NAMESPACE_LABELS, NAMESPACES, SCHEDULER
from tests.stages.scheduling.draw.fleet import DrawnFleet, Resident
from tests.stages.scheduling.witness import Witness

_THREADS = 16
_WAIT_SECONDS = 60
_LONG_GRACE_SECONDS = 3600
_PENDING = f"spec.schedulerName={SCHEDULER},spec.nodeName="
_TRIED = {"Unschedulable", "SchedulerError"}  # and not held back
_CLUSTER_WIDE = ("nodes", "persistentvolumes", "csinodes", "volumeattachments")
_NAMESPACED = ("pods", "persistentvolumeclaims", "resourceclaims")

# No devices are given back for a pod that fits nowhere. Preemption stays, which takes a nomination back if it is away;
# the classes of priority forbid it to do more.
_AFTER_A_REFUSAL = {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultPreemption"}]}

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Judged:
    """A pod that the scheduler has tried."""

    uid: str
    manifest: Manifest  # as it was asked for
    passed: frozenset[str]  # the nodes that passed its filters
    said: str  # what it then wrote into the pod


class SchedulingStage:
    """A scheduler that places nothing; fleets are loaded, judged and cleared away one after another."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.admin = lab, lab.admin
        self.refused: list[tuple[Manifest, str]] = []  # what the API server would not have
        self._client = client_of(lab)
        self._witness = Witness()

    def __enter__(self) -> Self:
        self._witness.__enter__()
        configuration = {
            "percentageOfNodesToScore": 100,
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
            "extenders": [self._witness.extender()],
            "profiles": [{"schedulerName": SCHEDULER, "plugins": {"postFilter": _AFTER_A_REFUSAL}}],
        }
        self.lab.add_scheduler(SCHEDULER, configuration)
        self._until("namespaces", lambda: all(map(self._is_open, fixtures.namespaces())))
        self._all(self.admin.apply, [manifest for _, manifest in fixtures.classes()])
        for namespace in NAMESPACES:
            self.admin.wait_for("serviceaccounts", "default", lambda found: found is not None, namespace)
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self.lab.stop_part(SCHEDULER)
        self._witness.__exit__()
        self._client.close()
        self._label({})
        for plural, manifest in fixtures.classes():
            self.admin.delete(plural, manifest["metadata"]["name"])

    def load(self, drawn: DrawnFleet) -> None:
        """Makes it stand, and waits until the scheduler has seen all of it."""
        self._label(drawn.namespaces)
        self._all(self.admin.create, drawn.volumes)
        self._all(self.admin.create, [*map(fixtures.beating, drawn.nodes), *drawn.volume_limits])
        self._all(self._wanted, drawn.volume_claims)
        self._all(self._claimed, drawn.device_claims)
        self._all(self._settle_in, drawn.residents)
        self._until("nodes that are taken for ready", lambda: all(map(fixtures.is_settled, self.admin.list("nodes"))))
        self._until("bound claims", self._are_claims_bound)
        self._look_out(f"f{drawn.seed}-lookout")

    def judge(self, pods: Sequence[Manifest]) -> list[Judged]:
        """What the scheduler says of each; those that the API server would not have are left out."""
        made = [each for each in self._all(self._created, pods) if each is not None]
        self._all(lambda each: self._let_go(each[0]), made)
        manifests = {each["metadata"]["uid"]: pod for each, pod in made}
        said: dict[str, str] = {}

        def tried() -> bool:
            said.update(self._tried())
            return manifests.keys() <= said.keys()

        # A look at that many pods is not for nothing: while we look, the scheduler waits for a processor.
        self._until("word of the scheduler on each pod", tried, pause_seconds=len(pods) / 1000)
        return [Judged(uid, manifest, self._witness.heard(uid), said[uid]) for uid, manifest in manifests.items()]

    def observed(self) -> Observed:
        """The cluster as the reconciler sees it, with the rights that it ships."""
        observed = observe_once(self._client)
        assert observed.unread == ()
        return observed

    def dismiss(self) -> None:
        """Takes the pods away that were judged, and leaves the fleet."""
        pending = self.admin.list("pods", fieldSelector=_PENDING)
        judged = [each for each in pending if not each["status"].get("nominatedNodeName")]
        self._all(lambda each: self._delete("pods", each), judged)
        self._witness.forget()

    def clear(self) -> None:
        """Takes the fleet away."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for plural in _NAMESPACED:
                for namespace in NAMESPACES:
                    threads.submit(self._delete_all, plural, namespace)
            for plural in _CLUSTER_WIDE:
                threads.submit(self._delete_all, plural, "")
        self._until("an empty cluster", self._is_cleared)
        self._witness.forget()

    def _is_open(self, namespace: Manifest) -> bool:
        """One of the same name may still be on its way out."""
        found = self.admin.get("namespaces", namespace["metadata"]["name"]) or self.admin.apply(namespace)
        return bool(found["status"]["phase"] == "Active")

    def _label(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        for name in NAMESPACES:
            wanted = {key: labels.get(name, {}).get(key) for key in NAMESPACE_LABELS}
            self.admin.merge(self.admin.path("namespaces", name), {"metadata": {"labels": wanted}})

    def _settle_in(self, resident: Resident) -> None:
        made = self._created(resident.manifest)
        if made is None:
            return
        metadata = made[0]["metadata"]
        path = self.admin.path("pods", metadata["name"], metadata["namespace"])
        if resident.status:
            self.admin.merge(f"{path}/status", {"status": resident.status})
        if resident.is_leaving:
            self.admin.delete("pods", metadata["name"], metadata["namespace"], _LONG_GRACE_SECONDS)

    def _wanted(self, claim: Manifest) -> None:
        metadata = self.admin.create(claim)["metadata"]
        if volumes.LEAVING in metadata.get("finalizers", ()):
            self.admin.delete("persistentvolumeclaims", metadata["name"], metadata["namespace"])

    def _claimed(self, claim: Manifest) -> None:
        """A ResourceClaim as if it had been met: its status is written for whoever would meet it."""
        made = self.admin.create({key: value for key, value in claim.items() if key != "status"})
        path = self.admin.path("resourceclaims", made["metadata"]["name"], made["metadata"]["namespace"])
        self.admin.merge(f"{path}/status", {"status": claim["status"]})

    def _created(self, pod: Manifest) -> tuple[Manifest, Manifest] | None:
        try:
            return self.admin.create(pod), pod
        except Refused as refused:
            # Not every drawn pod is a valid one: rules between fields are the API server's own.
            if refused.code not in {400, 422}:
                raise
            self.refused.append((pod, refused.message))
            return None

    def _let_go(self, pod: Manifest) -> None:
        """Takes the gate off a pod that was held back until there were claims for its own volumes."""
        if not pod["spec"].get("schedulingGates"):
            return
        metadata = pod["metadata"]
        for volume in pod["spec"]["volumes"]:
            if "ephemeral" in volume:
                claim = f"{metadata['name']}-{volume['name']}"
                self.admin.wait_for(
                    "persistentvolumeclaims", claim, lambda found: found is not None, metadata["namespace"]
                )
        path = self.admin.path("pods", metadata["name"], metadata["namespace"])
        self.admin.merge(path, {"spec": {"schedulingGates": None}})

    def _look_out(self, name: str) -> None:
        """Events of a kind arrive in order: a scheduler that lets a pod onto a node that was changed last, beside a pod
        that was bound last, has seen all nodes and pods before them."""
        self.admin.create(fixtures.beating(fixtures.lookout_node(name)))
        self.admin.wait_for("nodes", name, lambda found: found is not None and fixtures.is_settled(found))
        self.admin.merge(self.admin.path("nodes", name), {"metadata": {"labels": {fixtures.LOOKOUT: name}}})
        self.admin.create(fixtures.lookout_pod(name))
        # A pod that was tried too early would be tried again only a second later: a new one is quicker.
        numbers = itertools.count()
        self._until("sight of the fleet", lambda: self.judge([fixtures.probe(name, next(numbers))])[0].passed)
        self.dismiss()

    def _tried(self) -> dict[str, str]:
        """What the scheduler wrote into pods that it found no node for, by uid."""
        found = {}
        for pod in self.admin.list("pods", fieldSelector=_PENDING):
            for each in pod.get("status", {}).get("conditions", ()):
                if each["type"] == "PodScheduled" and each.get("reason") in _TRIED:
                    found[pod["metadata"]["uid"]] = each["message"]
        return found

    def _is_cleared(self) -> bool:
        left = [(plural, each) for plural in (*_NAMESPACED, *_CLUSTER_WIDE) for each in self.admin.list(plural)]
        self._all(lambda each: self._delete(*each), left)
        return not left

    def _delete(self, plural: str, each: Manifest) -> None:
        metadata = each["metadata"]
        if metadata.get("finalizers"):
            path = self.admin.path(plural, metadata["name"], metadata.get("namespace", ""))
            self.admin.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        try:
            self.admin.delete(plural, metadata["name"], metadata.get("namespace", ""), grace_seconds=0)
        except Refused as refused:
            if refused.code != 409:  # changed meanwhile: the next look tells
                raise

    def _are_claims_bound(self) -> bool:
        """A controller that saw a claim before its volume looks again after 15 s, or when the claim is touched."""
        waiting = [each for each in self.admin.list("persistentvolumeclaims") if not fixtures.is_bound(each)]
        for each in waiting:
            metadata = each["metadata"]
            path = self.admin.path("persistentvolumeclaims", metadata["name"], metadata["namespace"])
            self.admin.merge(path, {"metadata": {"annotations": {"lab/touched": metadata["resourceVersion"]}}})
        return not waiting

    def _delete_all(self, plural: str, namespace: str) -> None:
        self.admin.must("DELETE", self.admin.path(plural, namespace=namespace), {"gracePeriodSeconds": 0})

    def _all(self, do: Callable[[T], R], each: Iterable[T]) -> list[R]:
        with ThreadPoolExecutor(_THREADS) as threads:
            return list(threads.map(do, each))

    def _until(self, what: str, is_so: Callable[[], object], pause_seconds: float = 0.02) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {_WAIT_SECONDS} s")
            time.sleep(pause_seconds)
