"""The table of phases is total, leads somewhere from everywhere, and its page is what it says."""

from itertools import product

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reconciler.plan.smart_pods.advance import TABLE, InvalidTransition, PhaseEvent, SmartPodPhase, after, read
from reconciler.report.generated import SMART_PODS_PAGE, published_files
from tests.lab.places import REPOSITORY


@pytest.mark.parametrize(("phase", "event"), tuple(product(SmartPodPhase, PhaseEvent)), ids=lambda each: each.name)
def test_every_move_is_in_the_table_or_refused_by_name(phase: SmartPodPhase, event: PhaseEvent) -> None:
    if (phase, event) in TABLE:
        assert after(phase, event) is TABLE[phase, event]
        return
    with pytest.raises(InvalidTransition) as refused:
        after(phase, event)
    assert phase.value in str(refused.value)
    assert event.value in str(refused.value)


def test_every_event_happens_some_time_and_every_phase_is_come_to() -> None:
    assert {event for _, event in TABLE} == set(PhaseEvent)
    assert reached(SmartPodPhase.PENDING) == set(SmartPodPhase)


@pytest.mark.parametrize("phase", SmartPodPhase)
def test_whatever_it_is_it_can_still_come_to_its_end(phase: SmartPodPhase) -> None:
    assert SmartPodPhase.COMPLETED in reached(phase)


def reached(phase: SmartPodPhase) -> set[SmartPodPhase]:
    found = {phase}
    while more := {there for (before, _), there in TABLE.items() if before in found} - found:
        found |= more
    return found


class Life(RuleBasedStateMachine):
    """One smart pod, to which anything happens; a process may be gone at any time, and then what is written counts."""

    @initialize()
    def begin(self) -> None:
        self.phase, self.was = SmartPodPhase.PENDING, [SmartPodPhase.PENDING]

    @rule(event=st.sampled_from(PhaseEvent))
    def happens(self, event: PhaseEvent) -> None:
        before = self.phase
        try:
            self.phase = after(before, event)
        except InvalidTransition:
            assert (before, event) not in TABLE
        else:
            self.was.append(self.phase)

    @rule()
    def restarts(self) -> None:
        """What is over is deleted, and NodeReady is seen of the node: neither is read from the pod."""
        if self.phase not in {SmartPodPhase.COMPLETED, SmartPodPhase.NODE_READY}:
            assert read(self.phase.value) is self.phase

    @invariant()
    def nothing_follows_the_end(self) -> None:
        assert SmartPodPhase.COMPLETED not in self.was[:-1]

    @invariant()
    def it_is_done_only_after_its_node_was_ready_or_when_it_is_not_needed(self) -> None:
        if self.phase is SmartPodPhase.COMPLETED:
            assert self.was[-2] in {SmartPodPhase.NODE_READY, SmartPodPhase.PENDING, SmartPodPhase.FAILED}


TestLife = Life.TestCase


def test_its_page_is_drawn_from_the_table() -> None:
    page = published_files()[SMART_PODS_PAGE]
    if (REPOSITORY / SMART_PODS_PAGE).read_text(encoding="utf-8") != page:
        pytest.fail(f"{SMART_PODS_PAGE} is not what the table says: run `make generate`", pytrace=False)
    for (phase, event), then in TABLE.items():
        assert f"    {phase.value} --> {then.value}: {event.value}\n" in page
