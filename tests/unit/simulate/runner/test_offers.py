"""What goes wrong in a scenario befalls whom it is meant for, for as long as it says, and is told."""

import pytest

from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.model.quantity import Duration
from reconciler.simulate.actors.kubelets import Kubelets, NodeFailures
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.runner.faults import Faults, FaultTargets
from reconciler.simulate.scenario.spec import ScenarioFault
from tests.lab.capacity import P4D, P5, NodePool
from tests.lab.fleet import Pod
from tests.unit.simulate.controller.test_controller import Play
from tests.unit.simulate.site import Site, labelled


def site_with(*faults: ScenarioFault) -> tuple[Site, list[str]]:
    """A controller is there, and has nothing to do with it."""
    site, told = Site(NodePool("a100", [P4D, P5])), list[str]()
    victims = FaultTargets(Play().controller, site.karpenter, NodeFailures(), Workloads(), Kubelets())
    Faults(list(faults), victims, lambda _, sentence: told.append(sentence)).start(site.stage)
    return site, told


def test_what_is_not_offered_for_a_while_is_bought_elsewhere_and_then_again() -> None:
    site, told = site_with(
        ScenarioFault(
            fault="NotOffered", at=Duration(0), lasts=Duration(100_000), instance_type=P4D.name, zone="eu-1a"
        ),
        ScenarioFault(fault="NotOffered", at=Duration(0), lasts=Duration(200_000), instance_type=P5.name),
    )
    site.put(*[Pod(f"first-{number}", gpus=8) for number in range(9)])
    site.run(60)
    assert set(labelled(site, names.INSTANCE_TYPE)) == {P4D.name}
    assert "eu-1a" not in labelled(site, names.ZONE)
    assert told == ["p4d.24xlarge in eu-1a is not offered", "p5.48xlarge is not offered"]
    site.run(200)
    assert told[2:] == ["p4d.24xlarge in eu-1a is offered again", "p5.48xlarge is offered again"]


def test_what_is_short_is_asked_for_once_in_three_minutes_and_what_is_not_offered_never() -> None:
    def launches(fault: ScenarioFault) -> int:
        site, _ = site_with(fault)
        site.put(Pod("train", gpus=8))
        site.run(400)
        return sum(what.startswith("launch ") for _, what in site.events)

    assert launches(ScenarioFault(fault="NotOffered", at=Duration(0), capacity_type="on-demand")) == 0
    assert launches(ScenarioFault(fault="StockOut", at=Duration(0), capacity_type="on-demand")) == 3


@pytest.mark.parametrize("after_writes", [0, 2])
def test_a_controller_is_killed_at_once_or_between_two_writes(after_writes: int) -> None:
    play, told = Play(), list[str]()
    play.there.until(5)
    pools = play.pools()
    play.writes.clear()
    fault = ScenarioFault(fault="ControllerCrash", at=Duration(0), after_writes=after_writes)
    victims = FaultTargets(play.controller, Site().karpenter, NodeFailures(), Workloads(), Kubelets())
    Faults([fault], victims, lambda _, sentence: told.append(sentence)).start(play.there.stage)
    for name in pools:
        play.there.world.delete(Ref("NodePool", "", name))
    play.there.until(6)
    assert len(play.writes) == after_writes
    play.there.until(60)
    assert sorted(play.writes) == [f"NodePool/{name}" for name in pools], "none is repeated"
    assert told == [f"the controller crashes{' after 2 more writes' if after_writes else ''}"]
