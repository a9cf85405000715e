"""What the version before typed facts wrote is read, and a drain goes on: the program was swapped in the midst of it.

The files are from one drain of an imagined pool, with a batch, evicted pods, nodes that are empty, and a guard that
holds the next nodes: a dump, a history of twelve plans, the ConfigMap of the memory, a saved plan, and what that
version decided (decisions.json).
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.files import dump, saved_plan
from reconciler.plan.files.format_1 import Inputs1, decoded_1, skimmed, with_typed_hints
from reconciler.plan.guards.reasons import ObjectUnversioned
from reconciler.plan.nodes.ownership import DriverUpgrade, NodeLeaving
from reconciler.plan.planner import plan
from reconciler.plan.reason_catalog import REASONS
from reconciler.report.sentences import sentence
from reconciler.sources import history
from reconciler.sources.history import NotKept, kept
from tests import folders
from tests.unit.kube.configmap_server import ConfigMaps
from tests.unit.plan.manifests.stage import inputs_of

FILES = folders.TESTS / "recorded_files" / "before_typed_reasons"
DECIDED = json.loads((FILES / "decisions.json").read_text())


def in_json(memory: Memory) -> Any:
    """Without what the program of that time did not have, which must be empty."""
    written = json.loads(msgspec.json.encode(memory, order="sorted"))
    assert written.pop("sections") == {}
    return written


def decided(inputs: Inputs) -> dict[str, Any]:
    """As decisions.json has it."""
    made = plan(inputs, Fleet(inputs.observed))
    rows = [
        [
            each.planner,
            each.subject.title,
            each.pool,
            each.reason.code,
            type(each.act).__name__,
            getattr(each.act, "until", None),
            each.would,
        ]
        for each in made.decisions
    ]
    told = {"now": inputs.now, "decisions": sorted(rows, key=str), "memory": in_json(made.memory)}
    return told | {"wake_at": made.wake_at}


def test_a_plan_of_a_dump_is_what_it_was() -> None:
    assert decided(dump.read((FILES / "dump.json").read_bytes())) == DECIDED["dump"]


def test_a_dump_loses_no_hint_that_holds_no_reason_and_those_it_keeps_can_be_told() -> None:
    content = (FILES / "dump.json").read_bytes()
    written = json.loads(content)["inputs"]["hints"]
    hints = dump.read(content).hints
    assert hints.destinations == written["destinations"]
    assert hints.tried.keys() <= written["tried"].keys()
    for node, each in hints.tried.items():
        assert each.reason.code == written["tried"][node]["reason"]["code"]
        assert node in sentence(each.reason)


def test_what_was_read_of_a_dump_is_written_in_the_new_format_and_read_again() -> None:
    inputs = dump.read((FILES / "dump.json").read_bytes())
    content = dump.write(inputs)
    assert json.loads(content)["format"] == "reconciler-dump/2"
    assert dump.read(content) == inputs


def test_each_plan_of_a_history_is_what_it_was() -> None:
    found = list(kept(FILES / "history"))
    assert [decided(each.inputs) for each in found] == DECIDED["history"]
    codes = {row[3] for each in DECIDED["history"] for row in each["decisions"]}
    assert codes >= {"Drained", "PodEvicted", "PodLeaves", "EmptiedNodeWaits", "DrainedNodeDeleted", "HourIsFull"}


def test_the_drain_goes_on_from_the_memory_that_was_stored() -> None:
    server = ConfigMaps()
    server.objects = json.loads((FILES / "memory.json").read_text())
    store = ConfigMapMemory(server)
    stored = store.load()
    assert in_json(stored.memory) == DECIDED["memory"]
    before = next(each.inputs for each in kept(FILES / "history") if in_json(each.inputs.memory) == DECIDED["memory"])
    after = decided(msgspec.structs.replace(before, memory=stored.memory))
    assert after in DECIDED["history"]
    assert stored.memory.drained.batch is not None
    server.version = max(int(each["metadata"]["resourceVersion"]) for each in server.objects.values())
    saved_again = store.save(stored.memory, stored)
    assert store.load() == saved_again


def test_a_saved_plan_is_refused_with_a_remedy() -> None:
    with pytest.raises(saved_plan.BadPlan, match="format 1; this version of reconciler reads 2") as raised:
        saved_plan.read((FILES / "saved-plan.json").read_bytes())
    assert raised.value.remedy == "create a new plan and apply it"


def test_a_record_of_a_later_format_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (file,) = (FILES / "history").iterdir()
    later = [msgspec.structs.replace(each, format=history.FORMAT + 1) for each in history.records(file)]
    (tmp_path / file.name).write_bytes(b"".join(map(history.framed, later)))
    with pytest.raises(NotKept, match="use the version that wrote it"):
        list(kept(tmp_path))


def hinted(reason: Any) -> bytes:
    """Inputs as they were written, with one hint."""
    plain = msgspec.to_builtins(inputs_of({"nodes": 1}))
    tried = {"uid": "u", "since": 1, "at": 2, "reason": reason}
    return msgspec.json.encode(plain | {"hints": {"destinations": {}, "tried": {"n1": tried}}})


def read(content: bytes) -> Inputs:
    return with_typed_hints(decoded_1(content, Inputs), skimmed(content, Inputs1))


FITTING: dict[str, tuple[dict[str, Any], Any]] = {
    "a text": ({"code": "NodeLeaving", "facts": [["node", "n1"]], "origin": None}, NodeLeaving(node="n1")),
    "several": (
        {"code": "DriverUpgrade", "facts": [["node", "n1"], ["upgrade", "draining"]], "origin": None},
        DriverUpgrade(node="n1", upgrade="draining"),
    ),
    "an object by its title": (
        {"code": "ObjectUnversioned", "facts": [["object", "Pod/team/web-1"]], "origin": None},
        ObjectUnversioned(object=Ref("Pod", "team", "web-1")),
    ),
    "an object of the cluster by its title": (
        {"code": "ObjectUnversioned", "facts": [["object", "Node/n1"]], "origin": None},
        ObjectUnversioned(object=Ref("Node", "", "n1")),
    ),
}


@pytest.mark.parametrize(("reason", "facts"), FITTING.values(), ids=FITTING)
def test_what_fits_the_facts_of_its_code_is_converted(reason: Any, facts: Any) -> None:
    assert read(hinted(reason)).hints.tried["n1"].reason.facts == facts


@pytest.mark.parametrize(
    "reason",
    [
        {"code": "OfNoVersion", "facts": [["node", "n1"]], "origin": None},
        {"code": "NodeLeaving", "facts": [], "origin": None},
        {"code": "NodeLeaving", "facts": [["node", 7]], "origin": None},
        {"code": "EditedInPlace", "facts": [["object", "NodePool/a"], ["fields", "spec.a, spec.b"]], "origin": None},
        {"code": "HourIsFull", "facts": [["asked", "x"], ["guard", "ChangeGuard/g"], ["sums", "1 of 2"]]},
        {"facts": [["node", "n1"]], "origin": None},
        {"code": 7, "facts": [["node", "n1"]], "origin": None},
        {"code": "NodeLeaving", "facts": [["node", ["n1"]]], "origin": None},
    ],
)
def test_what_does_not_fit_is_dropped_and_all_else_is_kept(reason: Any) -> None:
    inputs = read(hinted(reason))
    assert inputs.hints.tried == {}
    assert msgspec.structs.replace(inputs, hints=inputs_of({"nodes": 1}).hints) == inputs_of({"nodes": 1})


@pytest.mark.parametrize("value", ["", "x", "Pod/a/b", "/", 7])
def test_no_hint_that_was_written_keeps_inputs_from_being_read(value: str | int) -> None:
    names = ("node", "object", "pod", "pool", "why", "until", "held", "guard", "template", "code", "facts")
    for code in sorted(REASONS):
        written = {"code": code, "facts": [[name, value] for name in names], "origin": None}
        assert read(hinted(written)).hints.tried.keys() <= {"n1"}
