"""The canonical line of a decision: a line for each verb, groups, and that no two decisions have the same line."""

from collections.abc import Iterable, Iterator
from itertools import combinations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from msgspec.structs import replace

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import (
    Action,
    Annotate,
    Apply,
    Bind,
    Decision,
    Delete,
    Evict,
    Hold,
    Label,
    Leaver,
    LentDevice,
    Preconditions,
    Ref,
    Resize,
    Status,
    Taint,
    Ungate,
)
from reconciler.plan.capacity.requests import CapacityRequest
from reconciler.report.decision_line import decision_line, grouped
from tests.unit.plan.some_reasons import some_reason

NOW = instant("2026-11-02T08:00:00.750Z")
NODE, POD = Ref("Node", "", "a", "uid-a"), Ref("Pod", "team", "web-0", "uid-web-0")
NODE_POOL, GPU_POOL = Ref("NodePool", "", "a100"), Ref("GpuPool", "", "a100")
SOFT, HARD = "PreferNoSchedule", "NoSchedule"
ABSENT, EMPTY = Preconditions(absent=True), Preconditions(empty=True, resource_version="7")
OTHER = Leaver(Ref("Pod", "team", "web-1"), 60, "c")
REQUEST = CapacityRequest(
    "key", "a100", "a100", 8, "demand", "p4d", capacity_type="spot", zone="eu-1a", pods=("uid-1", "uid-2")
)


def at(seconds: int) -> Instant:
    return Instant(NOW + 1_000 * seconds)


def unix(seconds: int) -> str:
    """As taints have it: a time in whole seconds."""
    return str(at(seconds) // 1_000)


def smart_pod(request: CapacityRequest | str) -> Apply:
    text = request if isinstance(request, str) else msgspec.json.encode(request).decode()
    manifest = {"metadata": {"annotations": {names.ORIGINAL_REQUEST: text}}}
    return Apply(manifest=msgspec.json.encode(manifest).decode(), presumes=ABSENT)


def decided(subject: Ref, act: Action | Hold, code: str = "Any", **more: Any) -> Decision:
    return Decision("scaling", subject, act, some_reason(code), **more)


LINES: dict[str, tuple[Ref, Action | Hold]] = {
    "hold Node/a": (NODE, Hold()),
    "hold Node/a until +600s": (NODE, Hold(at(600))),
    "hold Pod/team/web-0 until -60s": (POD, Hold(at(-60))),
    "hold Pod/team/web-0 until +0s": (POD, Hold(NOW)),
    "apply NodePool/a100": (NODE_POOL, Apply(manifest='{"kind": "NodePool"}')),
    "apply NodePool/a100 if absent": (NODE_POOL, Apply(manifest="{}", presumes=ABSENT)),
    "apply NodePool/a100 by force": (NODE_POOL, Apply(manifest="{}", force=True)),
    "apply Pod/team/web-0 offering p4d/spot/eu-1a gpus 8 for uid-1,uid-2 if absent": (POD, smart_pod(REQUEST)),
    "apply Pod/team/web-0 offering p4d gpus 8 for minSize/0 if absent": (
        POD,
        smart_pod(replace(REQUEST, key="minSize/0", pods=(), capacity_type="", zone="")),
    ),
    "apply Pod/team/web-0 if absent": (POD, smart_pod("no JSON")),
    "delete Pod/team/web-0": (POD, Delete()),
    "delete Node/a if empty": (NODE, Delete(presumes=EMPTY)),
    "taint Node/a gpu.scheduling/deletion-time=+600s:PreferNoSchedule": (
        NODE,
        Taint(key=names.DELETION_TIME, value=unix(600), effect=SOFT),
    ),
    "taint Node/a gpu.scheduling/deletion-time=+30s:NoSchedule instead of PreferNoSchedule": (
        NODE,
        Taint(key=names.DELETION_TIME, value=unix(30), effect=HARD, instead_of=SOFT),
    ),
    "taint Node/a gpu.scheduling/draining=-60s:NoSchedule": (
        NODE,
        Taint(key=names.DRAINING, value=unix(-60), effect=HARD),
    ),
    "taint Node/a gpu.scheduling/draining=soon:NoSchedule": (
        NODE,
        Taint(key=names.DRAINING, value="soon", effect=HARD),
    ),
    "taint Node/a gpu.scheduling/draining:NoSchedule": (NODE, Taint(key=names.DRAINING, value="", effect=HARD)),
    f"taint Node/a example.com/at={unix(30)}:NoSchedule": (
        NODE,
        Taint(key="example.com/at", value=unix(30), effect=HARD),
    ),
    "untaint Node/a gpu.scheduling/arriving:NoSchedule label gpu.scheduling/arrived=true": (
        NODE,
        Taint(key=names.ARRIVING, value=None, effect=HARD, labels=((names.ARRIVED, "true"),)),
    ),
    "evict Pod/team/web-0 to b grace 30s": (POD, Evict(grace_seconds=30, destination="b")),
    "evict Pod/team/web-0 grace 0s": (POD, Evict(grace_seconds=0)),
    "evict Pod/team/web-0 to b grace 30s gang team/llama with Pod/team/web-1 to c grace 60s": (
        POD,
        Evict(grace_seconds=30, destination="b", gang="team/llama", others=(OTHER,)),
    ),
    "resize Pod/team/web-0 cpu=500m nvidia.com/gpu=8": (
        POD,
        Resize(resources=(("cpu", 500), ("nvidia.com/gpu", 8_000))),
    ),
    "bind Pod/team/web-0 to a leases a-0,a-1 example.com/gpus=0": (
        POD,
        Bind(node="a", leases=(LentDevice("a-0", 0), LentDevice("a-1", 1)), annotations=(("example.com/gpus", "0"),)),
    ),
    "annotate Pod/team/web-0 gpu.scheduling/phase=Pending gpu.scheduling/since-": (
        POD,
        Annotate(annotations=((names.PHASE, "Pending"), (names.SINCE, None))),
    ),
    "annotate Pod/team/web-0 gpu.scheduling/evict-at=+120s": (
        POD,
        Annotate(annotations=((names.EVICT_AT, timestamp(at(120))),)),
    ),
    'annotate Pod/team/web-0 gpu.scheduling/evict-at="+120s"': (
        POD,
        Annotate(annotations=((names.EVICT_AT, "+120s"),)),
    ),
    'annotate Pod/team/web-0 a="two words\\n" b=': (POD, Annotate(annotations=(("a", "two words\n"), ("b", "")))),
    "label Node/a gpu.scheduling/provisioner=a100 gpu.scheduling/pool-": (
        NODE,
        Label(labels=((names.PROVISIONER, "a100"), (names.POOL, None))),
    ),
    "ungate Pod/team/web-0 gpu.scheduling/capacity": (POD, Ungate(gate=names.CAPACITY_GATE)),
    "ungate Pod/team/web-0 gpu.scheduling/capacity to a": (POD, Ungate(gate=names.CAPACITY_GATE, node="a")),
    "status GpuPool/a100": (GPU_POOL, Status(body='{"size": 3}')),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_for_each_verb(line: str) -> None:
    subject, act = LINES[line]
    assert decision_line(decided(subject, act), NOW) == f"{line}: Any"
    assert decision_line(decided(subject, act, would=True), NOW) == f"would {line}: Any"


def test_every_action_has_a_line() -> None:
    assert {type(act) for _, act in LINES.values()} == {Hold, *Action.__args__}


def test_what_must_be_written_first_is_named() -> None:
    decision = decided(NODE, Label(labels=(("a", "b"),)), after=(NODE_POOL, POD))
    assert decision_line(decision, NOW) == "label Node/a a=b after NodePool/a100,Pod/team/web-0: Any"


def test_a_line_does_not_depend_on_the_clock() -> None:
    for later in (1, 86_400, 10**7):
        taint = Taint(key=names.DELETION_TIME, value=unix(later + 30), effect=HARD)
        assert decision_line(decided(NODE, taint), at(later)) == (
            "taint Node/a gpu.scheduling/deletion-time=+30s:NoSchedule: Any"
        )


def lines_of(titles: list[str], act: Action | Hold | None = None, codes: str = "") -> list[str]:
    """The grouped lines of `a-1`, `pod web-1` or `pool a100`; `codes` has a letter for each."""
    decisions = []
    for number, title in enumerate(titles):
        kind, _, name = title.rpartition(" ")
        subject = {"": Ref("Node", "", name), "pod": Ref("Pod", "team", name), "pool": Ref("NodePool", "", name)}[kind]
        decisions.append(decided(subject, act or Hold(), f"Any{codes[number : number + 1]}"))
    return [each.line for each in grouped(decisions, NOW)]


GROUPS: dict[str, tuple[list[str], list[str]]] = {
    "one is itself": (["a100-080"], ["hold Node/a100-080: Any"]),
    "a range": (["a100-080", "a100-081", "a100-082"], ["hold Node/a100-[080-082]: Any"]),
    "gaps": (["a-1", "a-3", "a-4", "a-9"], ["hold Node/a-[1,3-4,9]: Any"]),
    "another width is counted on": (["a-9", "a-10", "a-11"], ["hold Node/a-[9-11]: Any"]),
    "zeros are kept": (["a-099", "a-100"], ["hold Node/a-[099-100]: Any"]),
    "zeros are no other number": (["a-1", "a-02", "a-03"], ["hold Node/a-[1,02-03]: Any"]),
    "the order is kept": (["a-2", "a-1", "a-2", "a-2"], ["hold Node/a-[2-1,2,2]: Any"]),
    "a range counts down": (["a-101", "a-100", "a-099", "a-100"], ["hold Node/a-[101-099,100]: Any"]),
    "names without numbers": (["a", "b", "b"], ["hold Node/a: Any", "hold Node/b: Any", "hold Node/b: Any"]),
    "a name that is a number": (["7", "8"], ["hold Node/[7-8]: Any"]),
    "only the last number counts": (["a-1-0", "a-2-0"], ["hold Node/a-1-0: Any", "hold Node/a-2-0: Any"]),
    "pods": (["pod web-0", "pod web-1", "pod job-2"], ["hold Pod/team/web-[0-1]: Any", "hold Pod/team/job-2: Any"]),
    "nodes and pods": (["web-0", "pod web-1"], ["hold Node/web-0: Any", "hold Pod/team/web-1: Any"]),
    "pools have names and no numbers": (["pool a1", "pool a2"], ["hold NodePool/a1: Any", "hold NodePool/a2: Any"]),
}


@pytest.mark.parametrize("name", GROUPS)
def test_lines_that_differ_in_a_number_are_one(name: str) -> None:
    titles, lines = GROUPS[name]
    assert lines_of(titles) == lines


def test_other_codes_other_data_and_others_between_them_keep_lines_apart() -> None:
    assert lines_of(["a-1", "a-2", "a-3"], codes="xxy") == ["hold Node/a-[1-2]: Anyx", "hold Node/a-3: Anyy"]
    assert lines_of(["a-1", "b-1", "a-2"]) == ["hold Node/a-1: Any", "hold Node/b-1: Any", "hold Node/a-2: Any"]
    decisions = [decided(Ref("Pod", "team", f"web-{each}"), Evict(grace_seconds=30 + each)) for each in range(2)]
    assert len(list(grouped(decisions, NOW))) == 2


# --- No two decisions have the same line: all combinations of few values of each field, and drawn texts.

LEASES = tuple(tuple(LentDevice(name, 0) for name in each) for each in ((), ("a",), ("a", "b"), ("a,b",)))

TEXTS = (
    *("", "a", "a-", "+1s", "1s", "a=b", "a,b", 'a"b', "a b:c", "to"),
    *(unix(0), unix(1), f"0{unix(0)}", timestamp(NOW), timestamp(at(1)), "2026-11-02T09:00:00.750+01:00"),
)
KEYS = (names.DELETION_TIME, names.EVICT_AT, "example.com/key")
SETS = ((), *(((key, text),) for key in KEYS[1:] for text in TEXTS), (("a", "b"), ("to", "a")))
EDITS = (*SETS, ((names.EVICT_AT, None),), (("a", None), ("b", "")))
PRESUMED = (Preconditions(), ABSENT, Preconditions(empty=True))
REFS = (NODE, POD, OTHER.ref, NODE_POOL)
LEAVERS = (
    (),
    (OTHER,),
    (OTHER, OTHER),
    (Leaver(POD, 60, "c"),),
    (Leaver(OTHER.ref, 30, "c"),),
    (Leaver(OTHER.ref, 60),),
)
REQUESTS = [
    CapacityRequest("minSize/0", "a100", "a100", count, "demand", kind, capacity_type=capacity, zone=zone, pods=pods)
    for count, kind, capacity, zone, pods in product(
        (1, 2), ("p4d", "p5"), ("", "spot"), ("", "spot"), ((), ("a",), ("a", "b"), ("a,b",))
    )
]
FIELDS: dict[Any, dict[str, Iterable[Any]]] = {
    Hold: {"until": (None, NOW, at(1), at(-1))},
    Apply: {"manifest": ("{}", *(smart_pod(each).manifest for each in REQUESTS)), "force": (True, False)},
    Delete: {},
    Taint: {
        "key": KEYS,
        "value": (None, *TEXTS),
        "effect": (SOFT, HARD),
        "instead_of": ("", SOFT, HARD),
        "labels": ((), (("a", "b"),)),
    },
    Evict: {"grace_seconds": (0, 30), "others": LEAVERS, "destination": ("", "a", "c"), "gang": ("", "team/llama")},
    Resize: {"resources": [*combinations([("cpu", 1), ("cpu", 500), ("cpu", 1_000), ("a", 500_000)], 2)]},
    Bind: {"node": ("a", "b"), "leases": LEASES, "annotations": SETS},
    Annotate: {"annotations": EDITS},
    Label: {"labels": EDITS},
    Ungate: {"gate": KEYS, "node": ("", "a", "b")},
    Status: {"body": ("{}",)},
}


def every_decision() -> Iterator[Decision]:
    for kind, fields in FIELDS.items():
        for values in product(*fields.values()):
            act = kind(**dict(zip(fields, values, strict=True)))
            presumed = PRESUMED if isinstance(act, Taint | Apply | Delete) else PRESUMED[:1]
            yield from (
                decided(NODE, act if isinstance(act, Hold) else replace(act, presumes=each)) for each in presumed
            )
    for subject, code, would, after in product(REFS, ("Any", "Other"), (True, False), ((), (NODE,), (NODE, POD))):
        yield decided(subject, Label(labels=(("a", "c"),)), code, would=would, after=after)


def test_no_two_decisions_have_the_same_line() -> None:
    lines: dict[str, Decision] = {}
    for decision in every_decision():
        assert lines.setdefault(decision_line(decision, NOW), decision) is decision
    assert len(lines) > 2_000


def test_the_combinations_have_every_field_that_the_line_shows() -> None:
    hidden = {"presumes"}
    assert {kind: {*kind.__struct_fields__} - hidden for kind in FIELDS} == {kind: {*FIELDS[kind]} for kind in FIELDS}
    assert FIELDS.keys() == {Hold, *Action.__args__}


PAIRS = some.lists(
    some.tuples(some.sampled_from([names.SINCE, "a"]), some.none() | some.text('ab0+-=:,." \n', max_size=3)), max_size=2
)


@settings(max_examples=300)
@given(PAIRS, PAIRS)
def test_other_annotations_have_another_line(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    lines = {decision_line(decided(POD, Annotate(annotations=tuple(each))), NOW) for each in (first, second)}
    assert len(lines) == len({tuple(first), tuple(second)})


SUBJECTS = some.builds(
    Ref,
    some.sampled_from(["Node", "Pod", "NodePool"]),
    some.sampled_from(["", "team"]),
    some.sampled_from(["a", "a-1", "a-2", "a-01", "a-9", "a-10", "11"]),
)
DECISIONS = some.builds(decided, SUBJECTS, some.sampled_from([Hold(), Delete()]), some.sampled_from(["Any", "Other"]))


@given(some.lists(DECISIONS, max_size=9))
def test_each_decision_can_be_read_from_the_groups_in_order(decisions: list[Decision]) -> None:
    groups = list(grouped(decisions, NOW))
    assert [decision for group in groups for decision in group.decisions] == decisions
    assert [line for group in groups for line in expanded(group.line)] == [
        decision_line(each, NOW) for each in decisions
    ]


def expanded(line: str) -> list[str]:
    """a-[09-11,8-7] is a-09, a-10, a-11, a-8 and a-7."""
    before, bracket, rest = line.partition("[")
    ranges, _, after = rest.partition("]")
    if not bracket:
        return [line]
    found: list[str] = []
    for first, _, last in (each.partition("-") for each in ranges.split(",")):
        is_down = bool(last) and int(last) < int(first)
        numbers, end = ([last], first) if is_down else ([first], last or first)
        while numbers[-1] != end:
            numbers.append(str(int(numbers[-1]) + 1).zfill(len(numbers[-1])))
        found += reversed(numbers) if is_down else numbers
    return [f"{before}{number}{after}" for number in found]
