"""Writing is patient where the API server asks for patience, never writes twice, and never behind a fallen fence."""

import threading

import pytest

from reconciler.kube.api_server import ApiRequest, ApiResponse
from reconciler.kube.apply.events import event_notes, pool_event_notes
from reconciler.kube.apply.fenced_writer import Bucket
from reconciler.model.plan.decision import Apply, Decision, Delete, Label, Reason, Ref, Status
from reconciler.plan.nodes.ownership import CordonedByOthers
from tests.unit.kube.apply.stage import OURS, SILENT, Act_, Lost, Scene, ScriptedServer, labelled, refusal
from tests.unit.plan.some_reasons import some_reason

BUSY = refusal(429, "TooManyRequests", "too many requests", retryAfterSeconds=3)
OVERLOADED = refusal(503, "ServiceUnavailable", "not now")
SLOW = refusal(504, "Timeout", "request did not complete")
PASSING = refusal(500, "InternalError", "etcdserver: leader changed")
ASKED_AGAIN = refusal(500, "ServerTimeout", "could not be completed at this time, please try again")
BROKEN = refusal(500, "InternalError", "runtime error: index out of range")
CONFLICT = refusal(409, "Conflict", "the object has been modified")
ATTEMPTS = 5


@pytest.mark.parametrize("trouble", [BUSY, OVERLOADED, SLOW, PASSING, ASKED_AGAIN, CONFLICT, Lost(took_effect=False)])
def test_what_passes_is_tried_again(trouble: Act_) -> None:
    server = ScriptedServer([trouble, trouble])
    assert Scene(server).label().result == "done"
    assert len(server.sent) == 3
    assert server.labels == {"app": "train", OURS: "c"}


@pytest.mark.parametrize("status", [400, 403, 405, 413, 415, 422])
def test_what_is_refused_is_not_tried_again(status: int) -> None:
    server = ScriptedServer([refusal(status, "Invalid", "it is wrong")])
    outcome = Scene(server).label()
    assert (outcome.result, outcome.detail) == ("refused", f"the API server responded {status}: it is wrong")
    assert len(server.sent) == 1


def test_what_can_t_be_made_sense_of_stops_nothing_else() -> None:
    server = ScriptedServer(looks=[ApiResponse(200, b"<html>log in first</html>")])
    outcomes = sorted(Scene(server).apply([labelled(), labelled()]), key=lambda each: each.result)
    assert [each.result for each in outcomes] == ["done", "unknown"]
    assert "aborted by a bug" in outcomes[1].detail


def test_a_500_that_does_not_say_it_passes_is_not_tried_again() -> None:
    server = ScriptedServer([BROKEN])
    assert Scene(server).label().result == "refused"
    assert len(server.sent) == 1


def test_patience_ends() -> None:
    server = ScriptedServer([OVERLOADED] * 99)
    outcome = Scene(server).label()
    assert (outcome.result, outcome.detail) == ("retry", "the API server responded 503: not now")
    assert len(server.sent) == ATTEMPTS


def test_a_wait_that_is_asked_for_is_kept() -> None:
    scene = Scene(ScriptedServer([BUSY]))
    scene.label()
    assert sum(scene.pauses_seconds) == pytest.approx(3)


def test_nobody_waits_as_long_as_an_api_server_may_ask_for() -> None:
    scene = Scene(ScriptedServer([refusal(429, retryAfterSeconds=3600)]), longest_wait_seconds=7.0)
    scene.label()
    assert sum(scene.pauses_seconds) == pytest.approx(7)


def test_what_took_effect_although_its_answer_was_lost_is_not_written_again() -> None:
    server = ScriptedServer([Lost(took_effect=True)])
    assert Scene(server).label().result == "done"
    assert len(server.sent) == 1
    assert len(server.told) == 1, "it was written, so it is told"


def test_a_timeout_of_the_server_that_took_effect_is_not_written_again() -> None:
    server = ScriptedServer([SLOW])
    server.meanwhile = lambda: server.edit({"metadata": {"labels": {OURS: "c"}}})
    assert Scene(server).label().result == "done"
    assert len(server.sent) == 1


def test_what_is_never_answered_is_unknown() -> None:
    server = ScriptedServer([Lost(took_effect=False)] * 99)
    outcome = Scene(server).label()
    assert (outcome.result, SILENT.sentence in outcome.detail) == ("unknown", True)
    assert len(server.sent) == ATTEMPTS


def test_one_write_that_is_answered_late_or_never_does_not_keep_all_others_waiting() -> None:
    now = [0.0]
    server = ScriptedServer([Lost(took_effect=False)] * 99)
    server.meanwhile = lambda: now.__setitem__(0, now[0] + 30)
    assert Scene(server, clock=lambda: now[0]).label().result == "unknown"
    assert len(server.sent) == 1
    asked_for_long = Scene(ScriptedServer([refusal(429, retryAfterSeconds=8)] * 99), clock=lambda: now[0])
    asked_for_long.on_pause = lambda: now.__setitem__(0, now[0] + 0.1)
    assert asked_for_long.label().result == "retry"
    assert len(asked_for_long.server.sent) == 3


def test_what_the_server_never_ends_in_time_is_unknown() -> None:
    server = ScriptedServer([SLOW] * 99)
    assert Scene(server).label().result == "unknown"
    assert len(server.sent) == ATTEMPTS


def test_a_budget_is_not_waited_for() -> None:
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1"}]
    server = ScriptedServer([refusal(429, "TooManyRequests", "Cannot evict pod", causes=causes)])
    scene = Scene(server)
    outcome = scene.label()
    assert (outcome.result, outcome.detail) == ("retry", causes[0]["message"])
    assert (len(server.sent), scene.pauses_seconds) == (1, [])


def test_what_was_sent_once_and_can_t_be_looked_at_any_more_is_unknown() -> None:
    server = ScriptedServer([Lost(took_effect=True)])
    server.meanwhile = lambda: server.looks.extend([OVERLOADED] * 99)
    assert Scene(server).label().result == "unknown"
    assert len(server.sent) == 1


def test_what_can_t_be_looked_at_is_not_written() -> None:
    server = ScriptedServer(looks=[OVERLOADED] * 99)
    assert Scene(server).label().result == "retry"
    server.looks = [Lost(took_effect=False)] * 99
    assert Scene(server).label().result == "retry"
    server.looks = [refusal(403, "Forbidden", "may not get")]
    assert Scene(server).label().result == "refused"
    assert server.sent == []


def test_after_a_conflict_the_other_s_write_is_kept() -> None:
    server = ScriptedServer()
    rivals = iter(range(2))

    def rival() -> None:
        for number in rivals:
            server.edit({"metadata": {"labels": {f"theirs-{number}": "yes"}}})
            break

    server.meanwhile = rival
    assert Scene(server).label().result == "done"
    assert server.labels == {"app": "train", "theirs-0": "yes", "theirs-1": "yes", OURS: "c"}
    assert len(server.sent) == 3


def test_an_endless_rival_is_given_way() -> None:
    server = ScriptedServer()
    server.meanwhile = lambda: server.edit({"metadata": {"labels": {"round": str(server.version)}}})
    scene = Scene(server)
    assert scene.label().result == "stale"
    assert len(server.sent) == ATTEMPTS
    assert scene.pauses_seconds, "after the second conflict there is a pause"


def test_a_subresource_that_is_not_served_is_refused_in_the_end() -> None:
    server = ScriptedServer([refusal(404, "NotFound", "the server could not find the requested resource")] * 99)
    decision = Decision("tests", Ref("Pod", "team-a", "train"), Status(body='{"phase":"x"}'), some_reason("Any"))
    (outcome,) = Scene(server).apply([decision])
    assert (outcome.result, "could not find" in outcome.detail) == ("refused", True)
    assert len(server.sent) <= ATTEMPTS


def test_a_kind_that_nobody_writes_is_refused_with_a_remedy() -> None:
    server = ScriptedServer()
    decision = Decision("tests", Ref("Gadget", "team-a", "train"), Label(labels=(("a", "b"),)), some_reason("Any"))
    (outcome,) = Scene(server).apply([decision])
    assert (outcome.result, "add the kind to SEEN" in outcome.detail) == ("refused", True)


def test_the_fence_is_asked_before_each_try() -> None:
    scene = Scene(ScriptedServer([BUSY] * 99))
    scene.on_pause = lambda: setattr(scene.fence, "stands", False)
    outcome = scene.label()
    assert (outcome.result, "term has expired" in outcome.detail) == ("stale", True)
    assert len(scene.server.sent) == 1
    assert sum(scene.pauses_seconds) < 1, "a fallen fence ends the wait"


def test_a_fence_that_falls_between_the_look_and_the_write_keeps_it_from_being_sent() -> None:
    scene = Scene(ScriptedServer())
    scene.server.looked = lambda: setattr(scene.fence, "stands", False)
    assert scene.label().result == "stale"
    assert scene.server.sent == []


def test_what_was_sent_before_the_fence_fell_and_not_answered_is_unknown() -> None:
    scene = Scene(ScriptedServer([Lost(took_effect=True)]))
    scene.server.meanwhile = lambda: setattr(scene.fence, "stands", False)
    assert scene.label().result == "unknown"
    assert len(scene.server.sent) == 1


def test_while_a_write_waits_for_its_turn_the_fence_may_fall() -> None:
    scene = Scene(ScriptedServer(), writes_per_second=0.1, burst=1)
    scene.on_pause = lambda: setattr(scene.fence, "stands", False)
    assert scene.label().result == "done", "the first may go at once"
    scene.server.edit({"metadata": {"labels": {OURS: "other"}}})
    assert scene.label().result == "stale"
    assert len(scene.server.sent) == 1


def test_each_write_becomes_an_event_in_plain_words() -> None:
    server = ScriptedServer()
    Scene(server).label()
    (event,) = server.told
    assert (
        event["note"]
        == "n1 was cordoned, and not by reconciler: no action is carried out on the node until it is uncordoned."
    )
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "team-a",
        "name": "train",
        "uid": "uid-1",
    }
    assert (event["reason"], event["action"]) == ("CordonedByOthers", "Label")
    assert event["reportingController"] == "gpu.scheduling/reconciler"


def test_what_is_not_written_is_no_event() -> None:
    server = ScriptedServer([BROKEN])
    scene = Scene(server)
    scene.label()
    scene.label()
    assert len(server.told) == 1
    scene.label()
    assert len(server.told) == 1, "it was so already"


@pytest.mark.parametrize("answer", [OVERLOADED, refusal(403, "Forbidden", "no events"), Lost(took_effect=False)])
def test_an_event_that_can_t_be_written_fails_nothing(answer: ApiResponse | Lost) -> None:
    server = ScriptedServer()
    server.event_answer = answer
    scene = Scene(server)
    assert scene.label().result == "done"
    assert (len(server.told), scene.pauses_seconds) == (1, [])


def test_events_that_are_too_many_are_dropped() -> None:
    server = ScriptedServer()
    scene = Scene(server, events_per_second=0.001, burst_of_events=2)
    for number in range(5):
        act = Label(labels=((OURS, str(number)),))
        assert [each.result for each in scene.apply([labelled(act)])] == ["done"]
    assert len(server.told) == 2


def test_the_same_event_again_is_counted_in_a_series_of_the_first() -> None:
    server = ScriptedServer()
    scene = Scene(server)
    for number in range(3):
        act = Label(labels=((OURS, str(number)),))
        assert [each.result for each in scene.apply([labelled(act)])] == ["done"]
    first, *again = server.told
    assert first["reason"] == "CordonedByOthers"
    assert [each["series"]["count"] for each in again] == [2, 3]


POOL, CLAIM = Ref("NodePool", "", "a100", "uid-pool"), Ref("NodeClaim", "", "c1", "uid-claim")


def deletion(number: int, pool: Ref = POOL) -> Decision:
    subject, why = Ref("Node", "", f"n{number}", f"uid-{number}"), Reason(CordonedByOthers(node=f"n{number}"))
    return Decision("scaling", subject, Delete(), why, "a100", about=(CLAIM, pool))


def test_what_is_done_to_a_node_is_told_on_its_claim_too() -> None:
    assert [each.regarding.kind for each in event_notes(deletion(1))] == ["Node", "NodeClaim"]


def test_what_is_done_to_many_nodes_of_a_pool_is_one_event_on_the_pool() -> None:
    other = Ref("NodePool", "", "b100", "uid-other")
    found = list(pool_event_notes([*(deletion(each) for each in range(5)), deletion(7, other)]))
    assert [(each.regarding.name, each.action) for each in found] == [("a100", "Delete"), ("b100", "Delete")]
    assert found[0].note.startswith("5 nodes (n0, n1, n2 and 2 more): n0 was cordoned, and not by reconciler")
    assert found[1].note.startswith("n7 was cordoned, and not by reconciler")


def test_an_object_that_was_made_is_told_of_by_the_uid_that_it_got() -> None:
    made = Decision("manifests", Ref("NodePool", "", "a100"), Apply(manifest="{}"), Reason(CordonedByOthers(node="a")))
    assert [each.regarding.uid for each in event_notes(made, "uid-new")] == ["uid-new"]


class Crowd(ScriptedServer):
    """Answers nobody until so many have asked at the same time."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.gate = threading.Barrier(size, timeout=10)

    def get(self, path: str, *_: object) -> ApiResponse:
        return ApiResponse(200, b'{"metadata": {"resourceVersion": "1", "uid": "u"}}')

    def send(self, request: ApiRequest) -> ApiResponse:
        if not request.path.endswith("/events"):
            self.gate.wait()
        return ApiResponse(200, b"{}")


def test_sixteen_are_under_way_at_the_same_time() -> None:
    act = Label(labels=((OURS, "c"),))
    decisions = [Decision("tests", Ref("Pod", "team-a", f"train-{n}"), act, some_reason("Any")) for n in range(32)]
    assert {each.result for each in Scene(Crowd(16)).apply(decisions)} == {"done"}


def test_a_bucket_gives_a_burst_and_then_a_steady_rate() -> None:
    now = [0.0]
    bucket = Bucket(20.0, 40, lambda: now[0])
    assert [bucket.reserve() for _ in range(40)] == [0.0] * 40
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0.05, 0.10, 0.15])
    assert not bucket.try_take()
    now[0] = 100.0
    assert [bucket.reserve() for _ in range(40)] == [0.0] * 40, "what is not used does not pile up"
    assert bucket.reserve() > 0
