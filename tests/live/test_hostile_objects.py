"""Objects that the API server lets in, and that no program should choke on: nobody else waits for them."""

import time
from collections.abc import Iterator

import pytest

from reconciler.controller.publishers import SetAsidePublisher
from reconciler.fleet.fleet import Fleet
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import Client, connect
from reconciler.kube.observe import observe_once
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.observing import client_of
from tests.stages.people import acting_as

LONG = "9" * 5000
UNTIL_SECONDS = 20


@pytest.fixture
def client(cluster: Lab) -> Iterator[Client]:
    made = client_of(cluster)
    yield made
    made.close()


def pod(name: str, **amounts: str) -> Manifest:
    made = fleet.Pod(name).with_spec(schedulingGates=[{"name": "example.com/never"}]).manifest()
    made["spec"]["containers"][0]["resources"] = {
        "requests": {key.replace("_", "."): text for key, text in amounts.items()}
    }
    return made


def poisoned() -> Manifest:
    """A pod with the labels of a smart pod, and a time that is a digit and no number."""
    made = pod("poisoned")
    made["metadata"]["labels"] = {names.COMPONENT: names.SMART_SCHEDULER, names.POOL: "a100"}
    made["metadata"]["annotations"] = {
        names.PHASE: "Failed",
        names.SINCE: "²",
        names.FROZEN_UNTIL: "9999-12-31T23:59:59-14:00",
        names.EVICT_AT: "9" * 5000,
        names.ORIGINAL_REQUEST: '{"key": ' + "[" * 2000,
    }
    return made


def planned(observed: Observed) -> Inputs:
    inputs = Inputs(Desired("4c1f9e2", "prod"), observed, Instant(time.time_ns() // 1_000_000))
    reader = Fleet(observed)
    made = plan(inputs, reader)
    check(inputs, reader, made)
    assert made.troubles == ()
    told = {each.subject.name for each in made.decisions if each.planner == "set_aside" and isinstance(each.act, Hold)}
    assert told == {"bomb"}
    return inputs


def test_a_pod_that_nobody_can_read_is_set_aside_and_told_and_the_others_are_planned(
    cluster: Lab, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (pod("bomb", cpu=LONG), poisoned(), pod("exponent", cpu="8e0", memory="1e9"), pod("plain", cpu="1")):
        cluster.admin.create(each)
    observed = observe_once(client)
    assert "pods" not in {each.kind for each in observed.unread}
    assert [(each.name, each.code) for each in observed.set_aside] == [("bomb", "Quantity")]
    assert {"poisoned", "exponent", "plain"} <= {each.name for each in observed.pods}

    inputs = planned(observed)
    with acting_as(cluster, "releaser") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        SetAsidePublisher(Executor(connect()).events.tell, Always).publish(CycleResult(inputs.now, inputs))
    deadline = time.monotonic() + UNTIL_SECONDS
    while not any(each["reason"] == "ObjectSetAside" for each in cluster.admin.list("events", "default")):
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Always:
    """A Fence that holds."""

    def holds(self) -> bool:
        return True
