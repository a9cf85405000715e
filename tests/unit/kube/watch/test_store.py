"""The store: what changes goes in, what is known comes out, and nothing is taken for read that is not."""

from typing import Any

from reconciler.kube.decode import WatchEvent
from reconciler.kube.watch.changes import (
    Absent,
    Change,
    ChangeQueue,
    Identity,
    Listed,
    ObjectEvent,
    ReadFailure,
    WatchOpened,
    is_news,
)
from reconciler.kube.watch.store import NOT_YET, OBSERVED_STEP_MS, STALE_MS, ObservedStore
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import QUIET_MS, Observed, Quiet, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import Workload
from reconciler.model.instant import Instant, instant
from tests import builders

START = instant("2026-11-02T08:00:00Z")


def kind(name: str) -> ResourceKind:
    return next(each for each in RESOURCE_KINDS if each.kind == name)


NODE, POD, JOB, DEPLOYMENT, NODE_POOL = map(kind, ("Node", "Pod", "Job", "Deployment", "NodePool"))


class Stage:
    """A store of few kinds at a time that the test sets."""

    def __init__(self, *seen: ResourceKind) -> None:
        self.now = START
        self.store = ObservedStore(seen, lambda: self.now)
        self.store.take([Identity("uid")])

    def take(self, *changes: Change) -> Observed:
        self.store.take(changes)
        return self.store.observed()

    def later(self, milliseconds: int) -> Observed:
        self.now = Instant(self.now + milliseconds)
        return self.store.observed()

    def listed(self, seen: ResourceKind, version: int, *items: Any) -> Observed:
        return self.take(Listed(seen, items, str(version), self.now))

    def event(self, seen: ResourceKind, type_: str, version: int, item: Any = None) -> Observed:
        return self.take(ObjectEvent(seen, WatchEvent(type_, item, str(version)), self.now))


def node(name: str, version: int, **labels: str) -> Node:
    return builders.node(name, resource_version=str(version), labels=labels)


def pod(namespace: str, name: str, version: int) -> Pod:
    return builders.pod(name, namespace=namespace, resource_version=str(version))


def names(observed: Observed) -> dict[str, str]:
    return {each.name: each.metadata.resource_version for each in observed.nodes}


def test_events_after_a_list_add_change_and_take_away() -> None:
    stage = Stage(NODE)
    assert names(stage.listed(NODE, 10, node("a", 3), node("b", 9))) == {"a": "3", "b": "9"}
    assert names(stage.event(NODE, "ADDED", 11, node("c", 11))) == {"a": "3", "b": "9", "c": "11"}
    assert names(stage.event(NODE, "MODIFIED", 12, node("a", 12))) == {"a": "12", "b": "9", "c": "11"}
    assert names(stage.event(NODE, "DELETED", 13, node("b", 13))) == {"a": "12", "c": "11"}


def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    stage = Stage(POD)
    seen = stage.listed(POD, 10, pod("x", "p", 1), pod("y", "p", 2))
    assert len(seen.pods) == 2
    seen = stage.event(POD, "DELETED", 11, pod("x", "p", 11))
    assert [each.metadata.namespace for each in seen.pods] == ["y"]


def test_a_late_event_is_passed_over() -> None:
    stage = Stage(NODE)
    stage.listed(NODE, 10, node("a", 9))
    assert names(stage.event(NODE, "MODIFIED", 8, node("a", 8))) == {"a": "9"}
    stage.event(NODE, "DELETED", 12, node("a", 12))
    assert names(stage.event(NODE, "MODIFIED", 11, node("a", 11))) == {}, "what is deleted does not come back"
    assert names(stage.event(NODE, "DELETED", 12, node("a", 12))) == {}


def test_a_bookmark_moves_the_place_and_changes_nothing() -> None:
    stage = Stage(NODE)
    before = stage.listed(NODE, 10, node("a", 9))
    assert stage.event(NODE, "BOOKMARK", 20) is before
    assert names(stage.event(NODE, "MODIFIED", 15, node("a", 15))) == {"a": "9"}


def test_a_list_takes_away_what_vanished_meanwhile() -> None:
    stage = Stage(NODE)
    stage.listed(NODE, 10, node("a", 1), node("b", 2))
    assert names(stage.listed(NODE, 20, node("b", 2))) == {"b": "2"}


def test_nothing_new_is_the_same_object() -> None:
    stage = Stage(NODE, POD)
    stage.listed(POD, 9)
    before = stage.listed(NODE, 10, node("a", 1), node("b", 2))
    assert stage.store.observed() is before
    assert stage.listed(NODE, 20, node("a", 1), node("b", 2)) is before
    assert stage.event(NODE, "ADDED", 15, node("a", 1)) is before
    assert stage.event(NODE, "DELETED", 21, node("unknown", 21)) is before
    assert stage.take(WatchOpened(NODE)) is before
    assert stage.take(ReadFailure(NODE, "the connection broke")) is before


def test_only_what_changed_is_made_anew() -> None:
    stage = Stage(NODE, POD)
    stage.listed(POD, 9, pod("x", "p", 1))
    before = stage.listed(NODE, 10, node("a", 1), node("b", 2))
    after = stage.event(NODE, "MODIFIED", 11, node("b", 11))
    assert after.pods is before.pods
    assert after.nodes is not before.nodes
    assert after.nodes[0] is before.nodes[0]
    again = stage.listed(NODE, 12, node("a", 1), node("b", 12))
    assert again.nodes[0] is before.nodes[0]


def test_kinds_that_share_a_field_stand_in_it_together() -> None:
    stage = Stage(JOB, DEPLOYMENT)
    stage.listed(JOB, 5, Workload(Metadata("j", "x"), "Job"))
    seen = stage.listed(DEPLOYMENT, 6, Workload(Metadata("j", "x"), "Deployment"))
    assert {each.kind for each in seen.workloads} == {"Job", "Deployment"}
    assert {each.kind for each in stage.listed(JOB, 7).workloads} == {"Deployment"}


def test_what_was_never_listed_is_unread_and_not_empty() -> None:
    stage = Stage(NODE, POD)
    seen = stage.listed(POD, 9)
    assert seen.unread == (Unread("nodes", NOT_YET),)
    assert stage.take(ReadFailure(NODE, "no answer")).unread == (Unread("nodes", "no answer"),)
    assert stage.listed(NODE, 10).unread == ()


def test_trouble_matters_once_what_was_seen_is_five_minutes_old() -> None:
    stage = Stage(NODE)
    stage.listed(NODE, 10, node("a", 1))
    assert stage.take(ReadFailure(NODE, "the connection broke")).unread == ()
    assert stage.later(STALE_MS).unread == ()
    why = "no confirmation since 2026-11-02T08:00:00Z: the connection broke"
    stale = stage.later(1)
    assert stale.unread == (Unread("nodes", why),)
    assert names(stale) == {"a": "1"}
    assert stage.event(NODE, "BOOKMARK", 11).unread == ()


def test_silence_alone_makes_stale() -> None:
    stage = Stage(NODE)
    stage.listed(NODE, 10)
    why = "no confirmation since 2026-11-02T08:00:00Z"
    assert stage.later(STALE_MS + 1).unread == (Unread("nodes", why),)


def test_what_nobody_confirmed_for_a_while_is_quiet_since_then_and_read_all_the_same() -> None:
    stage = Stage(NODE, NODE_POOL)
    stage.listed(NODE, 10, node("a", 1))
    stage.take(Absent(NODE_POOL, stage.now))
    assert stage.later(QUIET_MS).quiet == ()
    seen = stage.later(1)
    assert (seen.quiet, seen.unread) == ((Quiet("nodes", START),), ())
    assert seen.quiet_among("nodes", "pods") == Quiet("nodes", instant("2026-11-02T08:00:00Z"))
    assert stage.later(1_000) is seen
    assert seen.quiet_among("pods") is None
    assert stage.event(NODE, "BOOKMARK", 11).quiet == ()
    assert stage.later(STALE_MS + 1).quiet == ()


def test_a_refusal_matters_at_once_until_the_watch_opens() -> None:
    stage = Stage(NODE)
    stage.listed(NODE, 10, node("a", 1))
    refused = stage.take(ReadFailure(NODE, "may not watch nodes", is_refusal=True))
    assert refused.unread == (Unread("nodes", "may not watch nodes"),)
    assert names(refused) == {"a": "1"}
    assert stage.take(WatchOpened(NODE)).unread == ()


def test_a_kind_that_is_not_served_is_absent_and_has_no_objects() -> None:
    stage = Stage(NODE_POOL)
    seen = stage.take(Absent(NODE_POOL, stage.now))
    assert (seen.absent, seen.unread) == (("nodepools.karpenter.sh",), ())
    stage.listed(NODE_POOL, 10, node("late", 9))
    assert (stage.store.observed().absent, len(stage.store.observed().node_pools)) == ((), 1)
    gone = stage.take(Absent(NODE_POOL, stage.now))
    assert (gone.absent, gone.node_pools) == (("nodepools.karpenter.sh",), ())


def test_whether_it_is_absent_can_be_too_long_ago_to_say() -> None:
    stage = Stage(NODE_POOL)
    stage.take(Absent(NODE_POOL, stage.now))
    seen = stage.later(STALE_MS + 1)
    assert seen.absent == ()
    assert [each.kind for each in seen.unread] == ["nodepools.karpenter.sh"]


def test_seen_at_is_of_the_kind_confirmed_longest_ago() -> None:
    stage = Stage(NODE, POD)
    assert stage.listed(NODE, 10).seen_at == START
    stage.later(1_000)
    assert stage.listed(POD, 11).seen_at == START
    stage.later(1_000)
    assert stage.event(NODE, "MODIFIED", 12, node("a", 12)).seen_at == START + 1_000


def test_while_nothing_else_changes_seen_at_moves_in_steps() -> None:
    stage = Stage(NODE)
    before = stage.listed(NODE, 10, node("a", 1))
    stage.later(OBSERVED_STEP_MS - 1)
    assert stage.event(NODE, "BOOKMARK", 11) is before
    stage.later(1)
    moved = stage.event(NODE, "BOOKMARK", 12)
    assert moved.seen_at == START + OBSERVED_STEP_MS
    assert moved.nodes is before.nodes


def test_the_cluster_is_named_or_unread() -> None:
    store = ObservedStore((), lambda: START)
    assert store.observed().unread == (Unread("namespaces", NOT_YET),)
    store.take([Identity(why="may not get it")])
    assert store.observed().unread == (Unread("namespaces", "may not get it"),)
    store.take([Identity("uid")])
    assert (store.observed().cluster_uid, store.observed().unread) == ("uid", ())


def test_it_is_settled_when_of_each_kind_something_final_is_known() -> None:
    stage = Stage(NODE, POD, NODE_POOL)
    for change in (
        Listed(NODE, (), "1", START),
        Absent(NODE_POOL, START),
        ReadFailure(POD, "no answer"),
    ):
        stage.take(change)
        assert not stage.store.is_settled
    stage.take(ReadFailure(POD, "may not list pods", is_refusal=True))
    assert stage.store.is_settled


def test_what_only_confirms_is_no_news() -> None:
    told = []
    handover = ChangeQueue(lambda: told.append("news"))
    confirming: list[Change] = [
        ObjectEvent(NODE, WatchEvent("BOOKMARK", None, "1"), START),
        Absent(NODE, START, again=True),
        ReadFailure(NODE, "the connection broke"),
    ]
    for change in confirming:
        assert not is_news(change)
        handover.tell(change)
    assert told == []
    handover.tell(Absent(NODE, START))
    handover.tell(Listed(NODE, (), "1", START))
    assert told == ["news"], "once until it is taken"
    assert len(handover.take()) == 5
    handover.tell(Absent(NODE, START))
    assert told == ["news", "news"]
