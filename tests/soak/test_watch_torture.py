"""A thousand faults on watches and lists, at random, while much changes: what is seen in the end is what there is."""

import random
import threading
from collections.abc import Callable

import pytest

from reconciler.kube.api_server import BackoffBounds
from reconciler.kube.connections import Timeouts
from reconciler.kube.watch.reflector import ReflectorTiming
from tests.lab import capacity, fleet, identities
from tests.lab.api import Api, Manifest, Refused
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import (
    Act,
    Answer,
    Cut,
    DelayAnswer,
    EndWatch,
    Fault,
    Garbage,
    Match,
    OldList,
    Repeat,
    Silence,
    WatchError,
)
from tests.results.record import Recorder, Result
from tests.stages.observing import Watched, client_of, listed_by, seen_by

FAULTS, SEED = 1_000, 1
AT_ONCE = 8  # each on a kind of its own
ROUNDS_A_LOOK = 20

# What is changed meanwhile, and the paths by which it is watched.
KINDS = {
    "nodes": "/api/v1/nodes[?]",
    "pods": "/api/v1/pods[?]",
    "poddisruptionbudgets": "/policy/v1/poddisruptionbudgets[?]",
    "nodepools": "/karpenter.sh/v1/nodepools[?]",
    "leases": "/namespaces/gpu-system/leases[?]",
    "replicasets": "/apps/v1/replicasets[?]",
    "jobs": "/batch/v1/jobs[?]",
    "resourceclaims": "/resourceclaims[?]",
}


def of_a_watch(chance: random.Random) -> Act:
    after = chance.randrange(3)
    acts: list[Act] = [
        WatchError(410, after),
        WatchError(500, after),
        EndWatch(after),
        Garbage(after),
        Garbage(after, b'{"type":"ADDED","object":{"metadata":{}}}\n'),
        Garbage(after, b"\xff\xfe\n"),
        Cut(chance.randrange(4_000)),
        Cut(before_upstream=True),
        Silence(),
        Silence(after),
        Repeat(2),
        DelayAnswer(0.3),
        Answer(410),
        Answer(chance.choice([429, 500, 503, 504])),
    ]
    return chance.choice(acts)


def of_a_list(chance: random.Random) -> Act:
    acts: list[Act] = [
        OldList(),
        OldList(first=False),
        Answer(chance.choice([410, 429, 500, 503])),
        Cut(chance.randrange(400)),
        Cut(before_upstream=True),
        Silence(),
        DelayAnswer(0.3),
    ]
    return chance.choice(acts)


def inject(proxy: Proxy, chance: random.Random) -> None:
    """Faults on some kinds at once. A list is faulty only once a watch has expired."""
    for path in chance.sample(sorted(KINDS.values()), AT_ONCE):
        watches, lists = Match(watch=True, path=path), Match(verb="list", path=path)
        if chance.random() < 0.4:
            proxy.inject(Fault(Answer(410), watches))
            proxy.inject(Fault(of_a_list(chance), lists))
        else:
            proxy.inject(Fault(of_a_watch(chance), watches))


def fired(proxy: Proxy) -> int:
    return sum(each.fault is not None for each in proxy.exchanges)


class Churn(threading.Thread):
    """Creates, changes and deletes at random, until told to stop."""

    def __init__(self, admin: Api, seed: int) -> None:
        super().__init__(name="churn")
        self._admin = admin
        self._chance = random.Random(seed)
        self._ended = threading.Event()
        self.writes = 0

    def run(self) -> None:
        while not self._ended.wait(0.01):
            try:
                self._write()
                self.writes += 1
            except Refused as refused:
                if refused.code not in {404, 409}:
                    raise

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _write(self) -> None:
        name = f"churn-{self._chance.randrange(12)}"
        made = self._chance.choice(MAKERS)(name)
        plural, namespace = f"{made['kind'].lower()}s", made["metadata"].get("namespace", "")
        match self._chance.choice(["create", "change", "change", "delete"]):
            case "create":
                self._admin.create(made)
            case "change":
                label = {"metadata": {"labels": {"round": str(self._chance.randrange(10**6))}}}
                self._admin.merge(self._admin.path(plural, name, namespace), label)
            case _:
                self._admin.delete(plural, name, namespace, grace_seconds=0)


def node(name: str) -> Manifest:
    return {**fleet.nodes(1)[0], "metadata": {"name": name}}


def pod(name: str) -> Manifest:
    return fleet.Pod(name).unseen().manifest()


def budget(name: str) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": {"minAvailable": 1}}


def node_pool(name: str) -> Manifest:
    return capacity.NodePool(name, [capacity.P4D]).manifest()


def lease(name: str) -> Manifest:
    metadata = {"name": name, "namespace": identities.NAMESPACE}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


MAKERS: list[Callable[[str], Manifest]] = [node, pod, budget, node_pool, lease]

QUICK = ReflectorTiming(
    watch_seconds=1,
    silence_seconds=0.7,
    overdue_seconds=3,
    absent_seconds=1,
    waits=BackoffBounds(first_seconds=0.02, most_seconds=0.3, healthy_seconds=0.5),
)


@pytest.mark.soak
def test_after_a_thousand_faults_the_store_is_what_there_is(cluster: Lab, recorder: Recorder) -> None:
    print(f"\nseed {SEED}")
    chance = random.Random(SEED)
    looks = differing = 0
    with cluster.proxy() as proxy:
        client = client_of(cluster, proxy.url, Timeouts(answer_seconds=0.7))
        with Watched(client, QUICK) as watched:
            watched.synced()
            while fired(proxy) < FAULTS:
                churn = Churn(cluster.admin, chance.randrange(10**6))
                churn.start()
                try:
                    for _ in range(ROUNDS_A_LOOK):
                        inject(proxy, chance)
                        threading.Event().wait(chance.random() * 1.2)
                        proxy.clear()
                finally:
                    churn.stop()
                looks += 1
                differing += not agrees(watched, cluster)
            count, requests = fired(proxy), len(proxy.exchanges)
    for number in range(12):
        cluster.admin.delete("leases", f"churn-{number}", identities.NAMESPACE)
    what = "faults of watches and lists, and looks after some of them at which what was seen was not what there was"
    recorder.write(Result("soak-watches", what, count, differing, SEED, {"looks": looks, "requests": requests}))
    assert differing == 0


def agrees(watched: Watched, cluster: Lab) -> bool:
    """Whether it comes to that, once nothing changes any more."""
    try:
        watched.until(lambda seen: not seen.unread and seen_by(seen) == listed_by(cluster.admin))
    except AssertionError:
        return False
    return True
