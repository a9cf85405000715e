"""Writing to a real cluster: through broken connections and beside rivals, and what it tells of itself."""

from collections.abc import Iterator
from urllib.parse import urlencode

import msgspec
import pytest

from reconciler.kube.api_server import ApiRequest
from reconciler.kube.apply.execute import Executor
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.watch.reflector import ReflectorTiming
from reconciler.model import names
from reconciler.model.plan.decision import (
    Act,
    Annotate,
    Apply,
    Decision,
    Delete,
    Evict,
    Label,
    Leaver,
    Preconditions,
    Reason,
    Ref,
    Taint,
)
from reconciler.plan.nodes.ownership import CordonedByOthers
from reconciler.ports import Cluster
from tests.contract import objects
from tests.contract.ground import STANDING, WRITER, Real, client_of, decision
from tests.lab.lab import Lab
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Act as Disturbance
from tests.lab.proxy.faults import Answer, Cut, Fault, LoseAnswer, Match
from tests.stages.observing import Watched

QUICK = ReflectorTiming(absent_seconds=0.2)
TAINT = Taint(key=names.DRAINING, value="1795013520", effect="NoSchedule")


@pytest.fixture
def proxy(cluster: Lab) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


@pytest.fixture
def disturbed(cluster: Lab, proxy: Proxy) -> Iterator[Real]:
    ground = Real(cluster, proxy.url)
    yield ground
    ground.close()


@pytest.mark.parametrize(
    "fault",
    [LoseAnswer(), Cut(before_upstream=True), Answer(429, retry_after=1), Answer(503), Answer(504, "Timeout")],
    ids=["answer lost", "cut before", "too many", "unavailable", "timeout"],
)
def test_whatever_breaks_on_its_way_it_takes_effect_once(
    cluster: Lab, proxy: Proxy, disturbed: Real, fault: Disturbance
) -> None:
    ref = disturbed.put(objects.node("a"))
    audit = cluster.audit()
    injected = proxy.inject(Fault(fault, Match(verb="patch")))
    outcomes = disturbed.apply([decision(ref, TAINT)])
    proxy.wait_for(injected)
    assert [each.result for each in outcomes] == ["done"]
    patches = [each for each in audit.writes(WRITER) if (each.verb, each.object) == ("patch", "nodes/a")]
    assert [each.code for each in patches if each.code < 300] == [200]


def test_a_deletion_whose_answer_is_lost_is_done(proxy: Proxy, disturbed: Real) -> None:
    ref = disturbed.put(objects.priority("a"))
    injected = proxy.inject(Fault(LoseAnswer(), Match(verb="delete")))
    assert [each.result for each in disturbed.apply([decision(ref, Delete())])] == ["done"]
    proxy.wait_for(injected)
    assert disturbed.writes == 1


@pytest.mark.parametrize("asked_before", [0, 1, 2, 3], ids=["dry", "dry, the last", "the first", "the last"])
def test_pods_that_leave_together_all_leave_whichever_answer_is_lost(
    proxy: Proxy, disturbed: Real, asked_before: int
) -> None:
    refs = [disturbed.put(objects.running(f"pod-{number}")) for number in range(2)]
    injected = proxy.inject(Fault(LoseAnswer(), Match(method="POST", path="/eviction"), skip=asked_before))
    act = Evict(grace_seconds=30, others=(Leaver(refs[1], 30),))
    assert [each.result for each in disturbed.apply([decision(refs[0], act)])] == ["done"]
    proxy.wait_for(injected)
    for each in refs:
        found = disturbed.get(each)
        assert found is None or "deletionTimestamp" in found["metadata"]


@pytest.fixture
def ground(cluster: Lab) -> Iterator[Real]:
    found = Real(cluster)
    yield found
    found.close()


def test_a_rival_between_the_look_and_the_write_keeps_its_taint(ground: Real) -> None:
    ref = ground.put(objects.node("a"))
    theirs = {"key": "example.com/rival", "effect": "NoSchedule"}

    def rival(request: ApiRequest) -> None:
        ground.server.before = None
        found = ground.get(ref)
        assert found
        ground.edit(ref, {"spec": {"taints": [*found["spec"]["taints"], theirs]}})

    ground.server.before = rival
    assert [each.result for each in ground.apply([decision(ref, TAINT)])] == ["done"]
    found = ground.get(ref)
    assert found
    keys = {each["key"] for each in found["spec"]["taints"]}
    assert {names.DRAINING, "example.com/rival", objects.THEIR_TAINT["key"]} <= keys
    assert ground.writes == 2, "the first was refused"


def test_another_of_its_name_that_comes_between_is_not_deleted(ground: Real) -> None:
    ref = ground.put(objects.priority("a"))

    def rival(request: ApiRequest) -> None:
        ground.server.before = None
        ground.admin.delete("priorityclasses", "a")
        ground.put(objects.priority("a"))

    ground.server.before = rival
    assert [each.result for each in ground.apply([decision(ref, Delete())])] == ["done"]
    assert ground.get(ref), "the one that was meant is gone, and its namesake stays"


def explained(ref: Ref, act: Act) -> Decision:
    return Decision("tests", ref, act, Reason(CordonedByOthers(node="a")))  # type: ignore[arg-type]


def test_what_was_done_is_told_on_its_subject(ground: Real) -> None:
    node, pod = ground.put(objects.node("a")), ground.put(objects.waiting("b"))
    acts = {
        node: Label(labels=((names.PROVISIONER, "x"),)),
        pod: Annotate(annotations=((names.WAITS_FOR, "x"),)),
    }
    for _ in range(2):
        asked = [explained(ref, act) for ref, act in acts.items()]
        assert {each.result for each in ground.apply(asked)} == {"done"}
    for ref, act in acts.items():
        told = [
            each for each in ground.admin.list("events", "default") if each.get("regarding", {}).get("uid") == ref.uid
        ]
        assert [(each["reason"], each["action"]) for each in told] == [("CordonedByOthers", type(act).__name__)]
        assert (
            told[0]["note"]
            == "a was cordoned, and not by reconciler: no action is carried out on the node until it is uncordoned."
        )
        assert told[0]["reportingController"] == "gpu.scheduling/reconciler"


def described(ground: Real, ref: Ref) -> list[tuple[str, int]]:
    """Reasons of the Events that `kubectl describe` of the object lists, and how often each happened."""
    of = {"name": ref.name, "namespace": ref.namespace, "kind": ref.kind, "uid": ref.uid}
    selector = ",".join(f"involvedObject.{key}={value}" for key, value in of.items())
    found = ground.admin.must("GET", f"/api/v1/events?{urlencode({'fieldSelector': selector})}")["items"]
    return [(each["reason"], (each.get("series") or {}).get("count", 1)) for each in found]


def test_describing_an_object_shows_what_was_done_to_it_and_to_its_nodes(ground: Real) -> None:
    node, pool = ground.put(objects.node("a")), ground.put(objects.priority("pool"))
    for number in range(3):
        act = Label(labels=((names.PROVISIONER, str(number)),))
        assert [each.result for each in ground.apply([explained(node, act)])] == ["done"]
    assert described(ground, node) == [("CordonedByOthers", 3)]
    about = Ref("NodePool", "", pool.name, pool.uid)  # of which only the name and the uid matter here
    others = [ground.put(objects.node(name)) for name in ("b", "c")]
    act = Label(labels=((names.PROVISIONER, "x"),))
    told = [msgspec.structs.replace(explained(each, act), about=(about,)) for each in others]
    assert {each.result for each in ground.apply(told)} == {"done"}
    assert described(ground, about) == [("CordonedByOthers", 1)]


def test_describing_an_object_that_was_made_shows_that(ground: Real) -> None:
    ref = ground.put(objects.priority("a"))
    ground.admin.delete("priorityclasses", "a")
    manifest = objects.priority("a")
    act = Apply(manifest=msgspec.json.encode(manifest).decode(), presumes=Preconditions(absent=True))
    assert [each.result for each in ground.apply([explained(Ref(ref.kind, "", "a"), act)])] == ["done"]
    made = ground.get(Ref(ref.kind, "", "a"))
    assert made
    assert described(ground, Ref(ref.kind, "", "a", made["metadata"]["uid"])) == [("CordonedByOthers", 1)]


def test_the_live_cluster_shows_what_it_wrote(cluster: Lab, ground: Real) -> None:
    ref = ground.put(objects.waiting("a"))
    client = client_of(cluster.admin)
    with Watched(client, pace=QUICK) as watched:
        live: Cluster = LiveCluster(watched.synced().observer.observe, Executor(client))
        before = live.observe()
        assert live.observe() is before
        outcomes = list(live.apply([decision(ref, Annotate(annotations=((names.WAITS_FOR, "x"),)))], STANDING))
        assert [each.result for each in outcomes] == ["done"]
        watched.until(lambda seen: any(each.metadata.annotations.waits_for for each in seen.pods))
    client.close()
