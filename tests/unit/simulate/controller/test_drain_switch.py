"""A DrainPolicy is changed while it is at work: limits hold from then on, and what was begun goes on."""

import pytest
import yaml

from reconciler.plan.drain.codes.candidacy import NoDrainPolicy
from reconciler.plan.drain.codes.emptying import BatchTorn, Drained, DrainedNodeDeleted, GivenBack
from tests.stages.scaling.drawn import Json, Outcome, played, pool

NODES, MANY = 24, 6
TO_ONE, TO_MANY = 30, 80  # minutes, at which the policy changes: first amid a batch, then amid a drain alone


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Six at a time, then one, then six; a pod takes twenty minutes to end."""
    limits = ((0, MANY), (TO_ONE, 1), (TO_MANY, MANY))
    scenario = {
        "duration": "4h",
        "warmUp": "5m",
        "policies": [
            {"at": f"{at}m", "files": {"all.yaml": yaml.safe_dump_all([pool("a100"), drains(most)])}}
            for at, most in limits
        ],
        "cluster": {"nodes": [{"pool": "a100", "count": NODES}]},
        "workloads": [
            {"name": "old", "gpus": 5, "constant": {"pods": NODES}, "ends": "10m"},
            {"name": "web", "gpus": 3, "constant": {"pods": NODES}, "maxUnavailable": NODES, "grace": "20m"},
        ],
    }
    return played(tmp_path_factory.mktemp("switch"), [], scenario)


def drains(parallelism: int) -> Json:
    spec = {
        "poolNames": ["a100"],
        "maxDrainParallelism": parallelism,
        "maxScaleDownParallelism": parallelism,
        "maxGracefulTerminationSeconds": 1_200,
    }
    return {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": "drains"}, "spec": spec}


def limit_at(minutes: float) -> int:
    return 1 if TO_ONE <= minutes < TO_MANY else MANY


def begun(outcome: Outcome) -> list[tuple[float, int]]:
    """When each drain began, in minutes, and how many were under way then."""
    found, under_way = [], set[str]()
    for each in outcome.told:
        if each.reason == DrainedNodeDeleted.__name__:
            under_way.remove(each.node)
        elif each.reason == Drained.__name__:
            under_way.add(each.node)
            found.append(((each.at - outcome.play.start) / 60_000, len(under_way)))
    return found


def test_no_more_are_under_way_when_one_begins_than_the_policy_says_by_then(outcome: Outcome) -> None:
    assert [(at, many) for at, many in begun(outcome) if many > limit_at(at)] == []


def test_each_policy_had_its_time(outcome: Outcome) -> None:
    """Else the other tests would tell nothing."""
    before = [many for at, many in begun(outcome) if at < TO_ONE]
    meanwhile = [many for at, many in begun(outcome) if TO_ONE <= at < TO_MANY]
    after = [many for at, many in begun(outcome) if at >= TO_MANY]
    assert max(before) == MANY
    assert len(meanwhile) > 1
    assert max(after) > 1


def test_what_was_begun_goes_on_and_nothing_is_given_back(outcome: Outcome) -> None:
    given_back = {each.__name__ for each in (GivenBack, BatchTorn, NoDrainPolicy)}
    assert given_back.isdisjoint(each.reason for each in outcome.told)
    started = [each.node for each in outcome.told if each.reason == Drained.__name__]
    assert len(started) == len(set(started)) == NODES // 2
    assert sorted(started) == sorted(each.node for each in outcome.told if each.reason == DrainedNodeDeleted.__name__)
    assert outcome.simulated.broken == ()
    assert outcome.simulated.sums.pending_pods == 0
