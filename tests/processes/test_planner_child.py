"""The planner's process: the same plans as in ours, and no plan at all where it dies, hangs or fails."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from reconciler.controller import planner_process
from reconciler.loop.child import ChildPlanner
from reconciler.loop.cycle import decide
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.check import BrokenInvariant
from reconciler.ports import Unavailable
from reconciler.sources.history import kept
from tests.unit.plan.manifests.stage import inputs_of

EDIT = {"wish": {"spec": {"limits": {"cpu": "480"}}}}


@pytest.fixture
def planners() -> Iterator[list[ChildPlanner]]:
    started: list[ChildPlanner] = []
    yield started
    for each in started:
        each.close()


def planner(planners: list[ChildPlanner], command: Sequence[str] = (), seconds: float = 60) -> ChildPlanner:
    planners.append(ChildPlanner(command or planner_process.command(None), seconds))
    return planners[-1]


def process_of(planner: ChildPlanner) -> int:
    pid = planner.pid
    assert pid
    return pid


def test_its_plans_are_ours_though_it_is_told_only_what_changed(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    first = inputs_of({"nodes": 3, "busy": 1, **EDIT})
    others = [inputs_of({"nodes": count, "drifted": 1}) for count in (1, 4, 2)]
    for inputs in (first, *others, first, msgspec.structs.replace(first, now=Instant(first.now + 60_000))):
        assert child.plan(inputs) == decide(inputs).plan
    assert decide(first).plan.decisions


def test_a_question_that_could_not_be_asked_leaves_nothing_of_the_one_before(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    child.plan(inputs_of({"nodes": 3, "drifted": 2}))
    with pytest.raises(TypeError):
        child.plan(msgspec.structs.replace(inputs_of(EDIT), prune=(object(),)))
    fewer = inputs_of({"nodes": 1, **EDIT})
    assert child.plan(fewer) == decide(fewer).plan


def test_it_gives_way_to_whoever_else_wants_to_run(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    child.plan(inputs_of({}))
    assert os.getpriority(os.PRIO_PROCESS, process_of(child)) == 10


def test_one_that_dies_while_it_plans_gives_no_plan_and_another_is_started(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    inputs = inputs_of(EDIT)
    child.plan(inputs)
    first = process_of(child)
    os.kill(first, signal.SIGSTOP)  # it will not answer, and dies with the question before it
    failed: list[Exception] = []

    def ask() -> None:
        try:
            child.plan(inputs)
        except Unavailable as fault:
            failed.append(fault)

    asking = threading.Thread(target=ask)
    asking.start()
    os.kill(first, signal.SIGKILL)
    asking.join(30)
    # The signal may have come before the question; then another has answered it, and nothing was lost.
    assert [str(each) for each in failed] in (
        [],
        ["no plan was made: the planner was ended by signal 9; the planner is restarted"],
    )
    assert child.plan(inputs) == decide(inputs).plan
    assert process_of(child) != first


def test_one_that_died_between_two_questions_is_replaced_and_leaves_nothing_open(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    inputs = inputs_of(EDIT)
    child.plan(inputs)
    first = process_of(child)
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # dead, and still its parent's to notice
    assert child.plan(inputs) == decide(inputs).plan
    assert process_of(child) != first


def test_one_that_hangs_is_ended(planners: list[ChildPlanner]) -> None:
    child = planner(planners, seconds=0.5)
    with pytest.raises(Unavailable, match="ended by signal 9"):
        _hung(child)


def _hung(child: ChildPlanner) -> None:
    child.plan(inputs_of({}))
    os.kill(process_of(child), signal.SIGSTOP)
    child.plan(inputs_of({}))


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import sys; sys.stdin.buffer.read(8); sys.exit(3)", "the planner ended with 3"),
        (
            "import os; os.write(1, bytes(7) + b'\\x02' + b'{}'); import sys; sys.stdin.buffer.read()",
            "because of a bug",
        ),
        ("import os; os.write(1, bytes(7) + b'\\x02' + b'no'); import sys; sys.stdin.buffer.read()", "the planner"),
    ],
)
def test_whatever_answers_it_is_a_plan_or_none(planners: list[ChildPlanner], program: str, told: str) -> None:
    with pytest.raises(Unavailable, match=told):
        planner(planners, (sys.executable, "-c", program)).plan(inputs_of({}))


def test_what_can_t_be_started_is_said(planners: list[ChildPlanner], tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="could not be started"):
        planner(planners, (str(tmp_path / "nothing"),)).plan(inputs_of({}))


FAULTY = """
from reconciler.loop import child
from reconciler.loop import cycle
from reconciler.plan.check import BrokenInvariant
real = cycle.decide
def decide(inputs, fleet):
    print("noise that is no answer")
    if inputs.prune == ("NodePool/broken",):
        raise BrokenInvariant("one action a subject: broken by everyone")
    if inputs.prune == ("NodePool/fault",):
        raise KeyError("what")
    return real(inputs, fleet)
cycle.decide = decide
child.serve(lambda put: None, lambda inputs, plan: None)
"""


def test_a_broken_invariant_comes_through_and_a_fault_ends_nothing(
    planners: list[ChildPlanner], capfd: pytest.CaptureFixture[str]
) -> None:
    child = planner(planners, (sys.executable, "-c", FAULTY))
    inputs = inputs_of(EDIT)

    def pruning(name: str) -> Inputs:
        return msgspec.structs.replace(inputs, prune=(name,))

    assert child.plan(inputs) == decide(inputs).plan
    first = process_of(child)
    with pytest.raises(BrokenInvariant, match="broken by everyone"):
        child.plan(pruning("NodePool/broken"))
    with pytest.raises(Unavailable, match="because of a bug in reconciler: KeyError: 'what'"):
        child.plan(pruning("NodePool/fault"))
    assert child.plan(inputs) == decide(inputs).plan
    assert process_of(child) == first
    told = capfd.readouterr().err
    assert "Traceback" in told
    assert "noise that is no answer" in told


def test_closing_ends_it_in_the_middle_and_for_good(planners: list[ChildPlanner]) -> None:
    child = planner(planners)
    child.plan(inputs_of({}))
    pid = process_of(child)
    child.close()
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(Unavailable, match="planning has ended"):
        child.plan(inputs_of({}))


def test_it_keeps_the_inputs_of_plans_that_act(planners: list[ChildPlanner], tmp_path: Path) -> None:
    child = planner(planners, planner_process.command(tmp_path))
    acts, idle = inputs_of(EDIT), inputs_of({})
    plans = [child.plan(each) for each in (idle, acts, idle)]
    assert not plans[0].decisions
    (record,) = kept(tmp_path)
    assert record.digest == plans[1].digest
    assert decide(record.inputs).plan == plans[1]
