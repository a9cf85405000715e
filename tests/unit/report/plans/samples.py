"""A plan for the tests of reports: the pull request of the design, that raises a target and also edits a taint."""

import msgspec

from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.cluster.observed import Unread
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.consequence import Consequence, Hindrance, Share
from reconciler.model.plan.decision import Apply, Decision, Delete, Hold, Preconditions, Ref
from reconciler.model.plan.evaluation import ScalingReport, SizeEvaluation, Use
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Origin
from reconciler.plan.guards.observing import Observation
from reconciler.plan.impact.pricing import Bills
from reconciler.report.decision_text import DecisionText
from reconciler.report.header import ReportHeader
from reconciler.report.plans.plan_shape import Amount
from reconciler.report.plans.planned import Planned, PoolLine
from tests.unit.plan.some_reasons import some_reason

A100 = "a100-training"
FILE = "policies/base/a100-training.yaml"
NOW = instant("2026-11-18T14:41:00Z")
HEAD = "b7d0a15e0c2f4d5a9b3c6f0e52d14c0a9f5e0d6f"
BASE = "4c1f9e2a7b6d4d5a9b3c6f0e52d14c0a9f5e0d6f"
SETTING = ReportHeader(
    environment="prod",
    revision=HEAD,
    cluster="prod-eu1",
    cluster_uid="9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21",
    seen_at=Instant(NOW - 40_000),
    now=NOW,
    tool_version="0.9.2",
    base_revision=BASE,
)
ALONE = msgspec.structs.replace(SETTING, base_revision="")


def nodes(first: int, count: int) -> tuple[str, ...]:
    """Names of so many nodes."""
    return tuple(f"ip-{number:03}" for number in range(first, first + count))


def spread(told: Consequence) -> Consequence:
    """With a share of the sums for each node: the same for all, what is left over for the first."""
    count = len(told.nodes)
    sums = (told.gpus, told.gpus_in_use, told.pods, told.micro_dollars_per_hour, told.unpriced)
    shares = []
    for at in range(count):
        gpus, in_use, pods, money, unpriced = (each // count + (each % count if at == 0 else 0) for each in sums)
        holders = tuple(name for name, most in told.held_by if at < most)
        shares.append(Share(gpus, in_use, pods, money, unpriced, holders))
    return msgspec.structs.replace(told, shares=tuple(shares))


STANDING = Consequence(A100, A100, "standing", "removed", nodes(0, 6), 48, 0, 0, -131_760_000, wave=12, seconds=600)
REMOVED = Consequence(A100, A100, "change", "removed", nodes(6, 34), 272, 0, 0, -746_640_000, wave=12, seconds=3_000)
REPLACED = Consequence(A100, A100, "change", "replaced", nodes(40, 28), 224, 224, 61, 0, wave=8, seconds=7_300)
BLOCKED = Consequence(
    A100,
    A100,
    "change",
    "blocked",
    nodes(68, 52),
    416,
    416,
    90,
    0,
    held_by=((Hindrance("do-not-disrupt", "annotation"), 52),),
)
TAINT = FieldChange("taints", None, "dedicated=training:NoSchedule", Origin(FILE, 14, HEAD))
TARGET = FieldChange("minGPUUtilizationPercent", "70", "80", Origin(FILE, 23, HEAD))
CHANGES = (
    PolicyChange("GpuPool", A100, "change", Origin(FILE, 3, HEAD), (TAINT,)),
    PolicyChange("NodeProvisioner", A100, "change", Origin(FILE, 18, HEAD), (TARGET,)),
)
POOL = PoolLine(
    pool=A100,
    nodes=120,
    busy_nodes=80,
    gpus=960,
    gpus_in_use=640,
    cost=Bills(2_202_600_000, 2_070_840_000, 1_324_200_000, 885_000_000),
    remarks=("The limits of the NodePool (128 nodes) allow the replacements.",),
)
EDIT = Decision(
    "manifests",
    Ref("NodePool", "", A100, "uid-1"),
    Apply(manifest='{"kind":"NodePool"}', presumes=Preconditions(resource_version="7")),
    some_reason("EditDriftsAll", Origin(FILE, 3, HEAD), drifted=114, object=f"NodePool/{A100}"),
    A100,
)
EDITED = DecisionText(EDIT, f"NodePool/{A100} differs in spec.template.spec.taints; that drifts all 120 nodes.")
HELD = DecisionText(
    Decision(
        "manifests",
        Ref("NodePool", "", "shared"),
        Hold(Instant(NOW + 660_000)),
        some_reason("NotOurs", Origin("policies/base/shared.yaml", 3, HEAD), pool="shared"),
        "shared",
    ),
    "NodePool/shared was made by someone else.",
    "write adopt: true in GpuPool/shared",
)
DELETED = DecisionText(
    Decision("manifests", Ref("NodePool", "", "old", "uid-2"), Delete(), some_reason("NodePoolPruned"), "old"),
    "no policy declares NodePool/old any more, and --prune NodePool/old was given.",
)
MADE = DecisionText(
    Decision(
        "manifests",
        Ref("NodePool", "", "new"),
        Apply(manifest="{}", presumes=Preconditions(absent=True)),
        some_reason("Missing", Origin("policies/base/new.yaml", 3, HEAD)),
        "new",
        would=True,
    ),
    "NodePool/new does not exist yet and is created.",
    observation=Observation("new", by_mode=True),
)


def plan(*told: DecisionText, consequences: tuple[Consequence, ...] = ()) -> Plan:
    """Of these decisions."""
    return Plan(
        "sha256:" + "5d09c1" * 10 + "5d09", tuple(each.decision for each in told), consequences, Memory(), Hints(), None
    )


def planned(*told: DecisionText, consequences: tuple[Consequence, ...] = ()) -> Planned:
    """Without a base."""
    return Planned(ALONE, plan(*told, consequences=consequences), told)


def sized(told: Plan, target: int) -> Plan:
    """The provisioner came to that."""
    evaluated = SizeEvaluation(A100, A100, Use(120, 80, 640, 960, 8), target, some_reason("TargetSize"))
    return msgspec.structs.replace(told, reports=(ScalingReport((evaluated,)),))


QUIET = planned()
PULL_REQUEST = Planned(
    setting=SETTING,
    plan=sized(plan(EDITED, HELD, consequences=(STANDING, REMOVED, REPLACED, BLOCKED)), 100),
    decision_texts=(EDITED, HELD),
    base=sized(plan(consequences=(STANDING,)), 114),
    changes=CHANGES,
    pools=(POOL,),
    nodes=Amount(120, 114, 80),
    gpus=Amount(960, 912, 640),
)
UNREAD = (Unread("nodepools.karpenter.sh", "403 Forbidden"),)
