"""Faults befall whom they should, for as long as they say, however many of them there are at once."""

from collections import Counter
from typing import Any

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Evict, Ref
from reconciler.model.quantity import Duration
from reconciler.ports import Wished
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import Stockout
from reconciler.simulate.actors.karpenter.karpenter import Karpenter
from reconciler.simulate.controller import SimulatedController
from reconciler.simulate.objects import says
from reconciler.simulate.runner.faults import Faults, FaultTargets
from reconciler.simulate.scenario.spec import ScenarioFault
from tests.stages.buying.purchases import market
from tests.unit.plan.some_reasons import some_reason
from tests.unit.simulate.controller.test_controller import wish
from tests.unit.simulate.stage import START, Small, node, pod, template, workload


class Stricken:
    """Owner of a controller and a Karpenter that faults befall; times are in seconds."""

    def __init__(self, *faults: ScenarioFault) -> None:
        self.there = Small(node("n1")).start()
        self.told: list[tuple[int, str]] = []
        self.controller = SimulatedController(self)
        self.karpenter = Karpenter(market())
        self.controller.start(self.there.stage)
        crew = self.there
        victims = FaultTargets(self.controller, self.karpenter, crew.failures, crew.workloads, crew.kubelets)
        Faults(list(faults), victims, self._tell).start(self.there.stage)

    def wish(self, cluster_uid: str) -> Wished:
        return Wished(wish())

    def _tell(self, at: Instant, told: str) -> None:
        self.told.append(((at - START) // 1_000, told))

    def is_there(self, *seconds: int) -> list[bool]:
        return [self.there.until(each) is not None and self.controller.holds() for each in seconds]

    def delays(self, *seconds: int) -> list[int]:
        return [self.there.until(each) is not None and self.controller.watch_delay_ms for each in seconds]

    def _lacks_all(self) -> bool:
        return any(each.covers(Stockout()) for each in self.karpenter.cloud.sold_out)

    def lacks(self, *seconds: int) -> list[bool]:
        return [self.there.until(each) is not None and self._lacks_all() for each in seconds]


def fault(kind: str, at: int, lasts: int = 0, **more: Any) -> ScenarioFault:
    times = {"at": Duration(at * 1_000), "lasts": Duration(lasts * 1_000) if lasts else None}
    every = more.pop("every", 0)
    return ScenarioFault(fault=kind, every=Duration(every * 1_000) if every else None, **times, **more)  # type: ignore[arg-type]


def test_a_crash_brings_back_no_controller_that_is_absent() -> None:
    stricken = Stricken(fault("ControllerAbsent", 10, 100), fault("ControllerCrash", 20))
    assert stricken.is_there(5, 15, 30, 100, 115) == [True, False, False, False, True]
    assert (20, "no controller is running") in stricken.told


def test_a_restart_that_is_due_does_not_end_an_absence_that_has_begun() -> None:
    stricken = Stricken(fault("ControllerCrash", 10), fault("ControllerAbsent", 11, 100))
    assert stricken.is_there(5, 10, 13, 100, 112) == [True, False, False, False, True]


def test_a_crashed_controller_starts_again() -> None:
    assert Stricken(fault("ControllerCrash", 10)).is_there(9, 11, 13) == [True, False, True]


def test_absences_that_overlap_are_over_when_the_last_is() -> None:
    again = Stricken(fault("ControllerAbsent", 10, 50, every=30))
    assert again.is_there(5, 15, 65, 100, 1_000) == [True, False, False, False, False]
    assert "the controller runs again" not in [told for _, told in again.told]
    two = Stricken(fault("ControllerAbsent", 10, 50), fault("ControllerAbsent", 20, 100))
    assert two.is_there(65, 125) == [False, True]
    assert [at for at, told in two.told if told == "the controller runs again"] == [120]


def test_delays_that_overlap_are_over_when_the_last_is() -> None:
    late, later = {"delay": Duration(5_000)}, {"delay": Duration(9_000)}
    two = Stricken(fault("LateWatch", 10, 50, **late), fault("LateWatch", 20, 20, **later))
    assert two.delays(5, 15, 30, 50, 70) == [200, 5_000, 9_000, 5_000, 200]
    assert [at for at, told in two.told if told == "watches are on time again"] == [60]
    again = Stricken(fault("LateWatch", 10, 50, every=30, **late))
    assert again.delays(65, 75, 100) == [5_000] * 3


def test_what_is_out_of_stock_twice_is_back_when_both_are_over() -> None:
    again = Stricken(fault("StockOut", 10, 50, every=30))
    assert again.lacks(5, 15, 65, 100) == [False, True, True, True]
    two = Stricken(fault("StockOut", 10, 50), fault("StockOut", 20, 20), fault("StockOut", 30, 10, zone="a"))
    assert two.lacks(15, 45, 65) == [True, True, False]
    assert two.told[0] == (10, "no machine can be launched")
    assert [each for each in two.told if each[1].endswith("again")] == [(60, "machines can be launched again")]


def test_what_a_stock_out_covers() -> None:
    there = Stockout(instance_type="p4d", zone="a")
    assert Stockout(zone="a").covers(there)
    assert not Stockout(zone="b").covers(there)
    assert not there.covers(msgspec.structs.replace(there, zone=""))


def test_nobody_dies_where_nobody_is_there() -> None:
    stricken = Stricken(fault("NodeDeath", 10, pool="a100"))
    stricken.there.until(11)
    assert stricken.told == [(10, "no machine of a100 exists that could die")]


def test_a_node_is_not_ready_for_a_while_and_so_are_its_pods() -> None:
    stricken = Stricken(fault("NodeNotReady", 30, 60), fault("NodeNotReady", 60, 60))
    stricken.there.world.put(workload("ReplicaSet", "web", template()))
    for at, ready in ((29, "True"), (31, "False"), (95, "False"), (121, "True")):
        stricken.there.until(at)
        (web,) = stricken.there.world.of("Pod")
        assert all(says(each, "Ready", ready) for each in (stricken.there.get("Node", "n1"), web))
        shut = {each["key"] for each in stricken.there.get("Node", "n1")["spec"]["taints"]}
        assert ("node.kubernetes.io/not-ready" in shut) == (ready == "False")
    assert stricken.told[0] == (30, "1 node is not ready: n1")


def test_pods_of_a_node_that_is_not_ready_for_long_are_made_anew() -> None:
    stricken = Stricken(fault("NodeNotReady", 30, 600))
    stricken.there.world.put(workload("ReplicaSet", "web", template()))
    stricken.there.until(400)
    assert stricken.there.pods() == {"web-00002": ("", "Pending")}


def test_where_a_kubelet_is_gone_pods_stay_terminating_until_it_is_back() -> None:
    stricken = Stricken(fault("KubeletDown", 30, 1_000))
    stricken.there.world.put(workload("ReplicaSet", "web", template()))
    for at, ready in ((69, "True"), (71, "Unknown"), (1_029, "Unknown"), (1_031, "True")):
        stricken.there.until(at)
        node = stricken.there.get("Node", "n1")
        assert says(node, "Ready", ready)
        keys = {each["key"] for each in node["spec"]["taints"]}
        assert ("node.kubernetes.io/unreachable" in keys) == (ready == "Unknown")
        if at == 1_029:
            (leaving, _) = stricken.there.world.of("Pod")
            assert leaving["metadata"]["deletionTimestamp"]
    assert stricken.there.until(1_060).pods() == {"web-00002": ("n1", "Running")}
    assert stricken.told == [(30, "1 kubelet stops: n1"), (1_030, "kubelets run again")]


def test_a_kubelet_that_is_back_before_anybody_notices_leaves_nothing_behind() -> None:
    stricken = Stricken(fault("KubeletDown", 30, 20))
    stricken.there.world.put(workload("ReplicaSet", "web", template()))
    node = stricken.there.until(200).get("Node", "n1")
    assert (says(node, "Ready"), node["spec"]["taints"]) == (True, [])
    assert stricken.there.pods() == {"web-00001": ("n1", "Running")}


def test_a_node_that_died_is_not_ready_again() -> None:
    stricken = Stricken(fault("NodeNotReady", 10, 60), fault("NodeDeath", 20))
    stricken.there.until(100)
    assert says(stricken.there.get("Node", "n1"), "Ready", "Unknown")


def test_evictions_fail_in_every_way_there_is_and_then_no_more() -> None:
    stricken = Stricken(fault("EvictionsFail", 10, 100))
    for number in range(60):
        stricken.there.world.put(bound(f"web-{number}"))
    stricken.there.until(11)
    asked = [evict(f"web-{number}") for number in range(50)]
    ended = Counter((each.result, each.detail.partition(":")[0]) for each in stricken.controller.apply(asked, Holds()))
    gone = 50 - sum(not each["metadata"].get("deletionTimestamp") for each in stricken.there.world.of("Pod")) + 10
    assert {result for result, _ in ended} == {"done", "retry", "unknown"}
    assert {"the API server responded 429", "the API server responded 500"} <= {told for _, told in ended}
    assert ended["done", ""] < gone < ended["done", ""] + ended["unknown", "no answer came"]
    stricken.there.until(120)
    (after,) = stricken.controller.apply([evict("web-55")], Holds())
    assert after.result == "done"


def test_kubelets_and_those_who_make_pods_are_late_for_a_while() -> None:
    late = {"delay": Duration(100_000)}
    stricken = Stricken(fault("SlowKubelets", 10, 50, **late), fault("SlowWorkloads", 200, 50, **late))
    stricken.there.until(20).world.put(workload("ReplicaSet", "web", template()))
    assert stricken.there.until(100).pods() == {"web-00001": ("n1", "Pending")}
    assert stricken.there.until(140).pods() == {"web-00001": ("n1", "Running")}
    stricken.there.until(210).world.put(workload("ReplicaSet", "api", template()))
    assert "api-00001" not in stricken.there.until(300).pods()
    assert "api-00001" in stricken.there.until(320).pods()
    assert (60, "pods start and end as usual") in stricken.told


def bound(name: str) -> Object:
    return pod(name, gpus=0, nodeName="n1") | {"status": {"phase": "Running"}}


def evict(name: str) -> Decision:
    return Decision("tests", Ref("Pod", "default", name), Evict(grace_seconds=30), some_reason("Tests"))


class Holds:
    """A Fence."""

    def holds(self) -> bool:
        return True
