"""The PriorityClass of smart pods: there once any pool is acted on, for all of them, and off again with all of ours."""

import json
from pathlib import Path

import msgspec
import pytest

from reconciler.cli.main import main
from reconciler.controller.policies import check_bundle
from reconciler.model.bundle import Bundle, Text
from reconciler.model.desired import Desired
from reconciler.model.problem import Problem
from reconciler.plan.manifests.wanted_manifest import wish_of
from reconciler.plan.release import release
from tests import builders
from tests.unit.controller.release_stage import NODE_POOL, Object, pod, world
from tests.unit.plan.manifests import stage
from tests.unit.schema.rights.stage import POOL, WISHED

NAME = "gpu-scheduling-smart-pods"


def checked(*pools: dict[str, str], template: str = "") -> tuple[Desired, tuple[Problem, ...]]:
    texts = tuple(
        Text(f"{each['name']}.yaml", POOL.format_map(WISHED | {"mode": "Observe"} | each).encode()) for each in pools
    )
    own = (Text("node_pool.yaml.j2", template.encode(), "templates/node_pool.yaml.j2"),) if template else ()
    resolved = check_bundle(Bundle("r", texts, own)).resolved
    (wish,) = resolved.wishes
    return wish, resolved.problems


def shared(wish: Desired) -> list[str]:
    return [each.name for each in wish.manifests if not each.pool]


def test_it_is_below_every_workload_and_displaces_none() -> None:
    wish, problems = checked({"name": "a"}, {"name": "b", "mode": "Enforce"}, {"name": "c", "mode": "Enforce"})
    assert problems == ()
    (found,) = [each for each in wish.manifests if each.kind == "PriorityClass"]
    body = json.loads(found.body)
    assert (body["metadata"], body["value"], body["preemptionPolicy"]) == ({"name": NAME}, -1_000_000_000, "Never")
    assert body["globalDefault"] is False
    assert body["description"]
    assert (found.pool, found.origin.file) == ("", "b.yaml")


@pytest.mark.parametrize(
    "pools",
    [
        [{"name": "a"}],
        [{"name": "a", "mode": "Enforce", "suspend": "true"}],
        [{"name": "a"}, {"name": "b", "mode": "Enforce", "suspend": "true"}],
    ],
)
def test_where_nothing_is_written_there_is_none(pools: list[dict[str, str]]) -> None:
    assert shared(checked(*pools)[0]) == []


def test_a_template_that_yields_it_too_is_told_so() -> None:
    template = f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {NAME}}}\nvalue: -1\n"
    _, problems = checked({"name": "a", "mode": "Enforce"}, template=template)
    assert [(each.file, each.line, each.code) for each in problems] == [("templates/node_pool.yaml.j2", 1, "RC414")]
    assert (
        f"PriorityClass/{NAME} is rendered for GpuPool/a, but reconciler creates it for all pools"
        in problems[0].sentence
    )


def test_what_is_printed_says_that_it_is_for_all_pools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(POOL.format_map(WISHED))
    assert main(["render"]) == 0
    assert "# policies/a.yaml:5 for all pools at dir:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pool", "pods", "held"),
    [
        ({"mode": "Enforce", "suspend": True}, [], []),
        ({"mode": "Enforce", "suspend": True}, ["Pending"], []),
        ({"mode": "Observe"}, ["Running", "Pending"], []),
        ({"mode": "Observe", "suspend": True}, ["Pending"], []),
        ({"mode": "Observe"}, [], ["ObjectNotDeclared"]),
        ({"mode": "Observe"}, ["Succeeded"], ["ObjectNotDeclared"]),
    ],
)
def test_it_is_kept_while_a_pool_or_a_pod_uses_it(pool: dict[str, object], pods: list[str], held: list[str]) -> None:
    inputs = stage.inputs_of({"live": "absent", "wish": "nothing", "pools": {"a100": pool}, "kept": [live()]})
    smart = (builders.pod(f"s{at}", phase=phase, priority_class_name=NAME) for at, phase in enumerate(pods))
    seen = msgspec.structs.replace(inputs.observed, pods=tuple(smart))
    for prune in ((), (f"PriorityClass/{NAME}",)) if not held else ((),):
        verdict = stage.decide(msgspec.structs.replace(inputs, observed=seen, prune=prune))
        assert [each.reason.code for each in verdict.decisions] == held


def test_it_is_kept_while_the_pods_are_unknown() -> None:
    case = {"live": "absent", "wish": "nothing", "pools": {"a100": {"mode": "Observe"}}, "kept": [live()]}
    inputs = stage.inputs_of({**case, "unread": {"pods": "timed out"}})
    assert stage.decide(inputs).decisions == ()


def live() -> Object:
    """As we make it."""
    wish, _ = checked({"name": "a", "mode": "Enforce"})
    (manifest,) = [each for each in wish.manifests if not each.pool]
    body: Object = json.loads(wish_of(manifest, None, "prod").text)
    return body


def test_it_goes_with_the_last_of_ours_and_stays_where_one_pool_is_released() -> None:
    there = world(NODE_POOL, live()).observe()
    assert [each.subject.title for each in release(there)] == [f"PriorityClass/{NAME}"]
    assert release(there, pool="a100") == ()


def test_it_stays_while_somebody_else_s_pod_names_it() -> None:
    (decision,) = release(world(live(), pod("theirs", priority=NAME)).observe())
    assert decision.reason.code == "ReleasedWhenUnused"
