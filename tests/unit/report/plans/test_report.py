"""The report of a plan: the screen of the design, and what each circumstance adds to it or takes away."""

import msgspec
import pytest

from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.plan.consequence import Consequence, Hindrance
from reconciler.model.plan.decision import Decision, Hold, Reason, Ref
from reconciler.model.problem import Origin
from reconciler.plan.guards.observing import Observation
from reconciler.report import FORMATS, write
from reconciler.report.decision_text import MOST_ALIKE, DecisionText
from reconciler.report.plans.plan_document import plan_document
from reconciler.report.plans.plan_shape import Amount
from reconciler.report.plans.planned import Planned
from tests.unit.plan.some_reasons import MadeUp, some_reason
from tests.unit.report.formats.block_samples import HOSTILE
from tests.unit.report.plans.samples import (
    A100,
    BLOCKED,
    DELETED,
    EDITED,
    FILE,
    HELD,
    MADE,
    NOW,
    POOL,
    PULL_REQUEST,
    QUIET,
    REMOVED,
    REPLACED,
    STANDING,
    TAINT,
    UNREAD,
    nodes,
    plan,
    planned,
)

replace = msgspec.structs.replace


def told(plan_told: Planned, form: str = "text", color: bool = False) -> str:
    return write(plan_document(plan_told), form, color)


def test_a_pull_request_is_told_as_in_the_design() -> None:
    assert told(PULL_REQUEST) == (
        "prod b7d0a15 on 4c1f9e2, cluster prod-eu1 (9b3c6f0e), snapshot taken 40 s ago, reconciler 0.9.2\n"
        "\n"
        "  ~ GpuPool/a100-training          policies/base/a100-training.yaml:14\n"
        "      taints: + dedicated=training:NoSchedule  drifts 114 of 120 nodes\n"
        "  ~ NodeProvisioner/a100-training  policies/base/a100-training.yaml:23\n"
        "      minGPUUtilizationPercent: 70 -> 80       in place; target size 114 -> 100\n"
        "\n"
        "a100-training: 120 nodes, 80 busy           nodes  GPUs      $/h  when\n"
        "  also without this change\n"
        "    -   empty, drifted, not replaced            6    48  -131.76  Karpenter, 12 at a time; about 10 min\n"
        "  because of this change\n"
        "    -   empty, drifted, not replaced           34   272  -746.64  Karpenter, 12 at a time; about 50 min\n"
        "    -/+ busy, drifted, pods evicted            28   224        0  Karpenter, 8 at a time; 61 pods; about 2 h\n"
        "    ~   busy, drifted, cannot be disrupted     52   416        0  "
        "90 pods; 52 nodes because of do-not-disrupt; no known end\n"
        "  PodDisruptionBudgets: none blocks an eviction.\n"
        "  The limits of the NodePool (128 nodes) allow the replacements.\n"
        "\n"
        "Pools of these policies   now 120 nodes, 960 GPUs   without this change 114 nodes, 912 GPUs   "
        "with this change 80 nodes, 640 GPUs\n"
        "Cost   now $2,202.60/h   without this change $2,070.84/h   with this change $1,324.20/h   "
        "(each includes $885.00/h that is paid whether nodes run or not)\n"
        "\n"
        "Held\n"
        "  ! NodePool/shared  policies/base/shared.yaml:3\n"
        "      NodePool/shared was made by someone else.\n"
        "      remedy: write adopt: true in GpuPool/shared\n"
        "      re-evaluated at 14:52Z (in 11 min)\n"
        "\n"
        "2 policies changed, 0 added, 0 removed, 1 held. "
        "Change sha256:e6d5581f, independent of the state of the cluster.\n"
    )


def test_a_plan_by_itself_tells_what_it_would_write_and_delete() -> None:
    assert told(planned(EDITED, DELETED, MADE, consequences=(STANDING,))) == (
        "prod b7d0a15, cluster prod-eu1 (9b3c6f0e), snapshot taken 40 s ago, reconciler 0.9.2\n"
        "\n"
        "  ~ NodePool/a100-training     policies/base/a100-training.yaml:3\n"
        "      NodePool/a100-training differs in spec.template.spec.taints; that drifts all 120 nodes.\n"
        "  - NodePool/old\n"
        "      no policy declares NodePool/old any more, and --prune NodePool/old was given.\n"
        "  + NodePool/new (suppressed)  policies/base/new.yaml:3\n"
        "      NodePool/new does not exist yet and is created.\n"
        "\n"
        "a100-training: no longer declared   nodes  GPUs      $/h  when\n"
        "  independent of this plan\n"
        "    - empty, drifted, not replaced      6    48  -131.76  Karpenter, 12 at a time; about 10 min\n"
        "\n"
        "1 object to change, 0 to add, 1 to delete; 1 suppressed (would apply if GpuPool/new were in mode Enforce). "
        "Plan sha256:5d09c15d, for this snapshot of the cluster.\n"
    )


def test_no_changes_are_one_line_that_says_what_was_compared() -> None:
    compared = "cluster prod-eu1 (9b3c6f0e), snapshot taken 40 s ago, reconciler 0.9.2.\n"
    assert told(QUIET) == f"No changes. prod b7d0a15 was compared with {compared}"
    based = replace(PULL_REQUEST, plan=plan(), decision_texts=(), changes=(), base=plan())
    assert told(based) == f"No changes. prod b7d0a15 was compared with 4c1f9e2 and with {compared}"


def test_what_could_not_be_read_is_warned_of_first_and_nothing_is_called_unchanged() -> None:
    lines = told(replace(QUIET, unread=UNREAD, notices=("the dump is 3 h old",))).splitlines()
    assert lines[0] == (
        "! nodepools.karpenter.sh are unknown: 403 Forbidden. reconciler assumes that such objects may exist."
    )
    assert lines[1] == "note: the dump is 3 h old"
    assert lines[2].startswith("No changes in the objects that could be read. prod b7d0a15 was compared")
    assert told(replace(PULL_REQUEST, unread=UNREAD)).startswith("! nodepools.karpenter.sh are unknown")


def test_a_pool_that_only_observes_is_told_what_would_be_done() -> None:
    lines = told(replace(PULL_REQUEST, pools=(replace(POOL, observation=Observation(A100, by_mode=True)),)))
    assert "~ GpuPool/a100-training (suppressed)" in lines
    assert "would drift 114 of 120 nodes" in lines
    assert "  because of this change (suppressed: GpuPool/a100-training is in mode Observe)\n" in lines


def test_all_nodes_drift_where_all_do() -> None:
    every = replace(REMOVED, nodes=nodes(0, 120))
    lines = told(replace(PULL_REQUEST, plan=plan(consequences=(every,)), decision_texts=(), base=plan()))
    assert "taints: + dedicated=training:NoSchedule  drifts all 120 nodes" in lines


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        ("labels.team", "drifts 34 of 120 nodes"),
        ("instanceTypes[p4d.24xlarge].name", "drifts 34 of 120 nodes"),
        ("instanceTypes[p4d.24xlarge].pricePerHour.on-demand", "in place"),
        ("limits.nodes", "in place"),
        ("mode", "in place"),
    ],
)
def test_a_field_that_no_node_is_compared_with_changes_in_place(path: str, effect: str) -> None:
    field = FieldChange(path, "a", "b", Origin(FILE, 9))
    change = PolicyChange("GpuPool", A100, "change", Origin(FILE, 3), (field, TAINT))
    lines = told(
        replace(PULL_REQUEST, changes=(change,), plan=plan(consequences=(STANDING, REMOVED)), decision_texts=())
    )
    assert next(line for line in lines.splitlines() if path in line).endswith(f"  {effect}")


def test_where_nothing_drifts_every_field_is_in_place() -> None:
    lines = told(replace(PULL_REQUEST, plan=plan(consequences=(STANDING,)), decision_texts=()))
    assert "taints: + dedicated=training:NoSchedule  in place" in lines


def test_an_edit_of_what_is_held_is_not_said_to_be_in_place() -> None:
    held = replace(HELD, decision=replace(HELD.decision, pool=A100, subject=Ref("NodePool", "", A100)))
    lines = told(replace(PULL_REQUEST, plan=plan(held), decision_texts=(held,), base=plan()))
    assert "taints: + dedicated=training:NoSchedule  held, see below\n" in lines
    assert "minGPUUtilizationPercent: 70 -> 80       in place\n" in lines


def test_a_provisioner_is_not_blamed_for_the_pool_of_its_name() -> None:
    gone = PolicyChange("NodeProvisioner", A100, "remove", Origin(FILE, 18), ())
    lines = told(replace(PULL_REQUEST, changes=(gone,), plan=plan(consequences=(REMOVED,)), decision_texts=()))
    assert "  - NodeProvisioner/a100-training  policies/base/a100-training.yaml:18\n\n" in lines


def test_policies_that_come_and_go_are_told_whole() -> None:
    origin = Origin("policies/base/new.yaml", 3)
    new = PolicyChange("GpuPool", "new", "add", origin, (FieldChange("mode", None, "Observe", origin),))
    old = PolicyChange("GpuPool", "old", "remove", Origin("policies/base/old.yaml", 3), ())
    gone = Consequence("", "old", "change", "deleted", nodes(0, 4), 32, 16, 9, -87_840_000, seconds=0)
    left = {"nodes": Amount(4, 4, 0), "gpus": Amount(32, 32, 0)}
    lines = told(
        replace(
            PULL_REQUEST,
            changes=(new, old),
            plan=plan(consequences=(gone,)),
            decision_texts=(),
            pools=(),
            base=plan(),
            **left,
        )
    )
    assert lines.splitlines()[2:-2] == [
        "  + GpuPool/new  policies/base/new.yaml:3",
        "      mode: Observe",
        "  - GpuPool/old  policies/base/old.yaml:3",
        "      no longer declared  deletes 4 nodes",
        "",
        "old: no longer declared                nodes  GPUs     $/h  when",
        "  because of this change",
        "    - NodePool deleted, nodes with it      4    32  -87.84  immediately, ignoring all budgets; 9 pods",
        "  ! Deleting NodePool/old also deletes 4 nodes and 9 pods, with 16 GPUs in use.",
        "",
        (
            "Pools of these policies   now 4 nodes, 32 GPUs   without this change 4 nodes, 32 GPUs   "
            "with this change 0 nodes, 0 GPUs"
        ),
    ]


def test_what_the_base_does_too_is_folded_away_and_what_it_does_not_do_is_told() -> None:
    other = replace(PULL_REQUEST, changes=(), plan=plan(EDITED, MADE), decision_texts=(EDITED, MADE), base=plan(MADE))
    lines = told(other).splitlines()
    assert lines.index("  ~ NodePool/a100-training  policies/base/a100-training.yaml:3") == 2
    assert lines[lines.index("Done also without this change") + 1].startswith("  + NodePool/new (suppressed)")
    assert "<details><summary>Done also without this change</summary>" in told(other, "markdown")


def test_budgets_in_the_way_and_nodes_without_a_price_are_named() -> None:
    held = replace(BLOCKED, held_by=((Hindrance("PodDisruptionBudget/ml/train", "pod_budget"), 3),), unpriced=2)
    lines = told(replace(PULL_REQUEST, plan=plan(consequences=(held,)), decision_texts=()))
    assert "  ! PodDisruptionBudget/ml/train blocks 3 nodes: the budget allows no eviction there now.\n" in lines
    assert "  note: 2 nodes without a declared price: excluded from $/h.\n" in lines
    assert "none blocks an eviction" not in lines


def test_nodes_that_the_change_spares_are_told() -> None:
    spared = replace(PULL_REQUEST, plan=plan(), decision_texts=(), base=plan(consequences=(STANDING,)))
    lines = told(spared).splitlines()
    assert lines[lines.index("  no longer happens with this change") + 1] == (
        "    - empty, drifted, not replaced      6    48  -131.76  Karpenter, 12 at a time; about 10 min"
    )


def test_a_field_whose_nodes_drift_anyway_says_so() -> None:
    all_drift = plan(EDITED, consequences=(replace(STANDING, fate="replaced"),))
    lines = told(replace(PULL_REQUEST, plan=all_drift, decision_texts=(EDITED,), base=all_drift))
    assert "taints: + dedicated=training:NoSchedule  drifted already\n" in lines
    assert told(replace(PULL_REQUEST, plan=all_drift, decision_texts=(EDITED,), base=all_drift), "github") == ""


def test_a_field_that_ends_what_the_base_drifts_says_so() -> None:
    lines = told(
        replace(PULL_REQUEST, plan=plan(EDITED), decision_texts=(EDITED,), base=plan(consequences=(REPLACED,)))
    )
    assert "taints: + dedicated=training:NoSchedule  ends drift of 28 nodes\n" in lines


def test_what_a_guard_refuses_is_warned_of() -> None:
    lines = told(replace(PULL_REQUEST, warnings=("ChangeGuard/fleet is for another cluster",))).splitlines()
    assert lines[0] == "! ChangeGuard/fleet is for another cluster"


def test_many_holds_for_one_reason_are_told_once_they_are_understood() -> None:
    held = tuple(
        DecisionText(
            Decision("manifests", Ref("Node", "", name), Hold(), some_reason("CordonedByOthers")),
            f"{name} was cordoned.",
        )
        for name in nodes(0, MOST_ALIKE + 3)
    )
    lines = told(planned(*held)).splitlines()
    assert sum("was cordoned" in line for line in lines) == MOST_ALIKE
    assert any(line.endswith("and 3 more: CordonedByOthers") for line in lines)
    assert lines[-1].startswith("0 objects to change, 0 to add, 0 to delete, 8 held.")


def test_a_hold_of_another_day_has_its_date() -> None:
    until = replace(HELD.decision, act=Hold(type(NOW)(NOW + 2 * 86_400_000)))
    assert "re-evaluated at 2026-11-20 14:41Z (in 2 d)" in told(planned(DecisionText(until, "not yet.")))


def test_github_has_an_annotation_beside_each_line_with_a_consequence_and_nothing_else() -> None:
    assert told(PULL_REQUEST, "github") == (
        "::warning file=policies/base/a100-training.yaml,line=14,title=GpuPool/a100-training::"
        "taints: + dedicated=training:NoSchedule: drifts 114 of 120 nodes; 34 nodes removed, 28 nodes replaced, "
        "52 nodes blocked, 151 pods must move, 640 GPUs in use, -746.64 $/h\n"
    )
    assert told(planned(EDITED, consequences=(REPLACED,)), "github") == (
        "::warning file=policies/base/a100-training.yaml,line=3,title=NodePool/a100-training::"
        "NodePool/a100-training differs in spec.template.spec.taints; that drifts all 120 nodes. "
        "28 nodes replaced, 61 pods must move, 224 GPUs in use\n"
    )
    assert told(planned(EDITED), "github") == ""


def test_pipelines_see_what_is_held_and_held_up_at_its_line() -> None:
    document = plan_document(PULL_REQUEST)
    assert [(each.file, each.line, each.code, each.sentence) for each in document.findings] == [
        (
            FILE,
            14,
            "HeldUp",
            "52 nodes of NodePool/a100-training drift but cannot be disrupted: 52 nodes because of do-not-disrupt",
        ),
        ("policies/base/shared.yaml", 3, "NotOurs", "NodePool/shared was made by someone else."),
    ]
    assert '"startLine": 14' in told(PULL_REQUEST, "sarif")
    assert 'tests="2" failures="0" errors="0" skipped="2"' in told(PULL_REQUEST, "junit")


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_hostile_name_is_told_as_a_name_in_every_format(trick: str) -> None:
    change = PolicyChange(
        "GpuPool", trick, "change", Origin(trick, 3, trick), (FieldChange(trick, trick, None, Origin(trick, 4)),)
    )
    consequence = replace(REMOVED, pool=trick, node_pool=trick, held_by=((Hindrance(trick, "annotation"), 2),))
    held = DecisionText(
        replace(HELD.decision, subject=Ref(trick, trick, trick), reason=Reason(MadeUp(trick, ((trick, trick),)))),
        trick,
        trick,
    )
    hostile = replace(
        PULL_REQUEST,
        setting=replace(PULL_REQUEST.setting, environment=trick, cluster=trick, revision=trick),
        plan=plan(held, consequences=(consequence,)),
        decision_texts=(held,),
        changes=(change,),
        pools=(replace(POOL, pool=trick, remarks=(trick,)),),
        unread=UNREAD,
        notices=(trick,),
    )
    plain = told(PULL_REQUEST, "html")
    for form in FORMATS:
        lines = told(hostile, form).split("\n")
        assert all(line.isprintable() for line in lines), form
    assert len(told(hostile, "github").splitlines()) == 1
    assert told(hostile, "html").count("<script") == plain.count("<script") == 0
    assert "@team" not in told(hostile, "markdown")


def test_colors_change_nothing_but_the_look() -> None:
    colored = told(PULL_REQUEST, color=True)
    assert "\x1b[33mdrifts 114 of 120 nodes\x1b[0m" in colored
    assert "\x1b[31m-\x1b[0m   empty" in colored
