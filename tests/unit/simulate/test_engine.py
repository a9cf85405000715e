"""Simulated time: what happens in which order, what is drawn by chance, and who is told of what."""

from collections.abc import Callable, Sequence
from typing import Any

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.simulate.objects import Key, ObjectWrite
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World
from tests import builders

START = Instant(1_795_000_000_000)


def node(name: str, **labels: str) -> dict[str, Any]:
    return builders.manifest(builders.node(name, has={"cpu": "8", "pods": "110"}, labels=labels))


def pod(name: str, on: str = "") -> dict[str, Any]:
    return builders.manifest(builders.pod(name, asks={"cpu": "1"}, namespace="default", node_name=on))


def test_events_come_by_their_hour_and_then_in_the_order_in_which_they_were_asked_for() -> None:
    engine, said = Engine(1, START), list[tuple[str, int]]()
    engine.listeners.append(lambda what: said.append((what, engine.now - START)))
    for delay_ms, what in ((20, "third"), (10, "first"), (10, "second"), (31, "never")):
        engine.after(delay_ms, what, lambda: None)
    engine.run(Instant(START + 30))
    assert said == [("first", 10), ("second", 10), ("third", 20)]
    assert engine.now == START + 30


def test_what_is_asked_for_too_late_happens_at_once_and_before_what_is_to_come() -> None:
    engine, said = Engine(1, START), list[str]()

    def late() -> None:
        engine.at(START, "late", lambda: said.append("late"))

    engine.after(10, "now", late)
    engine.after(11, "later", lambda: said.append("later"))
    engine.run(Instant(START + 20))
    assert said == ["late", "later"]


def test_chance_is_the_same_for_the_same_seed_and_purpose_whatever_else_is_drawn() -> None:
    one, other = Engine(7, START), Engine(7, START)
    other.stream("faults").random()
    drawn = [one.stream("arrivals").random() for _ in range(3)]
    assert drawn == [other.stream("arrivals").random() for _ in range(3)]
    assert drawn != [Engine(8, START).stream("arrivals").random() for _ in range(3)]


def test_who_asks_for_a_kind_is_told_once_an_instant_of_all_that_changed() -> None:
    stage = Stage(Engine(1, START), World(START))
    stage.world.put(node("before"))
    told: list[Sequence[Key]] = []
    stage.on_change("tests", ("Node",), told.append)

    def change() -> None:
        for name in ("a", "b"):
            stage.world.put(node(name))
        stage.world.edit(Ref("Node", "", "a"), {"metadata": {"labels": {"x": "y"}}})
        stage.world.put(pod("p"))

    stage.engine.after(5, "a change", change)
    stage.engine.run(Instant(START + 10))
    assert told == [(("Node", "", "before"),), (("Node", "", "a"), ("Node", "", "b"))]


def test_each_write_is_told_with_what_stood_before_and_who_wrote() -> None:
    world, told = World(START), list[ObjectWrite]()
    world.subscribe(told.append)
    ref = world.put(node("n"), "karpenter")
    world.edit(ref, {"metadata": {"labels": {"x": "y"}}}, "kubectl")
    world.remove(ref)
    assert [each.by for each in told] == ["karpenter", "kubectl", ""]
    made, edited, gone = told
    assert made.before is None
    assert edited.before == made.after
    assert gone.before == edited.after
    assert gone.after is None


def test_who_asks_for_some_kinds_is_told_of_no_others_and_all_in_the_order_in_which_they_asked() -> None:
    world, told = World(START), list[str]()
    world.subscribe(lambda written: told.append(f"first {written.key[2]}"))
    world.put(node("before"))
    world.subscribe(lambda written: told.append(f"second {written.key[2]}"), "Pod")
    world.subscribe(lambda written: told.append(f"third {written.key[2]}"), "Node", "Pod")
    world.put(node("n"))
    world.put(pod("p"))
    assert told == ["first before", "first n", "third n", "first p", "second p", "third p"]


def test_who_deletes_waits_for_finalizers_and_for_pods_on_nodes() -> None:
    world = World(START)
    kept = node("kept")
    kept["metadata"]["finalizers"] = ["karpenter.sh/termination"]
    refs = [world.put(kept), world.put(node("free")), world.put(pod("bound", "kept")), world.put(pod("waits"))]
    for ref in refs:
        world.delete(ref)
    assert [world.get(ref) is None for ref in refs] == [False, True, False, True]
    world.edit(refs[0], {"metadata": {"finalizers": None}})
    assert world.get(refs[0]) is None


def test_the_shared_what_if_is_as_if_it_were_made_afresh_after_every_change() -> None:
    stage = Stage(Engine(1, START), World(START))
    world = stage.world
    steps: list[Callable[[], object]] = [
        lambda: world.put(node("n1")),
        lambda: world.put(pod("a", "n1")),
        lambda: world.put(pod("b")),
        lambda: world.put(pod("astray", "n2")),
        lambda: world.put(node("n2")),
        lambda: world.edit(Ref("Pod", "default", "b"), {"spec": {"nodeName": "n2"}}),
        lambda: world.edit(Ref("Node", "", "n1"), {"metadata": {"labels": {"x": "y"}}}),
        lambda: world.remove(world.put(pod("short", "n1"))),
        lambda: world.edit(Ref("Pod", "default", "a"), {"status": {"phase": "Succeeded"}}),
        lambda: world.remove(Ref("Node", "", "n1")),
        lambda: world.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "more"}}),
        lambda: world.remove(Ref("Pod", "default", "b")),
    ]
    for step in steps:
        step()
        followed = stage.snapshot()
        afresh = Stage(Engine(1, START), world).snapshot()
        assert followed.fingerprint() == afresh.fingerprint()
        assert stage.fleet().snapshot is followed
