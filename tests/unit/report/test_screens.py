"""The smaller screens: why something is, or is not, being acted on; and how things stand."""

import json

import msgspec

from reconciler.plan.guards.observing import Observation
from reconciler.report import FORMATS, write
from reconciler.report.explain.subject import Explained, explained_document
from reconciler.report.status.overview import Overview, PoolOverview, overview_document
from tests.unit.report.plans.samples import ALONE, HELD, UNREAD

NODE = Explained(
    setting=ALONE,
    subject="node/ip-10-3-41-7",
    headline="a100-training, p4d.24xlarge on-demand, 0 of 8 GPUs in use, empty",
    outcome="It is left alone until NodePool/shared is ours.",
    rows=(
        ("why", "80 of 120 nodes busy is 66.7 %"),
        ("why", "70 % keeps at most 114"),
        ("kept if", "a pod is scheduled to the node"),
    ),
    decision_texts=(HELD,),
)
OBSERVED = Observation("l4-inference", by_mode=True)
STATUS = Overview(
    setting=ALONE,
    pools=(
        PoolOverview("a100-training", "Enforce", 120, 80, 960, 640, 6),
        PoolOverview("l4-inference", "Observe", 12, 12, 48, 31, 0),
    ),
    pending=1,
    supposed={OBSERVED: 3},
    held=2,
)


def test_a_node_is_explained_with_what_is_behind_it() -> None:
    assert write(explained_document(NODE), "text", color=False) == (
        "node/ip-10-3-41-7: a100-training, p4d.24xlarge on-demand, 0 of 8 GPUs in use, empty\n"
        "It is left alone until NodePool/shared is ours.   NotOurs\n"
        "  why           80 of 120 nodes busy is 66.7 %\n"
        "                70 % keeps at most 114\n"
        "  kept if       a pod is scheduled to the node\n"
        "  declared in   policies/base/shared.yaml:3 @ b7d0a15\n"
        "  re-evaluated  at 14:52Z (in 11 min)\n"
        "  remedy        write adopt: true in GpuPool/shared\n"
    )


def test_what_nothing_is_decided_about_is_one_line() -> None:
    assert (
        write(explained_document(Explained(ALONE, "pool/l4", "12 nodes")), "text", color=False) == "pool/l4: 12 nodes\n"
    )


def test_an_explanation_for_programs_has_its_rows_and_decisions() -> None:
    told = json.loads(write(explained_document(NODE), "json", color=False))
    assert (told["format_version"], told["subject"]) == (2, "node/ip-10-3-41-7")
    assert told["rows"][2] == {"label": "kept if", "text": "a pod is scheduled to the node"}
    assert [(each["reason"], each["action"]) for each in told["decisions"]] == [("NotOurs", None)]


def test_the_status_shows_each_pool_and_how_many_decisions_wait() -> None:
    assert write(overview_document(STATUS), "text", color=False) == (
        "prod b7d0a15, cluster prod-eu1 (9b3c6f0e), snapshot taken 40 s ago, reconciler 0.9.2\n"
        "\n"
        "pool           mode     nodes  busy  GPUs  in use  drifted\n"
        "a100-training  Enforce    120    80   960     640        6\n"
        "l4-inference   Observe     12    12    48      31        0\n"
        "\n"
        "1 action to carry out, 3 suppressed (would apply if GpuPool/l4-inference were in mode Enforce), "
        "2 held. For details, run `reconciler plan`.\n"
    )


def test_a_status_never_calls_done_what_could_not_be_read() -> None:
    quiet = msgspec.structs.replace(STATUS, pending=0, supposed={}, held=0)
    assert write(overview_document(quiet), "text", color=False).endswith("\nThere is nothing to do.\n")
    told = write(overview_document(msgspec.structs.replace(quiet, unread=UNREAD, pools=())), "text", color=False)
    assert told.startswith("! nodepools.karpenter.sh are unknown")
    assert told.endswith("No policy declares a pool.\n\nThere is nothing to do for the objects that could be read.\n")


def test_the_status_for_programs_names_the_cluster_and_the_pools() -> None:
    told = json.loads(write(overview_document(STATUS), "json", color=False))
    assert told["cluster"]["seen_at"] == "2026-11-18T14:40:20Z"
    assert told["pools"][1]["mode"] == "Observe"
    assert (told["pending"], told["would"], told["held"]) == (1, 3, 2)


def test_every_format_has_something_to_say_of_them() -> None:
    for document in (explained_document(NODE), overview_document(STATUS)):
        lines = {form: write(document, form, color=False) for form in FORMATS}
        assert all(told for form, told in lines.items() if form != "github")
        assert lines["github"] == ""
        assert 'failures="0"' in lines["junit"]
