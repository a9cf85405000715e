"""Blocked holds end a command with exit code 4, waiting holds do not, and every format of the report agrees."""

import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import msgspec
import pytest
import yaml

from reconciler import report
from reconciler.cli.commands.apply import code_of
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.plan_output import PlanOutput
from reconciler.loop.cycle import decide
from reconciler.model.bundle import PolicyChange
from reconciler.model.plan.decision import Decision, Hold, Outcome, Ref, Result
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.quantity import Duration
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.holds.classes import is_resting
from reconciler.plan.reason_catalog import REASONS
from reconciler.plan.reasons import is_held
from reconciler.report.applied import Applied, applied_document
from reconciler.report.document import ReportDocument
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_document import plan_document
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.guards.stage import guard
from tests.unit.plan.manifests.stage import FOLDER, POLICY, inputs_of
from tests.unit.plan.some_reasons import reason_of
from tests.unit.report.plans.samples import ALONE

CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER.parent / "holds" / "exit_codes.yaml").read_text())
ENDING = PlanOutput(None, Duration(1), detailed_exitcode=True)
EDITED = {"wish": {"spec": {"limits": {"cpu": "1920"}}}}


def world(case: dict[str, Any]) -> Inputs:
    inputs = inputs_of(case)
    guards = tuple(guard(name, said) for name, said in case.get("guards", {}).items())
    return msgspec.structs.replace(
        inputs,
        desired=msgspec.structs.replace(inputs.desired, guards=guards),
        observed=msgspec.structs.replace(inputs.observed, cluster_uid=case.get("cluster_uid", "")),
    )


def compared(case: dict[str, Any]) -> Compared | None:
    if "base" not in case:
        return None
    titles = [title.partition("/") for title in case["changed"]]
    changes = tuple(PolicyChange(kind, name, "change", POLICY, ()) for kind, _, name in titles)
    return Compared(decide(world({**case, **case["base"]})), changes)


def blocks(document: ReportDocument) -> set[bool]:
    """What each format says of it: one answer, where they agree."""
    (suite,) = ET.fromstring(report.write(document, "junit", color=False).encode())  # noqa: S314 - written a line above
    (run,) = json.loads(report.write(document, "sarif", color=False))["runs"]
    return {
        suite.attrib["failures"] != "0",
        any(each["level"] == "error" for each in run["results"]),
        "::error" in report.write(document, "github", color=False),
        bool(json.loads(report.write(document, "json", color=False))["blocked"]),
        *("BLOCKED" in report.write(document, name, color=False) for name in ("text", "markdown", "html")),
    }


@pytest.mark.parametrize("name", CASES)
def test_the_exit_code_and_every_report_follow_from_the_class_of_the_holds(name: str) -> None:
    case = CASES[name]
    planned = planned_of(ALONE, decide(world(case)), compared(case))
    assert lines_of(told.decision for told in planned.blocked) == case.get("blocked", [])
    others = [told.decision for told in (*planned.held, *planned.waiting) if not told.blocks]
    assert lines_of(others) == case.get("waiting", [])
    is_blocked = "blocked" in case
    assert ENDING.code(planned) is (ExitCode.BLOCKED if is_blocked else ExitCode.FINE)
    assert blocks(plan_document(planned)) == {is_blocked}


BY_LIMITS = {code for code, each in REASONS.items() if issubclass(each, HeldByGuard)}


def held_by(code: str) -> PlanningResult:
    """A plan of one hold, with every fact that its sentence names."""
    inputs = world({})
    reason = reason_of(code, POLICY, **({"guard": Ref("ChangeGuard", "", "fleet")} if code in BY_LIMITS else {}))
    decision = Decision("manifests", Ref("NodePool", "", "a100", "uid"), Hold(), reason, "a100")
    scene = decide(inputs)
    return msgspec.structs.replace(scene, plan=msgspec.structs.replace(scene.plan, decisions=(decision,)))


@pytest.mark.parametrize("code", sorted(REASONS))
def test_each_reason_ends_a_command_as_its_class_says(code: str) -> None:
    scene = held_by(code)
    wanted = ExitCode.BLOCKED if REASONS[code].hold == "blocked" else ExitCode.FINE
    assert ENDING.code(planned_of(ALONE, scene, None)) is wanted
    applied = Applied(ALONE, CycleResult(scene.inputs.now, scene.inputs, scene.plan))
    assert code_of(applied) is wanted
    assert blocks(applied_document(applied)) == {wanted is ExitCode.BLOCKED}


@pytest.mark.parametrize("code", sorted(code for code in REASONS if not is_resting(reason_of(code))))
def test_each_format_says_alike_whether_somebody_holds_what_has_a_reason(code: str) -> None:
    because = REASONS[code]
    document = plan_document(planned_of(ALONE, held_by(code), None))
    texts = {name: report.write(document, name, color=False) for name in ("text", "json", "sarif", "junit")}
    title = "Held" if is_held(because) else "Waiting"
    assert (f"\n{title}\n" in texts["text"]) != (f"\n{'Waiting' if is_held(because) else 'Held'}\n" in texts["text"])
    assert f"1 {title.lower()}" in texts["text"]
    (told,) = json.loads(texts["json"])["decisions"]
    assert (told["hold"], told["held"]) == (because.hold, is_held(because))
    (run,) = json.loads(texts["sarif"])["runs"]
    level = "error" if because.hold == "blocked" else "warning" if because.by_person else "note"
    assert {each["level"] for each in run["results"] if each["ruleId"] == code} == {level}
    (suite,) = ET.fromstring(texts["junit"].encode())  # noqa: S314 - written above
    counted = {name: suite.attrib[name] for name in ("failures", "skipped")}
    assert counted == {"failures": str(int(level == "error")), "skipped": str(int(level == "warning"))}


def test_only_what_a_person_or_a_guard_holds_is_held() -> None:
    held = {code for code, each in REASONS.items() if each.by_person}
    assert {"Frozen", "FrozenUnreadably", "PoolSuspended", "CordonedByOthers", "NodeOptedOut", "TaintStays"} <= held
    by_itself = {"CapacityMissing", "TakesTurns", "FollowsHeld", "WindowClosed", "NoDrainSlot", "SurplusInUse"}
    assert by_itself.isdisjoint(code for code, each in REASONS.items() if is_held(each))
    assert not any(each.by_person for each in REASONS.values() if each.hold == "blocked")


def test_limits_of_guards_other_clusters_field_conflicts_and_ownership_block() -> None:
    blocked = {code for code, each in REASONS.items() if each.hold == "blocked"}
    assert blocked >= {*BY_LIMITS, "WrongCluster", "FieldConflict", "NotOurs"}


def test_a_reason_that_asks_a_person_to_agree_or_to_approve_is_blocked() -> None:
    asking = re.compile(r"until you agree|is approved|(made|created) by someone else.*To adopt|the field manager")
    waiting = {code for code, each in REASONS.items() if asking.search(each.template) and each.hold != "blocked"}
    assert waiting == set()


@pytest.mark.parametrize(
    ("results", "is_held", "trouble", "code"),
    [
        (["done"], False, "", ExitCode.FINE),
        (["done"], True, "", ExitCode.BLOCKED),
        ([], True, "", ExitCode.FAILED),
        (["refused"], True, "", ExitCode.FAILED),
        (["done", "refused"], True, "", ExitCode.PARTLY),
        (["done"], True, "the memory could not be written", ExitCode.FAILED),
    ],
)
def test_failed_comes_before_partly_and_partly_before_blocked(
    results: list[Result], is_held: bool, trouble: str, code: ExitCode
) -> None:
    scene = decide(world(EDITED))
    (edit,) = scene.plan.decisions
    acts = tuple(
        msgspec.structs.replace(edit, subject=Ref("NodePool", "", f"p{at}", "uid"))
        for at in range(max(1, len(results)))
    )
    held = held_by("FieldConflict").plan.decisions if is_held else ()
    plan = msgspec.structs.replace(scene.plan, decisions=(*acts, *held))
    outcomes = tuple(Outcome(act.subject, "apply", result) for act, result in zip(acts, results, strict=False))
    applied = Applied(ALONE, CycleResult(scene.inputs.now, scene.inputs, plan, outcomes, trouble=trouble))
    assert code_of(applied) is code
