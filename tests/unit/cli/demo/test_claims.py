"""The demo's pods with a GpuClaim: two get the GPUs of an island each, and one waits, for a reason that is told."""

from reconciler.controller.demo import claims_played
from reconciler.loop.cycle import decide
from reconciler.report.explain.about import ExplainedObject
from reconciler.report.explain.subject import about


def test_two_pods_get_gpus_of_one_island_and_the_third_waits_for_a_reason_that_explain_names() -> None:
    inputs, pods = claims_played()
    assert [(each.claim, each.gpus) for each in pods] == [
        ("three", ("0", "1", "2")),
        ("three", ("4", "5", "6")),
        ("pair", ()),
    ]
    assert [len(each.leases) for each in pods] == [3, 3, 0]
    rows = about(decide(inputs), ExplainedObject("pod", pods[-1].name, pods[-1].namespace)).rows
    assert ("fits", "on 0 of 1 node") in [(each[0], each[1]) for each in rows]
    (why,) = [each[1] for each in rows if each[0] == "does not fit"]
    assert "2 GPUs of one island" in why
