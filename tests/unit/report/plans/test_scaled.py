"""The report of a plan tells of nodes that are scaled down where it tells of the pool, and nowhere as held."""

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Hold, Ref
from reconciler.plan.impact.departures import Departing
from reconciler.plan.scaling.reasons import SurplusEmptyNode
from reconciler.report import write
from reconciler.report.decision_text import DecisionText
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.planned import Planned
from tests.unit.plan.some_reasons import reason_of
from tests.unit.report.plans.samples import A100, EDITED, NOW, PULL_REQUEST, STANDING, plan, planned

replace = msgspec.structs.replace


def told(plan_told: Planned) -> str:
    return write(plan_document(plan_told), "text", color=False)


ROW = "    - empty, scaled down               6    48  -131.76  14:52Z, marked "


def test_nodes_that_are_scaled_down_are_told_with_their_time_and_since_when() -> None:
    scaled = replace(STANDING, fate="scaled", wave=0, seconds=None)
    at, since = Instant(NOW + 660_000), Instant(NOW - 1_140_000)
    marked = tuple(Departing(node, A100, at, since, is_marked=True) for node in scaled.nodes)
    both = plan(consequences=(scaled,))
    assert f"  also without this change\n{ROW}since 14:22Z\n" in told(
        replace(PULL_REQUEST, base=both, plan=both, departing=marked)
    )
    new = tuple(replace(each, since=None, is_marked=False) for each in marked)
    head = plan(consequences=(replace(scaled, cause="change"),))
    assert f"  because of this change\n{ROW}now\n" in told(replace(PULL_REQUEST, base=plan(), plan=head, departing=new))


def test_a_marked_node_that_waits_is_not_told_as_held() -> None:
    waits = Decision("scaling", Ref("Node", "", "n"), Hold(NOW), reason_of(SurplusEmptyNode.__name__), A100)
    one = DecisionText(waits, "n is empty.")
    assert "held" not in told(planned(one, EDITED))
