"""How empty nodes may leave: each rule is broken once by hand, and told; what scaling does breaks none."""

from collections.abc import Callable

import pytest

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.model.policy.scaling import NodeProvisioner
from tests.unit.simulate.invariants.test_monitor import DRAINING, US, Site, pod

EARLY = "nodes are deleted only after their delay, and 30 s after NoSchedule"
MIN = "reconciler brings no pool below minSize"
IDLE = "reconciler taints no node in use for deletion"


def scaled(min_size: int = 0) -> Site:
    wish = NodeProvisioner(pool_name="a100", min_size=min_size, max_size=10, min_gpu_utilization_percent=80)
    return Site(provisioner=wish)


def mark(site: Site, name: str, effect: str, ahead_seconds: int) -> None:
    value = str(site.stage.now // 1_000 + ahead_seconds)
    site.taint(name, {"key": names.DELETION_TIME, "value": value, "effect": effect})


def harden(site: Site, name: str) -> None:
    (taint,) = site.world.get(Ref("Node", "", name))["spec"]["taints"]  # type: ignore[index]
    site.taint(name, {**taint, "effect": "NoSchedule"})


def wait(site: Site, seconds: int) -> None:
    site.stage.engine.run(Instant(site.stage.now + 1_000 * seconds))


def delete(site: Site, name: str, by: str = US) -> None:
    site.world.delete(Ref("Node", "", name), by)


def leave(site: Site, name: str) -> None:
    """As scaling lets a node go."""
    mark(site, name, "PreferNoSchedule", 600)
    wait(site, 570)
    harden(site, name)
    wait(site, 30)
    delete(site, name)


def unmarked(site: Site) -> None:
    delete(site, "n1")


def soft(site: Site) -> None:
    mark(site, "n1", "PreferNoSchedule", 60)
    wait(site, 600)
    delete(site, "n1")


def hard_too_shortly(site: Site) -> None:
    mark(site, "n1", "PreferNoSchedule", 60)
    wait(site, 600)
    harden(site, "n1")
    wait(site, 29)
    delete(site, "n1")


def marked_too_shortly(site: Site) -> None:
    mark(site, "n1", "NoSchedule", 59)
    wait(site, 59)
    delete(site, "n1")


def before_its_time(site: Site) -> None:
    mark(site, "n1", "NoSchedule", 600)
    wait(site, 599)
    delete(site, "n1")


@pytest.mark.parametrize("how", [unmarked, soft, hard_too_shortly, marked_too_shortly, before_its_time])
def test_a_node_that_is_deleted_too_early_is_told(how: Callable[[Site], None]) -> None:
    site = scaled()
    how(site)
    assert site.rules == {EARLY}


def test_a_pool_below_its_least_size_is_told() -> None:
    site = scaled(min_size=3)
    leave(site, "n1")
    assert site.rules == set()
    leave(site, "n2")
    assert site.rules == {MIN}


def test_nodes_that_others_took_away_in_the_last_minute_may_not_have_been_known_of() -> None:
    for seconds, rules in ((59, set[str]()), (61, {MIN})):
        site = scaled(min_size=3)
        mark(site, "n1", "NoSchedule", 60)
        wait(site, 600)
        delete(site, "n2", "karpenter")
        wait(site, seconds)
        delete(site, "n1")
        assert site.rules == rules


def test_a_node_in_use_that_is_marked_is_told_once_that_could_be_known() -> None:
    site = scaled()
    site.world.put(pod("late", "n1"))
    mark(site, "n1", "PreferNoSchedule", 600)
    assert site.rules == set()
    mark(site, "n0", "PreferNoSchedule", 600)
    assert site.rules == {IDLE}


def test_as_scaling_lets_nodes_go_nothing_is_broken() -> None:
    site = scaled(min_size=2)
    leave(site, "n1")
    site.taint("n2", DRAINING)
    delete(site, "n2")
    assert site.rules == set()
