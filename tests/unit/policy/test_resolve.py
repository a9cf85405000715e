"""Base and overlays become one wish for each environment, and every value knows where it was written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.bundle import Bundle, Text
from reconciler.policy.read import read_spec
from reconciler.policy.resolve import Resolved, resolve
from reconciler.policy.rules.kinds import POLICY_KINDS
from reconciler.policy.tree import Mark, Node
from reconciler.policy.yaml import read
from tests.lab.places import REPOSITORY
from tests.policies import specimens

BASE = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge}]
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-a100}
  taints: [{key: one, effect: NoSchedule}, {key: two, effect: NoSchedule}]
  labels: {team: research, tier: gold}
  committedNodes: 8
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 2, maxSize: 16, minGPUUtilizationPercent: 70}
"""


def resolved(**files: str) -> Resolved:
    texts = [Text(name.replace("__", "/") + ".yaml", text.encode()) for name, text in files.items()]
    return resolve(Bundle("r1", tuple(sorted(texts, key=lambda text: text.path))))


def overlay(spec: str, kind: str = "GpuPool") -> str:
    return f"apiVersion: gpu.scheduling/v1\nkind: {kind}\nmetadata: {{name: a100}}\nspec: {spec}\n"


def test_without_overlays_there_is_one_environment() -> None:
    found = resolved(base=BASE)
    assert (found.environments, found.problems) == (("base",), ())


def test_maps_merge_lists_replace_and_null_restores_the_default() -> None:
    spec = "{taints: [{key: three, effect: NoExecute}], labels: {team: serving}, committedNodes: null, mode: Enforce}"
    found = resolved(base__pools=BASE, overlays__prod__pools=overlay(spec))
    assert found.problems == ()
    assert found.environments == ("base", "prod")
    base, prod = (found.wish(name).pools[0].spec for name in found.environments)  # type: ignore[union-attr]
    assert [taint.key for taint in prod.taints] == ["three"]
    assert prod.labels == {"team": "serving", "tier": "gold"}
    assert (prod.committed_nodes, prod.mode) == (0, "Enforce")
    assert (base.committed_nodes, base.mode, base.labels["team"]) == (8, "Observe", "research")


def test_every_value_knows_its_file_and_line() -> None:
    found = resolved(base__pools=BASE, overlays__prod__pools=overlay("{labels: {team: serving}}"))
    wish = found.wish("prod")
    assert wish
    pool = wish.pools[0]
    assert (pool.origin("spec.labels.team").file, pool.origin("spec.labels.team").line) == (
        "overlays/prod/pools.yaml",
        4,
    )
    assert (pool.origin("spec.labels.tier").file, pool.origin("spec.labels.tier").line) == ("base/pools.yaml", 9)
    assert pool.origin("spec.taints[1].key").line == 8
    assert pool.origin("spec.mode").line == 3, "a default is pointed at where the object is named"
    assert pool.origin().revision == "r1"


def test_an_environment_may_add_an_object_of_its_own() -> None:
    guard = (
        "apiVersion: gpu.scheduling/v1\nkind: ChangeGuard\nmetadata: {name: fleet}\n"
        "spec: {poolNames: ['*'], perPlan: {maxRemovedNodes: 4}}\n"
    )
    found = resolved(base__pools=BASE, overlays__prod__guard=guard)
    assert found.problems == ()
    assert [len(wish.guards) for wish in found.wishes] == [0, 1]


def test_a_problem_of_base_is_told_once_however_many_environments_there_are() -> None:
    wrong = BASE.replace("minSize: 2", "minSize: 20")
    mode = overlay("{mode: Enforce}")
    found = resolved(base__pools=wrong, overlays__a__p=mode, overlays__b__p=mode)
    assert [each.code for each in found.problems] == ["RC201"]


def test_a_conflict_that_only_one_environment_has_points_at_its_overlay() -> None:
    found = resolved(base__pools=BASE, overlays__prod__p=overlay("{minSize: 20}", "NodeProvisioner"))
    (problem,) = found.problems
    assert (problem.code, problem.file, problem.line) == ("RC201", "overlays/prod/p.yaml", 4)
    assert problem.excerpt == "spec: {minSize: 20}"


REQUIRED = {
    "GpuPool": ("devices", "instanceTypes", "nodeClassRef"),
    "NodeProvisioner": ("poolName", "minSize", "maxSize", "minGPUUtilizationPercent"),
}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in REQUIRED.items() for field in fields])
def test_null_of_a_required_field_points_at_the_overlay(kind: str, field: str) -> None:
    found = resolved(base__pools=BASE, overlays__prod__p=overlay(f"{{suspend: true, {field}: null}}", kind))
    (problem,) = found.problems
    assert (problem.code, problem.file, problem.line) == ("RC104", "overlays/prod/p.yaml", 4)
    assert problem.column == len("spec: {suspend: true, ") + 1


def test_null_below_a_map_points_at_the_overlay_too_and_an_absent_field_at_base() -> None:
    found = resolved(base__pools=BASE, overlays__prod__p=overlay("{devices: {memory: null}}"))
    assert [(each.file, each.field) for each in found.problems] == [("overlays/prod/p.yaml", "spec.devices.memory")]
    without = BASE.replace(", memory: 40Gi", "")
    found = resolved(base__pools=without, overlays__prod__p=overlay("{devices: {memory: null}}"))
    assert [(each.file, each.line) for each in found.problems] == [("base/pools.yaml", 5)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("apiVersion: v1\nkind: List\nitems: []\n", "RC102"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: z}\ndata: {a: b}\n", "RC102"),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\nspec: {}\nstatus: {}\n", "RC102"),
        ("kind: Kustomization\nresources: [a.yaml]\n", "RC101"),
        ("image: x\nreplicas: 3\n", "RC101"),
    ],
)
def test_a_document_that_is_no_policy_has_one_problem(text: str, code: str) -> None:
    assert [each.code for each in resolved(base=BASE, other=text).problems] == [code]


@pytest.mark.parametrize("head", ["kind: GpuPool", "apiVersion: gpu.scheduling/v1"])
def test_a_policy_with_half_a_head_gets_all_its_problems(head: str) -> None:
    found = resolved(base=f"{head}\nmetadata: {{name: A B}}\nsepc: {{}}\n").problems
    assert sorted(each.code for each in found) == ["RC101", "RC107", "RC109"]


def test_an_object_that_cannot_be_read_is_no_dangling_reference() -> None:
    found = resolved(base=BASE.replace("count: 8", "count: eight"))
    assert [each.code for each in found.problems] == ["RC103"]


DRAIN = """\
apiVersion: gpu.scheduling/v1
kind: DrainPolicy
metadata: {name: d}
spec:
  poolNames: [a10]
  maxDrainParallelism: 40
  maxScaleDownParallelism: 20
  clusterMin: {cpu: 1Gi}
  windows:
  - {schedule: 0 25 * * *, duration: 2h}
  - {schedule: 0 0 30 2 *, duration: 2h}
  - {schedule: 0 20 * * *, duration: 2h, timeZone: Europe/Berln}
"""
OF_DRAIN = ["RC203", "RC205", "RC205", "RC206", "RC208", "RC301"]


def codes(text: str) -> list[str]:
    return sorted(each.code for each in resolved(base=BASE, text=text).problems)


@pytest.mark.parametrize(
    ("form_error", "code"),
    [
        ("  suspend: maybe\n", "RC103"),
        ("  scaleDownUnneededTime: soon\n", "RC106"),
        ("  utilizationThresholdPercent: 400\n", "RC105"),
        ("  - {schedule: hello, duration: 2h}\n", "RC106"),
        ("  - {schedule: 0 20 * * *}\n", "RC104"),
        ("  - 7\n", "RC103"),
    ],
)
def test_a_wrong_form_of_one_field_hides_no_problem_of_another(form_error: str, code: str) -> None:
    assert codes(DRAIN) == OF_DRAIN
    assert codes(DRAIN + form_error) == sorted([*OF_DRAIN, code])


@pytest.mark.parametrize(
    ("written", "wrong", "hidden", "told"),
    [
        ("[a10]", "[a10, 7]", [], ["RC103"]),
        ("[a10]", "a10", ["RC301"], ["RC103"]),
        ("maxScaleDownParallelism: 20", "maxScaleDownParallelism: many", ["RC203"], ["RC103"]),
        ("maxScaleDownParallelism: 20", "maxScaleDownParalelism: 20", ["RC203"], ["RC107"]),
        ("maxScaleDownParallelism: 20", "maxScaleDownParallelism: -3", ["RC203"], ["RC105"]),
        ("{cpu: 1Gi}", "{cpu: 1Gi, memory: lots}", [], ["RC106"]),
        ("{cpu: 1Gi}", "{cpu: 1Gi, no name: 1}", ["RC208"], ["RC106"]),
        ("0 25 * * *", "[]", ["RC205"], ["RC103"]),
        ("windows:", "windos:", ["RC205", "RC205", "RC206"], ["RC107"]),
        ("clusterMin", "scaleDownUnneededTime: yes\n  clusterMin", ["RC301"], ["RC009"]),
        ("metadata", "metadatum", OF_DRAIN, ["RC107", "RC109"]),
    ],
)
def test_a_rule_about_a_field_of_the_wrong_form_is_not_checked(
    written: str, wrong: str, hidden: list[str], told: list[str]
) -> None:
    expected = [*OF_DRAIN, *told]
    for code in hidden:
        expected.remove(code)
    assert codes(DRAIN.replace(written, wrong)) == sorted(expected)


@settings(max_examples=60)
@given(data=some.data(), wrong=some.sampled_from([{"?": []}, [[]], "~", -1]))
def test_a_wrong_form_adds_no_problem_of_another_field(data: some.DataObject, wrong: object) -> None:
    kind = data.draw(some.sampled_from(POLICY_KINDS))
    spec = data.draw(specimens.allowed(kind.shape))

    def told(spec: object) -> set[tuple[str, str]]:
        body = {"apiVersion": "gpu.scheduling/v1", "kind": kind.name, "metadata": {"name": "a"}, "spec": spec}
        found = resolved(base=json.dumps(body))
        return {(each.code, each.sentence) for each in (*found.problems, *found.warnings) if each.code[:4] != "RC10"}

    before = told(spec)
    for field in spec:
        broken = {**spec, field: wrong}
        if read_spec(kind.shape, *node_and_mark(broken))[1]:  # not where the field may have this value
            assert told(broken) <= before


def node_and_mark(spec: object) -> tuple[Node, Mark]:
    (node,), _ = read("a.yaml", json.dumps(spec).encode())
    return node, node.at


def test_an_object_of_the_wrong_form_is_not_planned_with() -> None:
    found = resolved(base=BASE, text=DRAIN + "  suspend: maybe\n")
    assert [each.drains for each in found.wishes] == [()]


def test_an_overlay_without_base_has_no_problems_of_defaults() -> None:
    part = overlay("{maxDrainParallelism: 40, windows: 7}", "DrainPolicy")
    found = resolved(base__p=BASE, overlays__prod__p=part)
    assert sorted(each.code for each in found.problems) == ["RC103", "RC111"]


CLAIM = """\
apiVersion: gpu.scheduling/v1
kind: GpuClaim
metadata: {{name: train, namespace: ml}}
spec: {{devices: {{count: 2}}{pool}}}
"""
APPROVAL = """\
apiVersion: gpu.scheduling/v1
kind: ChangeApproval
metadata: {{name: now}}
spec: {{guardName: {guard}, expires: "2026-11-02T08:00:00Z"}}
"""
GUARD = """\
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet}
spec: {poolNames: ["*"], perPlan: {maxRemovedNodes: 4}}
"""


@pytest.mark.parametrize(
    ("other", "warnings"),
    [
        (CLAIM.format(pool=""), []),
        (CLAIM.format(pool=", poolName: a100"), []),
        (CLAIM.format(pool=", poolName: a10"), [("spec.poolName", 4)]),
        (CLAIM.format(pool=", poolName: none"), [("spec.poolName", 4)]),
        (APPROVAL.format(guard="fleet"), []),
        (APPROVAL.format(guard="a100"), [("spec.guardName", 4)]),
    ],
)
def test_what_a_claim_or_an_approval_names_may_be_declared_elsewhere(
    other: str, warnings: list[tuple[str, int]]
) -> None:
    found = resolved(base=BASE, guard=GUARD, other=other)
    assert found.problems == ()
    assert [(each.field, each.line) for each in found.warnings if each.code == "RC301"] == warnings
    assert resolved(other=other).warnings == (), "all pools and guards are declared elsewhere"
    unread = resolved(base=BASE, guard=GUARD, other=other, broken="a: [")
    assert not [each for each in unread.warnings if each.code == "RC301"], "the object may be in the unread file"


def test_a_suspended_policy_fights_nobody() -> None:
    second = (
        BASE.split("---\n")[1].replace("name: a100}", "name: other}").replace("{poolName", "{suspend: true, poolName")
    )
    assert resolved(base=BASE, more=second).problems == ()


def test_the_order_of_files_does_not_matter() -> None:
    pool, provisioner = BASE.split("---\n")
    one, other = resolved(a=pool, b=provisioner), resolved(a=provisioner, b=pool)
    assert one.wishes[0].pools[0].spec == other.wishes[0].pools[0].spec
    assert one.problems == other.problems == ()


@pytest.fixture(scope="module")
def good() -> tuple[Text, ...]:
    files = sorted((REPOSITORY / "policies").rglob("*.yaml"))
    return tuple(Text(str(path.relative_to(REPOSITORY)), path.read_bytes()) for path in files)


JUNK = ["", "no", "3", "-1", "[]", "{}", "{a: b}", "[x, y]", '"*"', "1e9", "null", "&a [*a]", "!!x y", "|\n x", "\x00"]


@settings(max_examples=300)
@given(data=some.data())
def test_any_mutation_of_a_good_policy_never_raises(good: tuple[Text, ...], data: some.DataObject) -> None:
    number = data.draw(some.integers(0, len(good) - 1))
    words = good[number].content.decode().split(" ")
    for _ in range(data.draw(some.integers(1, 4))):
        place = data.draw(some.integers(0, len(words) - 1))
        words[place] = data.draw(some.sampled_from([*JUNK, *words]))
    changed = Text(good[number].path, " ".join(words).encode())
    resolve(Bundle("r1", (*good[:number], changed, *good[number + 1 :])))


NAMES = "apiVersion kind metadata spec name poolName devices count windows limits x"
KEYS = some.sampled_from(NAMES.split())
LEAVES = some.none() | some.booleans() | some.integers() | some.text(max_size=8) | some.sampled_from(["GpuPool", "*"])
VALUES = some.recursive(
    LEAVES,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = some.sampled_from(["GpuPool", "DrainPolicy", "GpuClaim", "ChangeGuard", "PressurePolicy"])


@settings(max_examples=300)
@given(values=some.dictionaries(KEYS, VALUES, max_size=5), kind=KINDS)
def test_any_document_never_raises(values: dict[str, object], kind: str) -> None:
    head = {"apiVersion": "gpu.scheduling/v1", "kind": kind, "metadata": {"name": "x"}}
    for document in (values, {**head, "spec": values}):
        resolve(Bundle("r1", (Text("x.yaml", json.dumps(document).encode()),)))


def test_the_example_policies_hold(good: tuple[Text, ...]) -> None:
    found = resolve(Bundle("r1", good))
    assert found.problems == ()
    assert found.environments == ("base", "prod")


ONE_POOL = BASE.partition("---")[0]


def many_pools(count: int) -> str:
    return "---\n".join(ONE_POOL.replace("name: a100}", f"name: pool-{each}}}", 1) for each in range(count))


def test_one_environment_is_resolved_where_one_is_asked_for() -> None:
    texts = (
        Text("base/a.yaml", BASE.encode()),
        Text("overlays/broken/a.yaml", b"not: [a policy"),
        Text("overlays/prod/a.yaml", overlay("{committedNodes: 9}").encode()),
    )
    bundle = Bundle("r1", texts)
    found = resolve(bundle, "prod")
    assert found.problems == ()
    assert found.environments == ("base", "broken", "prod")
    assert [wish.environment for wish in found.wishes] == ["prod"]
    assert found.wishes[0] == resolve(Bundle("r1", (texts[0], texts[2]))).wish("prod")
    assert resolve(bundle).problems


def test_an_environment_that_is_not_there_leaves_base() -> None:
    found = resolve(Bundle("r1", (Text("a.yaml", BASE.encode()),)), "prod")
    assert found.wish("prod") is None
    assert [wish.environment for wish in found.wishes] == ["base"]


def test_environments_with_too_many_objects_in_all_are_refused_unless_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconciler.policy.resolve.MOST_MERGED", 30)
    texts = [Text("base/a.yaml", many_pools(10).encode())]
    two = Bundle("r1", (*texts, Text("overlays/e0/a.yaml", b"")))
    texts += [Text(f"overlays/e{each}/a.yaml", b"") for each in range(3)]
    bundle = Bundle("r1", tuple(texts))
    assert resolve(two).problems == ()
    (problem,) = resolve(bundle).problems
    assert problem.code == "RC504"
    assert "40 objects" in problem.sentence
    assert "--environment" in problem.remedy
    assert resolve(bundle).wishes == ()
    assert resolve(bundle, "e1").problems == ()


UNKNOWN = "\n".join(f"  instanceTipes{each}: 1" for each in range(1_500))
TOO_MANY = {
    "unknown keys": ONE_POOL + UNKNOWN,
    "missing fields of documents": "\n---\n".join(
        f"apiVersion: gpu.scheduling/v1\nkind: GpuPool\nmetadata: {{name: p-{each}}}\nspec: {{}}"
        for each in range(1_500)
    ),
    "tags": "a: [" + ", ".join("!x 1" for _ in range(1_500)) + "]",
    "items of a list": ONE_POOL.replace("taints: [", "taints: [" + "1, " * 1_500),
    "unknown keys of a head": ONE_POOL + "\n".join(f"tipe{each}: 1" for each in range(1_500)),
    "several files": "a: b\n---\n" * 700,
}


@pytest.mark.parametrize("what", TOO_MANY)
def test_no_more_problems_are_looked_for_than_anybody_reads(what: str) -> None:
    bundle = Bundle("r1", tuple(Text(f"{each}.yaml", TOO_MANY[what].encode()) for each in range(2)))
    problems = resolve(bundle).problems
    assert len(problems) == 1_001
    (told,) = [each for each in problems if each.code == "RC504"]
    assert told.sentence == "more than 1,000 problems: checking stopped"


def test_a_problem_is_short_whatever_is_written() -> None:
    text = ONE_POOL + "  ? " + "k" * 50_000 + "\n  : 1\n"
    (problem,) = resolve(Bundle("r1", (Text("a.yaml", text.encode()),))).problems
    assert problem.code == "RC107"
    assert len(problem.sentence) <= 500
    assert problem.excerpt == ""
