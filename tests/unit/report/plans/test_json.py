"""A plan for programs: of the published shape, complete, and the same bytes for the same plan."""

import json
import subprocess
import sys
from typing import Any

import jsonschema
import msgspec
import pytest

from reconciler.model.bundle import PolicyChange
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import (
    Action,
    Annotate,
    Bind,
    Decision,
    Evict,
    Label,
    Leaver,
    LentDevice,
    Ref,
    Resize,
    Status,
    Taint,
    Ungate,
)
from reconciler.model.problem import Origin
from reconciler.report import write
from reconciler.report.decision_text import DecisionText
from reconciler.report.generated import PLAN, published_files
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_json import change_digest
from reconciler.report.plans.planned import Planned
from tests.lab.places import REPOSITORY
from tests.unit.plan.some_reasons import some_reason
from tests.unit.report.plans.samples import (
    A100,
    DELETED,
    EDITED,
    FILE,
    HELD,
    MADE,
    POOL,
    PULL_REQUEST,
    QUIET,
    STANDING,
    UNREAD,
    plan,
    planned,
)

replace = msgspec.structs.replace
SCHEMA = json.loads(published_files()[PLAN])
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
ACTS: tuple[Action, ...] = (
    Taint(key="gpu.scheduling/draining", value=None, effect="NoSchedule"),
    Evict(grace_seconds=30),
    Evict(grace_seconds=30, others=(Leaver(Ref("Pod", "team-a", "train-1", "u1"), 20),)),
    Resize(resources=(("cpu", 500),)),
    Bind(node="n1", leases=(LentDevice("l", 0),), annotations=(("a", "b"),)),
    Annotate(annotations=(("a", None),)),
    Label(labels=(("a", "b"),)),
    Ungate(gate="g"),
    Status(body="{}"),
)
EVERY_ACT = tuple(
    DecisionText(Decision("scaling", Ref("Node", "", f"n{at}"), act, some_reason("Any", gpus=8)), "any.")
    for at, act in enumerate(ACTS)
)


def told(plan_told: Planned) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(write(plan_document(plan_told), "json", color=False))
    return document


def test_the_schema_is_committed_as_it_follows_from_the_shape() -> None:
    if (REPOSITORY / PLAN).read_text(encoding="utf-8") != published_files()[PLAN]:
        pytest.fail(
            f"{PLAN} is not what plan_shape.py says: run `make generate`, and commit what it writes", pytrace=False
        )


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "given",
    [PULL_REQUEST, QUIET, planned(EDITED, DELETED, MADE, HELD, consequences=(STANDING,)), planned(*EVERY_ACT)],
    ids=["a pull request", "no changes", "a plan by itself", "every action"],
)
def test_every_plan_is_of_the_published_shape(given: Planned) -> None:
    VALIDATOR.validate(told(replace(given, unread=UNREAD, notices=("old",))))


@pytest.mark.parametrize(
    "place", [(), ("changes", 0), ("decisions", 0), ("decisions", 0, "action"), ("impact", "nodes")]
)
def test_nothing_may_be_missing_and_nothing_more_be_there(place: tuple[str | int, ...]) -> None:
    more, less = told(PULL_REQUEST), told(PULL_REQUEST)
    for step in place:
        more, less = more[step], less[step]  # type: ignore[index]
    name = min(less)
    whole = told(PULL_REQUEST)
    assert VALIDATOR.is_valid(whole)
    del less[name]
    more["more"] = 1
    assert not VALIDATOR.is_valid(_with(place, less))
    assert not VALIDATOR.is_valid(_with(place, more))


def _with(place: tuple[str | int, ...], part: Any) -> Any:
    """The plan with another part at a place."""
    whole = told(PULL_REQUEST)
    if not place:
        return part
    inner: Any = whole
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = part
    return whole


def test_changes_are_policies_and_their_words_before_and_after() -> None:
    assert told(PULL_REQUEST)["changes"] == [
        {
            "kind": "GpuPool",
            "name": A100,
            "verb": "change",
            "before": {},
            "after": {"taints": ["dedicated=training:NoSchedule"]},
            "file": FILE,
            "line": 14,
        },
        {
            "kind": "NodeProvisioner",
            "name": A100,
            "verb": "change",
            "before": {"minGPUUtilizationPercent": ["70"]},
            "after": {"minGPUUtilizationPercent": ["80"]},
            "file": FILE,
            "line": 23,
        },
    ]


def test_what_was_not_there_and_what_is_gone_are_null() -> None:
    origin = Origin(FILE, 3)
    changes = tuple(PolicyChange("GpuPool", verb, verb, origin, ()) for verb in ("add", "remove"))
    assert [(each["before"], each["after"]) for each in told(replace(PULL_REQUEST, changes=changes))["changes"]] == [
        (None, {}),
        ({}, None),
    ]
    written = told(planned(EDITED, DELETED, MADE))["changes"]
    assert [(each["name"], each["verb"], each["before"], each["after"]) for each in written] == [
        (A100, "change", {}, {}),
        ("old", "remove", {}, None),
        ("new", "add", None, {}),
    ]


def test_a_decision_has_its_action_or_when_it_is_looked_at_again() -> None:
    edit, held = told(PULL_REQUEST)["decisions"]
    assert (edit["action"]["verb"], edit["hold_until"], edit["would"]) == ("apply", None, False)
    assert edit["facts"] == {"drifted": 114, "object": "NodePool/a100-training"}
    assert (held["action"], held["hold_until"]) == (None, "2026-11-18T14:52:00Z")
    assert (held["reason"], held["remedy"]) == ("NotOurs", "write adopt: true in GpuPool/shared")
    assert (held["file"], held["line"]) == ("policies/base/shared.yaml", 3)


def test_the_impact_is_that_of_the_change_beside_what_comes_anyway() -> None:
    assert told(PULL_REQUEST)["impact"] == {
        "nodes": {"now": 120, "before": 114, "after": 80},
        "gpus": {"now": 960, "before": 912, "after": 640},
        "gpus_disrupted": 640,
        "pods_evicted": 151,
        "nodes_bought": 0,
        "gpus_bought": 0,
        "repriced_micro_dollars_per_hour": 0,
        "micro_dollars_per_hour": {"now": 2_202_600_000, "before": 2_070_840_000, "after": 1_324_200_000},
    }


def test_consequences_say_what_they_come_from() -> None:
    assert [(each["cause"], each["fate"], len(each["nodes"])) for each in told(PULL_REQUEST)["consequences"]] == [
        ("standing", "removed", 6),
        ("change", "removed", 34),
        ("change", "replaced", 28),
        ("change", "blocked", 52),
    ]


def test_the_digest_of_the_change_stays_as_the_fleet_moves_and_changes_with_the_change() -> None:
    moved = replace(
        PULL_REQUEST,
        setting=replace(PULL_REQUEST.setting, now=Instant(0), revision="other"),
        plan=plan(HELD),
        decision_texts=(HELD,),
        pools=(replace(POOL, nodes=7),),
    )
    assert change_digest(moved) == change_digest(PULL_REQUEST)
    assert change_digest(replace(PULL_REQUEST, changes=PULL_REQUEST.changes[:1])) != change_digest(PULL_REQUEST)
    assert told(moved)["change_digest"] == change_digest(PULL_REQUEST)


def test_hashes_of_the_process_do_not_show() -> None:
    script = (
        "from reconciler.report import FORMATS, write\n"
        "from reconciler.report.plans.plan_document import plan_document\n"
        "from tests.unit.report.plans.samples import PULL_REQUEST\n"
        "print(*(write(plan_document(PULL_REQUEST), form, False) for form in FORMATS))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=REPOSITORY,
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert b"because of this change" in outputs.pop()
