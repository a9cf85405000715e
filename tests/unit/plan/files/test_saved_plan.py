"""A saved plan is applied exactly or refused, with a list of what moved."""

import re
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Evict
from reconciler.plan.files import saved_plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.files.saved_plan import BadPlan
from reconciler.report.decision_text import difference_words
from tests.unit.plan.drain.stage import World as Drains
from tests.unit.plan.guards.stage import MINUTE_MS, NOW, World

LATER = Instant(NOW + 60 * MINUTE_MS)
ELSE = "the action has changed"
CASE: dict[str, Any] = {
    "pools": {"a100": {"nodes": 6, "busy": 2}},
    "guards": {"fleet": {"perPlan": {"maxRemovedNodes": 4}}},
    "does": ["edit a100 removed 4-5; replaced 0", "scale-down a100 2-3"],
}


def scene(**changes: Any) -> PlanningResult:
    world = World(CASE | changes)
    return PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())


def written(of: PlanningResult) -> bytes:
    return saved_plan.write(of, LATER).content


def words(kept: saved_plan.SavedPlan, now: PlanningResult) -> tuple[str, ...]:
    return tuple(map(difference_words, saved_plan.moved(kept, now)))


def moved(now: PlanningResult) -> tuple[str, ...]:
    return words(saved_plan.read(written(scene())), now)


def pools(**said: Any) -> dict[str, Any]:
    return {"pools": {"a100": {"nodes": 6, "busy": 2, **said}}}


def test_where_nothing_moved_it_is_applied_as_it_was_saved() -> None:
    now = scene()
    kept = saved_plan.read(written(now))
    assert saved_plan.moved(kept, now) == ()
    made = saved_plan.exactly(kept, now)
    assert made.decisions == now.plan.decisions
    assert made.memory == now.plan.memory
    assert len(made.memory.marks) == 5


def test_what_came_to_the_plan_since_is_left_out_and_not_remembered() -> None:
    kept = saved_plan.read(written(scene(does=["scale-down a100 2-3"])))
    now = scene()
    assert saved_plan.moved(kept, now) == ()
    made = saved_plan.exactly(kept, now)
    assert {each.subject.name for each in made.decisions} == {"a100-2", "a100-3"}
    assert {each.name for each in made.memory.marks} == {"a100-2", "a100-3"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"minutes_later": 60}, ("the plan expired at 2026-10-26T08:33:20Z",)),
        (
            {"does": ["edit a100 removed 4-5; replaced 0"]},
            (
                "Node/a100-2: the action is no longer needed",
                "Node/a100-3: the action is no longer needed",
            ),
        ),
        (
            {"does": ["edit a100 removed 4-5; replaced 0-1", "scale-down a100 2-3"]},
            ("NodePool/a100: the action would also remove a100-1",),
        ),
        ({"does": ["edit a100 removed 4-5", "scale-down a100 2-3"]}, ()),
        (pools(busy=3), ("Node/a100-2: more GPUs are in use on a100-2",)),
        (
            {"does": ["edit a100 removed 4-5; replaced 0", "drain a100 2", "scale-down a100 3"]},
            (f"Node/a100-2: {ELSE}: Node/a100-2 does not exist yet and is created.",),
        ),
        (
            pools(disrupted="2"),
            ("Node/a100-2: the action is now held: Karpenter is disrupting a100-2: the node is left to Karpenter.",),
        ),
        ({"unread": ["poddisruptionbudgets.policy"]}, ("poddisruptionbudgets.policy are unknown: timed out",)),
    ],
)
def test_it_is_refused_with_what_moved(changes: dict[str, Any], told: tuple[str, ...]) -> None:
    assert moved(scene(**changes)) == told


def test_in_another_cluster_nothing_else_is_looked_at() -> None:
    now = scene()
    observed = msgspec.structs.replace(now.inputs.observed, cluster_uid="other")
    elsewhere = msgspec.structs.replace(now, inputs=msgspec.structs.replace(now.inputs, observed=observed))
    assert moved(elsewhere) == ("the plan is for cluster unknown, this cluster is other",)


def test_a_guard_that_is_full_by_now_refuses_it() -> None:
    full = scene(guards={"fleet": {"perPlan": {"maxRemovedNodes": 3}}})
    assert all(
        "the action is now held: this plan exceeds the limits of ChangeGuard/fleet" in told for told in moved(full)
    )
    assert len(moved(full)) == 3


def test_an_object_that_was_only_written_again_moves_nothing() -> None:
    now = scene()
    kept = saved_plan.read(written(now))
    step = kept.steps[0]
    newer = msgspec.structs.replace(step.decision.act.presumes, resource_version="6")  # type: ignore[union-attr]
    act = msgspec.structs.replace(step.decision.act, presumes=newer)
    older = msgspec.structs.replace(step, decision=msgspec.structs.replace(step.decision, act=act))
    assert saved_plan.moved(msgspec.structs.replace(kept, steps=(older, *kept.steps[1:])), now) == ()


def test_a_pod_that_is_evicted_and_would_go_elsewhere_now_moves_nothing() -> None:
    world = Drains({"nodes": {"a": {"pods": ["web 1"], "draining": 60}, "b": {"pods": ["web 5"]}}})
    now = PlanningResult(world.inputs, Fleet(world.inputs.observed), world.planned())
    kept = saved_plan.read(saved_plan.write(now, later(now.inputs.now, 60 * MINUTE_MS)).content)
    (step,) = (each for each in kept.steps if isinstance(each.decision.act, Evict))
    act = msgspec.structs.replace(step.decision.act, destination="c")
    older = msgspec.structs.replace(step, decision=msgspec.structs.replace(step.decision, act=act))
    assert saved_plan.moved(msgspec.structs.replace(kept, steps=(older,)), now) == ()


def test_an_object_of_the_same_name_that_was_made_anew_is_another() -> None:
    now = scene()
    kept = saved_plan.read(written(now))
    step = kept.steps[0]
    subject = msgspec.structs.replace(step.decision.subject, uid="before")
    older = msgspec.structs.replace(step, decision=msgspec.structs.replace(step.decision, subject=subject))
    assert words(msgspec.structs.replace(kept, steps=(older,)), now) == (
        "NodePool/a100: the object was replaced by another with the same name",
    )


def test_it_holds_no_object_of_the_cluster_and_the_policies_that_it_follows_from() -> None:
    now = scene()
    content = written(now)
    assert written(now) == content
    assert b"train-a100-0" not in content
    assert saved_plan.read(content).desired == now.inputs.desired


def test_what_a_guard_holds_is_not_in_it() -> None:
    held = scene(guards={"fleet": {"perPlan": {"maxRemovedNodes": 0}}})
    assert saved_plan.saved_of(held, LATER).steps == ()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"not json", "not a saved plan"),
        (b'{"format": "reconciler-dump/1"}', 'its format is "reconciler-dump/1"'),
        (b'{"format": "reconciler-plan/1"}', "the saved plan has format 1; this version of reconciler reads 2"),
        (b'{"format": "reconciler-plan/2", "plan": {}}', "does not match its digest"),
        (written(scene()).replace(b"a100-2", b"a100-5"), "does not match its digest"),
    ],
)
def test_what_is_no_saved_plan_is_refused_with_a_remedy(content: bytes, told: str) -> None:
    with pytest.raises(BadPlan, match=told) as raised:
        saved_plan.read(content)
    assert raised.value.remedy


def test_a_file_that_was_only_laid_out_anew_is_the_same() -> None:
    content = written(scene())
    assert saved_plan.read(msgspec.json.format(content, indent=2)) == saved_plan.read(content)


def test_its_digest_is_told_whole_and_covers_the_file() -> None:
    made = saved_plan.write(scene(), LATER)
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", made.digest)
    assert saved_plan.digest_of_saved(saved_plan.read(made.content)) == made.digest
    assert saved_plan.write(scene(), Instant(LATER + 1)).digest != made.digest
    assert (made.actions, made.expires_at) == (3, LATER)


def test_a_file_of_which_one_byte_was_changed_is_refused_wherever_it_is() -> None:
    """Keys, values, times, payloads of actions, the header: whatever byte it is."""
    content = written(scene())
    for place in range(len(content)):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises(BadPlan) as raised:
            saved_plan.read(changed)
        assert raised.value.remedy


def sealed(plan: Any) -> bytes:
    """With a digest that fits, as whoever forges a file would write it."""
    content = msgspec.json.encode(plan, order="sorted")
    digest = f"sha256:{sha256(content).hexdigest()}"
    return msgspec.json.encode({"format": saved_plan.FORMAT, "digest": digest, "plan": msgspec.Raw(content)})


def forged(path: str, value: Any) -> bytes:
    plan = msgspec.json.decode(written(scene()))["plan"]
    origin = {"file": "a.yaml", "line": 1, "revision": ""}
    body = '{"kind":"NodePool","metadata":{"name":"a100"}}'
    manifest = {"kind": "NodePool", "namespace": "", "name": "a100", "body": body, "pool": "a100"}
    plan["desired"]["manifests"] = [{**manifest, "origin": origin, "template": origin}]
    *steps, last = [int(each) if each.isdigit() else each for each in path.split(".")]
    place = plan
    for each in steps:
        place = place[each]
    place[last] = value
    return sealed(plan)


NAMES = (
    "../../../../../apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x",
    "..",
    "a/b",
    "a%2Fb",
    "a?dryRun=All",
    "a#b",
    "a b",
    "A",
    "a\n",
    "\u2024\u2024/a",
    "a" * 254,
    "",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", ["steps.0.decision.subject.name", "desired.pools.0.name", "desired.manifests.0.name"])
def test_a_forged_name_is_refused_though_its_digest_fits(path: str, name: str) -> None:
    with pytest.raises(BadPlan, match=r"not a valid name|is one of") as raised:
        saved_plan.read(forged(path, name))
    assert "create a new plan" in raised.value.remedy
    assert raised.value.args[0].isascii()


@pytest.mark.parametrize("kind", ["ClusterRoleBinding", "Secret", "", "../Node"])
def test_a_kind_that_is_never_written_is_refused(kind: str) -> None:
    with pytest.raises(BadPlan, match="not a kind that reconciler reads or writes"):
        saved_plan.read(forged("steps.1.decision.subject.kind", kind))


def test_a_namespace_that_leads_elsewhere_is_refused() -> None:
    with pytest.raises(BadPlan, match="not a valid namespace"):
        saved_plan.read(forged("steps.1.decision.subject.namespace", "../../x"))


def test_a_manifest_of_another_object_than_its_decision_is_refused() -> None:
    manifest = {"kind": "ClusterRoleBinding", "metadata": {"name": "x"}}
    with pytest.raises(BadPlan, match="describes 'ClusterRoleBinding/x'"):
        saved_plan.read(forged("steps.0.decision.act.manifest", msgspec.json.encode(manifest).decode()))


def test_what_the_digest_covers_and_nobody_reads_is_refused() -> None:
    with pytest.raises(BadPlan, match="data unknown to this version"):
        saved_plan.read(forged("desired.extra", "x"))


def test_a_plan_that_was_forged_with_a_digest_that_fits_has_another_digest() -> None:
    honest = saved_plan.write(scene(), LATER).digest
    later = saved_plan.read(forged("expires_at", LATER + 1))
    assert saved_plan.digest_of_saved(later) != honest
