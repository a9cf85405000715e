"""The log: a line for what is new in a cycle, and none for what was said before."""

import io
import json

import msgspec
import pytest

from reconciler.controller.publishers import Format, Log
from reconciler.loop.cycle import decide
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Outcome, Ref
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.problem import Problem
from reconciler.report.applied import LogLine, lines
from tests.unit.plan.manifests.stage import inputs_of
from tests.unit.plan.scaling.stage import World

EDIT = {"nodes": 2, "wish": {"spec": {"limits": {"cpu": "480"}}}}
NOW = Instant(1_795_000_000_000)


def cycled(case: dict[str, object], **more: object) -> CycleResult:
    inputs: Inputs = inputs_of(case)
    return msgspec.structs.replace(CycleResult(NOW, inputs, decide(inputs).plan), **more)


def events(before: CycleResult | None, after: CycleResult) -> list[str]:
    return [each.event for each in lines(before, after)]


def test_a_decision_is_told_once_with_where_it_was_asked_for() -> None:
    first = cycled(EDIT)
    (told,) = lines(None, first)
    assert told.event == "decided"
    assert told.sentence.startswith("apply NodePool/a100: EditedInPlace: NodePool/a100 differs in ")
    fields = dict(told.fields)
    assert fields["decision"] == "apply NodePool/a100: EditedInPlace"
    assert (fields["planner"], fields["subject"], fields["pool"]) == ("manifests", "NodePool/a100", "a100")
    assert fields["place"] == "policies/a100.yaml:4"
    assert first.plan
    assert fields["plan"] == first.plan.digest
    assert events(first, cycled(EDIT)) == []


def test_another_verb_or_reason_is_news_and_so_is_that_nothing_is_to_be_done() -> None:
    first = cycled(EDIT)
    observing = cycled({**EDIT, "pools": {"a100": {"mode": "Observe"}}})
    (told,) = lines(first, observing)
    assert told.sentence.startswith("would apply NodePool/a100: EditedInPlace: ")
    assert dict(told.fields)["would"] == 1
    assert events(first, cycled({"nodes": 2})) == ["gone"]


def of_surplus_nodes() -> CycleResult:
    world = World({"nodes": 4, "busy": "0-1"})
    return CycleResult(NOW, world.inputs, world.planned())


def test_nodes_that_differ_in_a_number_are_one_line_for_people_and_a_line_each_for_programs() -> None:
    cycle = of_surplus_nodes()
    (one,) = lines(None, cycle, is_grouped=True)
    taint = "gpu.scheduling/deletion-time=+600s:PreferNoSchedule: SurplusEmptyNode"
    assert one.sentence.startswith(f"taint Node/a100-[002-003] {taint}, for example: a100-002 ")
    each = [dict(line.fields) for line in lines(None, cycle)]
    assert [fields["subject"] for fields in each] == ["Node/a100-002", "Node/a100-003"]
    assert [fields["decision"] for fields in each] == [f"taint Node/a100-{at} {taint}" for at in ("002", "003")]


@pytest.mark.parametrize(("written", "count"), [("text", 1), ("json", 2)])
def test_only_the_text_log_has_one_line_for_several_nodes(written: Format, count: int) -> None:
    stream = io.StringIO()
    Log(written, stream).publish(of_surplus_nodes())
    assert len(stream.getvalue().splitlines()) == count


def test_each_write_is_told_and_a_failure_is_a_warning() -> None:
    outcomes = (
        Outcome(Ref("Node", "", "n1"), "taint", "done"),
        Outcome(Ref("Node", "", "n2"), "taint", "refused", "a webhook said no"),
    )
    told = [each for each in lines(cycled(EDIT), cycled(EDIT, outcomes=outcomes)) if each.event == "written"]
    assert [(each.level, each.sentence) for each in told] == [
        ("info", "taint Node/n1: done"),
        ("warning", "taint Node/n2: refused: a webhook said no"),
    ]


def test_trouble_and_refused_policies_are_told_when_they_come_and_go() -> None:
    problem = Problem("a.yaml", 3, 1, "RC107", 'unknown key "x"')
    fine, bad = CycleResult(NOW), CycleResult(NOW, trouble="nobody answers", problems=(problem,))
    assert [each.sentence for each in lines(fine, bad)] == ['a.yaml:3:1: RC107: unknown key "x"', "nobody answers"]
    assert events(bad, bad) == []
    assert events(bad, fine) == ["policies-good", "recovered"]


@pytest.mark.parametrize("written", ["as_json", "as_text"])
def test_a_line_is_one_line_whatever_is_in_it(written: str) -> None:
    line = LogLine("trouble", "first\nsecond \x1b[31m", (("subject", "a\nb"),), "error")
    told = getattr(line, written)(NOW)
    text = told.decode() if isinstance(told, bytes) else told
    assert "\n" not in text
    assert "\x1b" not in text
    if written == "as_json":
        found = json.loads(text)
        assert (found["level"], found["event"], found["subject"]) == ("error", "trouble", "a\nb")
        assert found["time"].endswith("Z")


class Hung(io.StringIO):
    """What wrote into a pipe that nobody reads any more."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_log_that_nobody_reads_any_more_ends_nothing() -> None:
    log = Log("text", Hung())
    log.tell("started", "it runs")
    log.publish(cycled(EDIT))
