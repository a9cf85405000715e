"""Pods may leave nodes that are not drained only because of pressure, and no more pods than needed."""

from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition
from reconciler.model.policy.scaling import Pressure, PressurePolicy
from reconciler.model.quantity import Percent, Quantity
from reconciler.simulate.invariants.evictions import OffDrained
from tests import builders
from tests.unit.simulate.invariants.test_drains import move, running, wait
from tests.unit.simulate.invariants.test_monitor import Site

Json = dict[str, Any]


def policy(**fields: Any) -> PressurePolicy:
    bounds = {"cpu": Pressure(system=Quantity.parse("2"), watermark=Percent.parse("80%"))}
    units = {"cpu": Quantity.parse("1")}
    return PressurePolicy(**{"pool_names": ["a100"], "resources": bounds, "compute_unit": units, **fields})


def elastic(name: str, cpu: str, scheduler: str = names.GPU_SCHEDULER, bounds: str = "cpu=1..9") -> Json:
    body = running(name, "p0", 0, annotations={names.ELASTIC: bounds} if bounds else {})
    body["spec"]["schedulerName"] = scheduler
    body["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return body


def site_with(*pods: Json, **fields: Any) -> Site:
    """A node with 12 CPUs: 10 are reservable, and the watermark is 8."""
    site = Site(pressure=policy(**fields))
    labels = {names.KARPENTER_POOL: "a100", names.HOSTNAME: "p0"}
    has, ready = {"pods": "110", "cpu": "12"}, (Condition("Ready", "True"),)
    site.world.put(builders.manifest(builders.node("p0", has=has, labels=labels, conditions=ready)))
    for each in pods:
        site.world.put(each)
    wait(site, 120)
    return site


def is_broken(site: Site) -> bool:
    return OffDrained.rule in site.rules


def test_an_elastic_pod_may_leave_a_node_above_its_watermark() -> None:
    site = site_with(elastic("web-0", "5"), elastic("api-0", "3500m"))
    move(site, "web-0")
    assert not is_broken(site)


@pytest.mark.parametrize(
    "pods",
    [
        (elastic("web-0", "5"), elastic("api-0", "3")),
        (elastic("web-0", "5", bounds=""), elastic("api-0", "4")),
        (elastic("web-0", "5", scheduler="default-scheduler"), elastic("api-0", "9")),
        (elastic("web-0", "5"), elastic("api-0", "4", scheduler="default-scheduler")),
    ],
    ids=["at the watermark", "not elastic", "of another scheduler", "the other is the system's"],
)
def test_no_other_pod_may(pods: tuple[Json, ...]) -> None:
    site = site_with(*pods)
    move(site, "web-0")
    assert is_broken(site)


@pytest.mark.parametrize("fields", [{"suspend": True}, {"migration": "None"}, {"pool_names": ["others"]}])
def test_none_may_where_no_policy_moves_pods(fields: Json) -> None:
    site = site_with(elastic("web-0", "5"), elastic("api-0", "4"), **fields)
    move(site, "web-0")
    assert is_broken(site)


def test_a_second_pod_may_not_leave_when_the_first_was_enough() -> None:
    site = site_with(elastic("web-0", "5"), elastic("api-0", "4"))
    move(site, "web-0")
    assert not is_broken(site)
    move(site, "api-0")
    assert is_broken(site)


def test_a_second_pod_may_leave_when_the_first_was_not_enough() -> None:
    site = site_with(elastic("web-0", "1"), elastic("api-0", "3"), elastic("db-0", "8"))
    move(site, "web-0")
    move(site, "api-0")
    assert not is_broken(site)
