"""The pressure desk: who gets which permit, and which asks change nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.pressure import ElasticPod
from reconciler.protocol.asks import AskAnswer, AskMessage, PodName, Refusal, read_ask
from reconciler.protocol.permits import VALID_MS, Permit, PermitKeys
from reconciler.protocol.pressure_desk import Destination, PressureDesk
from tests import builders
from tests.unit.protocol.pressure_stage import NOW, TEAM, Agent, elastic, leading, node, policy

GI = 2**30


def ledger(desk: PressureDesk, name: str = "n0") -> NodeLedger:
    found = desk.ledger(name)
    assert found is not None
    return found


def permitted(answer: AskAnswer | Refusal) -> dict[str, int]:
    assert isinstance(answer, AskAnswer), answer
    return answer.permit


def test_an_agent_gets_what_it_asks_for_where_there_is_room() -> None:
    desk = leading(node("n0"), elastic("a", "n0"))
    assert permitted(Agent(desk, "a").ask(vCPUs=4_000, mem=8 * GI)) == {"vCPUs": 4_000, "mem": 8 * GI}
    assert ledger(desk).reserved("cpu") == 4_000


def test_kubernetes_quantities_are_accepted() -> None:
    desk = leading(node("n0"), elastic("a", "n0"))
    assert permitted(Agent(desk, "a").ask(vCPUs="4", mem="8Gi")) == {"vCPUs": 4_000, "mem": 8 * GI}
    assert permitted(Agent(desk, "a").ask(vCPUs="2500m")) == {"vCPUs": 2_500}


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "a negative amount": ({"vCPUs": -250}, 400, "is no amount"),
    "a huge amount": ({"vCPUs": 2**60}, 400, "is no amount"),
    "a huge quantity": ({"mem": "9999999999999E"}, 400, "is no amount"),
    "a negative quantity": ({"mem": "-1Gi"}, 400, "is no amount"),
    "a text that is no quantity": ({"mem": "much"}, 400, "is no amount"),
    "an empty text": ({"mem": ""}, 400, "is no amount"),
    "a part of a byte": ({"mem": "1m"}, 400, "is no amount"),
    "a part of a thousandth": ({"vCPUs": "1u"}, 400, "is no amount"),
    "no resource": ({}, 400, "resources is empty"),
    "one resource by two names": ({"vCPUs": 250, "cpu": 250}, 400, "twice"),
    "an unknown resource": ({"vCPUs": 250, "disks": 1}, 400, "no elastic resource"),
    "no multiple of the compute unit": ({"vCPUs": 300}, 400, "no multiple of the compute unit 250"),
    "more than the pod declares": ({"vCPUs": 8_250}, 400, "declares 250 to 8000"),
    "less than the pod declares": ({"vCPUs": 0}, 400, "declares 250 to 8000"),
    "more of one resource than declared": ({"vCPUs": 250, "mem": 33 * GI}, 400, "declares"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_ask_is_refused_with_a_sentence_and_changes_nothing(name: str) -> None:
    resources, status, words = REFUSED[name]
    desk = leading(node("n0"), elastic("a", "n0"))
    agent = Agent(desk, "a")
    agent.ask(vCPUs=2_000)
    before = list(ledger(desk).pods)
    answer = agent.ask(**resources)
    assert isinstance(answer, Refusal)
    assert (answer.status, words in answer.sentence) == (status, True), answer.sentence
    assert list(ledger(desk).pods) == before


@pytest.mark.parametrize("version", [-1, 0, 3, 1_000])
def test_a_version_outside_the_range_is_refused(version: int) -> None:
    answer = Agent(leading(node("n0"), elastic("a", "n0")), "a", version).ask(vCPUs=250)
    assert answer == Refusal(400, f"protoVersion {version} is not supported: use 1 to 2")


@pytest.mark.parametrize("load", [-1, float("nan"), float("inf"), "high", True, 10**7])
def test_a_load_that_is_no_load_is_refused(load: Any) -> None:
    found = read_ask(AskMessage(2, PodName(TEAM, "a"), {"vCPUs": 250}, metrics={"loadAvg1M": load}))
    assert isinstance(found, Refusal)
    assert "loadAvg1M" in found.sentence


ABSENT: dict[str, tuple[Callable[[PressureDesk], Any], int, str]] = {
    "the pod is gone": (lambda desk: desk.drop_pod(elastic("a", "n0")), 404, "is not on a node"),
    "the pod has ended": (lambda desk: desk.put_pod(elastic("a", "n0", phase="Succeeded")), 404, "is not on a node"),
    "another scheduler placed the pod": (
        lambda desk: desk.put_pod(elastic("a", "n0", scheduler_name="default-scheduler")),
        404,
        "another scheduler",
    ),
    "the pod is being deleted": (
        lambda desk: desk.put_pod(elastic("a", "n0", deletion_timestamp="2026-01-01T00:00:00Z")),
        409,
        "is being deleted",
    ),
    "the node is gone": (lambda desk: desk.drop_node("n0"), 404, "no PressurePolicy names the pool"),
    "no policy names the pool any more": (lambda desk: desk.set_policies(()), 404, "no PressurePolicy names the pool"),
    "the policy is suspended": (lambda desk: desk.set_policies((policy(suspend=True),)), 503, "is suspended"),
    "the pod is not elastic": (lambda desk: desk.put_pod(elastic("a", "n0", bounds="")), 404, "no readable annotation"),
    "the bounds cannot be read": (
        lambda desk: desk.put_pod(elastic("a", "n0", bounds="cpu=8..1")),
        404,
        "no readable annotation",
    ),
    "the replica does not lead any more": (lambda desk: desk.end_term(), 503, "does not lead"),
}


@pytest.mark.parametrize("name", ABSENT)
def test_nothing_is_permitted_once(name: str) -> None:
    change, status, words = ABSENT[name]
    desk = leading(node("n0"), elastic("a", "n0"))
    agent = Agent(desk, "a")
    permitted(agent.ask(vCPUs=2_000))
    change(desk)
    answer = agent.ask(vCPUs=2_000)
    assert isinstance(answer, Refusal)
    assert (answer.status, words in answer.sentence) == (status, True), answer.sentence
    assert bool(answer.retry_seconds) is (status == 503)


def test_a_pod_of_the_same_name_with_a_new_uid_is_another_pod() -> None:
    desk = leading(node("n0"), elastic("a", "n0", uid="old"))
    agent = Agent(desk, "a")
    permitted(agent.ask(vCPUs=8_000))
    desk.put_pod(elastic("a", "n0", uid="new"))
    answer = agent.ask(vCPUs=2_000, uid="old")
    assert isinstance(answer, Refusal)
    assert answer.status == 409
    desk.drop_pod(elastic("a", "n0", uid="old"))
    assert ledger(desk).reserved("cpu") == 2_000
    assert permitted(agent.ask(vCPUs=2_500, uid="new")) == {"vCPUs": 2_500}


# --- Compute units.


def test_an_ask_is_checked_against_the_unit_that_the_agent_was_told_last() -> None:
    desk = leading(node("n0"), elastic("a", "n0"))
    agent = Agent(desk, "a")
    assert permitted(agent.ask(vCPUs=2_250)) == {"vCPUs": 2_250}
    assert agent.unit == {"vCPUs": 250, "mem": GI}
    desk.set_policies((policy(unit="500m"),))
    assert permitted(agent.ask(vCPUs=2_750)) == {"vCPUs": 2_750}  # the agent cannot know the new unit
    assert agent.unit == {"vCPUs": 500, "mem": GI}
    assert isinstance(agent.ask(vCPUs=2_750), Refusal)
    assert permitted(agent.ask(vCPUs=3_000)) == {"vCPUs": 3_000}


def test_an_agent_that_did_not_receive_the_new_unit_may_ask_with_the_old_one() -> None:
    desk = leading(node("n0"), elastic("a", "n0"))
    agent = Agent(desk, "a")
    agent.ask(vCPUs=2_250)
    desk.set_policies((policy(unit="500m"),))
    agent.ask(vCPUs=2_750, is_lost=True)
    assert permitted(agent.ask(vCPUs=2_250)) == {"vCPUs": 2_250}


def test_after_a_restart_the_unit_of_the_earlier_controller_counts_once() -> None:
    desk = leading(node("n0"), elastic("a", "n0"), policies=(policy(unit="400m"),))
    agent = Agent(desk, "a")
    agent.unit = {"vCPUs": 250, "mem": GI}
    assert permitted(agent.ask(vCPUs=2_250)) == {"vCPUs": 2_250}
    assert isinstance(agent.ask(vCPUs=2_250), Refusal)


# --- Restarts and permits.


def silent(desk: PressureDesk, name: str = "a") -> bool:
    pod = ledger(desk).get(f"uid-{name}")
    assert isinstance(pod, ElasticPod)
    return pod.is_silent


def test_at_the_beginning_of_a_term_all_elastic_pods_are_silent() -> None:
    desk = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    assert ledger(desk).reserved("cpu") == 16_000
    assert ledger(desk).pressure("cpu")[:3] == (16_000, 12_000, 0)


def test_a_pod_that_comes_during_the_term_is_not_silent() -> None:
    desk = leading(node("n0"))
    desk.put_pod(elastic("a", "n0"))
    assert not silent(desk)
    assert ledger(desk).reserved("cpu") == 2_000


def test_a_signed_permit_is_believed_by_the_next_leader() -> None:
    desk = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    agents = [Agent(desk, name) for name in ("a", "b")]
    for agent in agents:
        agent.ask(vCPUs=2_000)
    assert permitted(agents[0].ask(vCPUs=8_000)) == {"vCPUs": 8_000}
    following = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    agents[0].desk = following
    assert permitted(agents[0].ask(vCPUs=8_000)) == {"vCPUs": 8_000}


def _signed(key: bytes, uid: str, node_name: str, expires: int = NOW + VALID_MS) -> str:
    return PermitKeys((key,)).sign(Permit(uid, node_name, {"cpu": 8_000}, 1, Instant(expires)))


GOOD = _signed(b"key", "uid-a", "n0")
FORGED = {
    "no signature": "",
    "another text": GOOD.replace(".", "A.", 1),
    "another signature": GOOD[:-4] + "AAAA",
    "no text": ".",
    "no base64": "é.ü",
    "a long text": "A" * 100_000,
    "another key": _signed(b"other", "uid-a", "n0"),
    "another pod": _signed(b"key", "uid-b", "n0"),
    "another node": _signed(b"key", "uid-a", "n1"),
    "an expired permit": _signed(b"key", "uid-a", "n0", expires=NOW),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_permit_that_proves_nothing_is_not_believed(name: str) -> None:
    desk = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    agent = Agent(desk, "a")
    agent.token = FORGED[name]
    assert permitted(agent.ask(vCPUs=8_000)) == {"vCPUs": 7_000}  # beside the 8 cpus that b may have


def test_older_keys_are_still_believed() -> None:
    desk = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    desk.keys = PermitKeys((b"new", b"key"))
    agent = Agent(desk, "a")
    agent.token = GOOD
    assert permitted(agent.ask(vCPUs=8_000)) == {"vCPUs": 8_000}


def test_a_permit_is_read_only_from_silent_pods() -> None:
    desk = leading(node("n0", cpu="5"), elastic("a", "n0"))
    agent = Agent(desk, "a")
    assert permitted(agent.ask(vCPUs=2_000)) == {"vCPUs": 2_000}
    agent.token = GOOD
    assert permitted(agent.ask(vCPUs=8_000)) == {"vCPUs": 4_000}


def test_agents_of_the_first_version_return_no_permit() -> None:
    desk = leading(node("n0"), elastic("a", "n0"), elastic("b", "n0"))
    agent = Agent(desk, "a", version=1)
    agent.token = GOOD
    assert permitted(agent.ask(vCPUs=8_000)) == {"vCPUs": 7_000}


def test_a_resize_that_the_kubelet_has_not_enacted_keeps_the_larger_amount() -> None:
    large = {"cpu": "4", "memory": "4Gi"}
    desk = leading(node("n0"), elastic("a", "n0", cpu="4", has=large))
    agent = Agent(desk, "a")
    assert permitted(agent.ask(vCPUs=1_000)) == {"vCPUs": 1_000}
    desk.put_pod(elastic("a", "n0", cpu="1", has=large))
    assert ledger(desk).reserved("cpu") == 4_000
    desk.put_pod(elastic("a", "n0", cpu="1", has={"cpu": "1", "memory": "4Gi"}))
    assert ledger(desk).reserved("cpu") == 1_000


# --- Who counts.


def test_only_pods_of_our_scheduler_count() -> None:
    other = builders.pod("other", asks={"cpu": "3"}, node_name="n0")
    ours = builders.pod("ours", asks={"cpu": "2500m"}, node_name="n0", scheduler_name=names.GPU_SCHEDULER)
    desk = leading(node("n0"), other, ours)
    assert ledger(desk).reserved("cpu") == 3_000  # 2500m in whole cpus


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0)])
def test_policies_nodes_and_pods_may_be_observed_in_any_order(order: tuple[int, ...]) -> None:
    desk = PressureDesk()
    changes = [
        lambda: desk.set_policies((policy(),)),
        lambda: desk.put_node(node("n0")),
        lambda: desk.put_pod(elastic("a", "n0")),
    ]
    for number in order:
        changes[number]()
    desk.begin_term(1)
    assert ledger(desk).reserved("cpu") == 8_000


def test_one_policy_for_all_pools_leaves_nodes_without_a_pool_alone() -> None:
    desk = leading(node("n0"), node("n1", pool=""), policies=(policy(pools=("*",)),))
    assert [name for name, _ in desk.ledgers] == ["n0"]


def test_a_planner_does_not_see_the_room_that_is_reserved_for_its_own_migrations() -> None:
    desk = leading(node("n0"), node("n1"), elastic("a", "n0"))
    before = desk.planning_state()
    desk.set_migrations({"uid-a": Destination("n1", f"{TEAM}/a", {"cpu": 2_000})})
    assert ledger(desk, "n1").reserved("cpu") == 2_000
    found = desk.planning_state()
    assert before is not None
    assert found is not None
    assert [(each.node, len(each.pods)) for each in found.nodes] == [("n0", 1), ("n1", 0)]
    desk.set_migrations({})
    assert ledger(desk, "n1").reserved("cpu") == 0
    assert desk.planning_state() == before
