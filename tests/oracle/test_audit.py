"""The judge is judged: the audit log against what a faulty door let through, write by write."""

import collections
import random

import pytest
import urllib3

from tests.lab import fleet, identities
from tests.lab.api import Api, Manifest, Refused
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Answer, Cut, Fault, LoseAnswer, Repeat
from tests.results.record import Recorder, Result

WRITES, SEED = 2_000, 1
FAULTS = (
    Answer(409),
    Answer(429, retry_after=1),
    Answer(500),
    Cut(before_upstream=True),
    LoseAnswer(),
    Repeat(2),
    Repeat(3),
)
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}


@pytest.mark.oracle
def test_the_log_tells_what_passed_and_nothing_else(cluster: Lab, recorder: Recorder) -> None:
    chance = random.Random(SEED)
    audit = cluster.audit()
    with cluster.proxy() as proxy:
        tenant = identities.tenant(cluster.admin).at(proxy.url)
        for number in range(WRITES):
            if chance.random() < 0.3:
                proxy.inject(Fault(chance.choice(FAULTS)))
            write_something(tenant, chance, number)
            proxy.clear()
        passed = counted(proxy)
    told = collections.Counter(each.verb for each in audit.writes(identities.TENANT))
    wrong = sum(((told - passed) + (passed - told)).values())
    what = "writes through a faulty proxy that the audit log told more or less often than the API server received them"
    recorder.write(Result("oracle-audit", what, sum(passed.values()), wrong, SEED, dict(told)))
    assert told == passed
    assert sum(passed.values()) > WRITES * 0.6, "too few writes arrived to say anything"


def counted(proxy: Proxy) -> "collections.Counter[str]":
    passed: collections.Counter[str] = collections.Counter()
    for each in proxy.exchanges:
        if each.method in VERBS:
            passed[VERBS[each.method]] += each.deliveries
    return passed


def write_something(tenant: Api, chance: random.Random, number: int) -> None:
    """Creates, changes and deletes pods of few names, so that many writes are refused."""
    name = f"p{chance.randrange(12)}"
    pod: Manifest = fleet.Pod(name, identities.TENANT_NAMESPACE).unseen().manifest()
    path = tenant.path("pods", name, identities.TENANT_NAMESPACE)
    try:
        match chance.choice(["create", "change", "delete"]):
            case "create":
                tenant.create(pod)
            case "change":
                tenant.merge(path, {"metadata": {"labels": {"number": str(number)}}})
            case _:
                tenant.must("DELETE", path, {"gracePeriodSeconds": 0})
    except (Refused, urllib3.exceptions.HTTPError):
        pass  # what the client was told is not the question here
