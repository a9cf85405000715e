"""The rules about smart pods and gates: each is broken by hand, and told; what is allowed breaks none."""

from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.simulate.results.totals import SMART
from tests.unit.simulate.invariants.test_monitor import DELETION, US, Site, pod

TWICE = "there is one smart pod per need"
OUTSTAYS = "smart pods are deleted within two minutes after their node is ready"
OF_ANOTHER = "reconciler removes no scheduling gate of others"
NO_ROOM = "pods that wait for capacity are ungated only when a node has room"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
FOREIGN = "other.example.com/gate"


def smart(name: str, request: str, node: str = "", **spec: Any) -> Any:
    body = pod(name, node, 8, {names.ORIGINAL_REQUEST: request})
    body["metadata"]["labels"] = {names.COMPONENT: SMART}
    body["spec"] |= {"priority": -1_000_000_000, **spec}
    return body


def gated(gate: str = names.CAPACITY_GATE, **spec: Any) -> Any:
    body = pod("gated", "", 8)
    body["spec"] |= {"schedulingGates": [{"name": gate}], **spec}
    return {**body, "status": {"phase": "Pending"}}


def after(site: Site, seconds: int) -> None:
    """Something happens then."""
    site.stage.engine.run(Instant(site.stage.now + seconds * 1_000))
    site.world.put(pod(f"other-{site.stage.now}", "", 0))


# One for each need


def test_two_smart_pods_for_one_need_are_one_too_many() -> None:
    site = Site()
    site.world.put(smart("one", '{"key": "a", "model": "x"}'), US)
    site.world.put(smart("two", '{"key": "b"}'), US)
    site.world.edit(Ref("Pod", "default", "one"), {"metadata": {"annotations": {names.PHASE: "Pending"}}}, US)
    assert site.rules == set()
    site.world.put(smart("three", '{"key": "a"}'), US)
    assert site.rules == {TWICE}
    assert "Pod/default/one exists for a" in site.watching.broken[0].sentence


def test_what_one_pool_lacks_another_may_lack_as_well() -> None:
    site = Site()
    for name in ("a100", "l4"):
        site.world.put(smart(name, f'{{"key": "minSize/0", "pool": "{name}"}}'), US)
    assert site.rules == set()
    site.world.put(smart("again", '{"key": "minSize/0", "pool": "l4"}'), US)
    assert site.rules == {TWICE}


def test_what_could_not_be_seen_yet_is_made_twice_by_nobodys_fault() -> None:
    presence = [0]
    site = Site(presence_ms=lambda: presence[0])
    site.world.put(smart("one", '{"key": "a"}'), US)
    after(site, 20)
    site.world.put(smart("two", '{"key": "a"}'), US)
    assert site.rules == set()
    presence[0] += 1_000
    site.world.put(smart("three", '{"key": "a"}'), US)
    assert site.rules == {TWICE}


@pytest.mark.parametrize("request_", ["", "{", "[]", '{"key": 5}', "{}", '{"key": ""}'])
def test_what_can_not_be_read_is_not_judged(request_: str) -> None:
    site = Site()
    for name in ("one", "two"):
        site.world.put(smart(name, request_), US)
    assert site.rules == set()


def test_one_that_has_ended_or_is_going_leaves_room_for_the_next() -> None:
    site = Site()
    site.world.put({**smart("one", '{"key": "a"}', "n1"), "status": {"phase": "Failed"}}, US)
    site.world.put(smart("two", '{"key": "a"}', "n2"), US)
    site.world.delete(Ref("Pod", "default", "two"), US)
    site.world.put(smart("three", '{"key": "a"}'), US)
    assert site.rules == set()


# Gone in time


def arrived(site: Site, *taints: Any, tolerations: Any = ()) -> None:
    """A smart pod is on a node that turns Ready."""
    site.world.put(smart("smart", '{"key": "a"}', "n1", tolerations=list(tolerations)))
    site.edit("n1", {"status": READY, "spec": {"taints": list(taints)}}, "kubelet")


def test_a_smart_pod_that_stays_after_its_node_has_come_is_told_once() -> None:
    site = Site()
    arrived(site)
    after(site, 119)
    assert site.rules == set()
    after(site, 2)
    assert site.rules == {OUTSTAYS}
    after(site, 200)
    assert len(site.watching.broken) == 1


def test_one_that_goes_in_time_is_not() -> None:
    site = Site()
    arrived(site)
    after(site, 100)
    site.world.delete(Ref("Pod", "default", "smart"), US)
    after(site, 600)
    assert site.rules == set()


def test_while_nobody_is_there_nobody_is_late() -> None:
    presence = [0]
    site = Site(presence_ms=lambda: presence[0])
    arrived(site)
    after(site, 600)
    presence[0] = 119_000
    after(site, 1)
    assert site.rules == set()
    presence[0] = 121_000
    after(site, 1)
    assert site.rules == {OUTSTAYS}


ARRIVING = {"key": names.ARRIVING, "effect": "NoSchedule"}
UNREADY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
BORNE = [{"key": names.ARRIVING, "operator": "Exists"}]


@pytest.mark.parametrize(
    ("taints", "is_late"),
    [
        ([ARRIVING], True),
        ([UNREADY], False),
        ([DELETION], True),
    ],
    ids=["our startup taint", "one that others take off", "one that only would rather"],
)
def test_a_node_is_usable_once_only_what_the_smart_pod_bears_keeps_pods_away(taints: Any, is_late: bool) -> None:
    site = Site()
    arrived(site, *taints, tolerations=BORNE)
    after(site, 300)
    assert site.rules == ({OUTSTAYS} if is_late else set())


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"allocatable": {names.NVIDIA_GPU: "0"}}},
        {"spec": {"unschedulable": True}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"metadata": {"annotations": {names.FROZEN_UNTIL: "2030-01-01T00:00:00Z"}}},
    ],
    ids=["no devices", "cordoned", "not ready", "frozen"],
)
def test_a_node_that_is_not_usable_or_not_ours_to_touch_is_waited_for(patch: Any) -> None:
    site = Site()
    arrived(site)
    site.edit("n1", patch, "kubectl")
    after(site, 600)
    assert site.rules == set()


def test_where_the_pool_is_only_observed_nothing_is_late() -> None:
    site = Site("Observe")
    arrived(site)
    after(site, 600)
    assert site.rules == set()


# Gates


def lift(site: Site, by: str = US) -> None:
    site.world.edit(Ref("Pod", "default", "gated"), {"spec": {"schedulingGates": []}}, by)


def full(site: Site, *but: str) -> None:
    """All nodes are in use for more than a minute."""
    for name in {"n1", "n2", "n3"} - {*but}:
        site.world.put(pod(f"on-{name}", name))
    site.stage.engine.run(Instant(site.stage.now + 120_000))


@pytest.mark.parametrize(("by", "rules"), [(US, {OF_ANOTHER}), ("kueue", set())])
def test_the_gate_of_another_is_only_lifted_by_the_other(by: str, rules: set[str]) -> None:
    site = Site()
    site.world.put(gated(FOREIGN))
    lift(site, by)
    assert site.rules == rules


def test_ours_is_lifted_where_there_is_room_and_not_before() -> None:
    for free, rules in (("n2", set[str]()), ("", {NO_ROOM})):
        site = Site()
        full(site, free)
        site.world.put(gated())
        lift(site)
        assert site.rules == rules, free


@pytest.mark.parametrize(("priority", "rules"), [(0, set()), (-1_000_000_000, {NO_ROOM})])
def test_what_less_important_smart_pods_hold_is_room(priority: int, rules: set[str]) -> None:
    site = Site()
    site.world.put(smart("smart", '{"key": "a"}', "n2"))
    full(site, "n2")
    site.world.put(gated(priority=priority))
    lift(site)
    assert site.rules == rules


def test_room_that_was_taken_within_the_last_minute_was_there() -> None:
    site = Site()
    full(site, "n2")
    site.world.put(pod("quick", "n2"))
    site.world.put(gated())
    lift(site)
    assert site.rules == set()


def test_a_node_that_went_or_was_closed_within_the_last_minute_may_have_been_the_one() -> None:
    site = Site()
    full(site, "n2")
    site.world.put(gated())
    site.edit("n2", {"spec": {"unschedulable": True}}, "kubectl")
    lift(site)
    assert site.rules == set()
