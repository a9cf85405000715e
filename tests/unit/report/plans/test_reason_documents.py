"""Facts of reasons in published formats: typed, of the forms that the schema names, and listed in the reference."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from reconciler.model.cluster.refusal import DecodeRefusal
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Reason, Ref
from reconciler.model.problem import Origin
from reconciler.plan.guards.frozen import Freeze, FreezeScope, Frozen, PoolSuspended
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.reasons import GuardSum, HourIsFull, OverPlanLimit
from reconciler.plan.guards.set_aside import BehindSetAside
from reconciler.plan.holds.standstill import TaintStays
from reconciler.plan.manifests.reasons import EditDriftsSome, NodeLabel, NodeLacksLabels, NotOurs
from reconciler.plan.reason_catalog import REASONS, decoded
from reconciler.report.generated import PLAN, facts_of, published_files, reasons_page
from reconciler.report.plans.plan_json import facts_document
from reconciler.report.sentences import sentence
from tests.unit.plan.some_reasons import reason_of

SCHEMA = json.loads(published_files()[PLAN])
FACT = jsonschema.Draft7Validator({"$ref": "#/definitions/Fact", "definitions": SCHEMA["definitions"]})
TYPED = sorted(REASONS)
NODE, POOL = Ref("Node", "", "n1", "u1"), Ref("NodePool", "", "a100")
FREEZE = Freeze(FreezeScope("pool", "a100"), "2026-11-02T09:00:00+01:00", "audit", Instant(1_793_606_400_000))
GUARD = Ref("ChangeGuard", "", "fleet")
SUMS = (GuardSum("removed_nodes", 4, 2), GuardSum("removed_percent", 40, 20, "a100"))
HELD = Reason(PoolSuspended(object=NODE, pool="a100"), Origin("a.yaml", 3))


@pytest.mark.parametrize("code", TYPED)
def test_each_code_is_written_in_the_published_forms_and_read_back(code: str) -> None:
    reason = reason_of(code)
    document = facts_document(reason.facts)
    FACT.validate(document)
    for value in document.values():
        FACT.validate(value)
    assert json.loads(json.dumps(document)) == document
    assert decoded(msgspec.json.encode(reason), Reason) == reason
    assert "{" not in sentence(reason)


@pytest.mark.parametrize("code", sorted(REASONS))
def test_the_reference_lists_the_facts_of_each_code(code: str) -> None:
    row = next(line for line in reasons_page().splitlines() if line.startswith(f"| `{code}` |"))
    reason = reason_of(code)
    for name in reason.facts.fields():
        assert f"{name}: " in row or f"{name}?: " in row
    assert "<class" not in facts_of(REASONS[code])


DOCUMENTS: dict[str, tuple[CodeFacts, dict[str, Any]]] = {
    "objects and numbers": (
        EditDriftsSome(object=POOL, paths=("spec.a", "spec.b"), drifted=2, nodes=4, gpus=16),
        {
            "object": {"kind": "NodePool", "namespace": "", "name": "a100", "uid": ""},
            "paths": ["spec.a", "spec.b"],
            "drifted": 2,
            "nodes": 4,
            "gpus": 16,
        },
    ),
    "a time, and the text that it was written as": (
        Frozen(object=NODE, scope=FreezeScope("everything"), until=Instant(0), written="1970-01-01T01:00:00+01:00"),
        {
            "object": {"kind": "Node", "namespace": "", "name": "n1", "uid": "u1"},
            "scope": {"kind": "everything", "name": ""},
            "until": "1970-01-01T00:00:00Z",
            "written": "1970-01-01T01:00:00+01:00",
            "note": "",
        },
    ),
    "a reason within, and a sum": (
        OverPlanLimit(guard=GUARD, held=HELD, sums=SUMS[:1]),
        {
            "guard": {"kind": "ChangeGuard", "namespace": "", "name": "fleet", "uid": ""},
            "held": {
                "reason": "PoolSuspended",
                "facts": {"object": {"kind": "Node", "namespace": "", "name": "n1", "uid": "u1"}, "pool": "a100"},
                "sentence": "GpuPool/a100 is suspended: Node/n1 is not changed until spec.suspend is removed.",
            },
            "sums": [{"measure": "removed_nodes", "counted": 4, "allowed": 2, "pool": ""}],
        },
    ),
    "a time in what a fact holds, and what is not told": (
        TaintStays(
            node="n1",
            taints=("gpu.scheduling/draining",),
            keeps_pods_away=True,
            observation=Observation("a100", by_mode=True, freeze=FREEZE),
        ),
        {
            "node": "n1",
            "taints": ["gpu.scheduling/draining"],
            "keeps_pods_away": True,
            "observation": {
                "pool": "a100",
                "by_mode": True,
                "is_unadopted": False,
                "environment": "",
                "is_suspended": False,
                "freeze": {
                    "scope": {"kind": "pool", "name": "a100"},
                    "written": "2026-11-02T09:00:00+01:00",
                    "reason": "audit",
                    "until": "2026-11-02T08:00:00Z",
                },
            },
            "pool": "",
            "environment": "",
        },
    ),
}


@pytest.mark.parametrize(("facts", "document"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_facts_are_written_by_their_types(facts: CodeFacts, document: dict[str, Any]) -> None:
    assert facts_document(facts) == document
    FACT.validate(document)


SENTENCES: dict[str, tuple[CodeFacts, str]] = {
    "of several sums": (
        HourIsFull(guard=GUARD, held=HELD, sums=SUMS),
        (
            "this plan exceeds the hourly limits of ChangeGuard/fleet (removed nodes: 4 of 2 allowed, removed "
            "percent of a100: 40 of 20 allowed). Until the limits have room again or the change is "
            "approved, this change is not carried out: GpuPool/a100 is suspended: Node/n1 is not changed until "
            "spec.suspend is removed."
        ),
    ),
    "as a person wrote the time": (
        FREEZE.facts(NODE),
        "pool a100 is frozen until 2026-11-02T09:00:00+01:00 (audit): Node/n1 is not changed.",
    ),
    "of an object without a name": (
        BehindSetAside(object=NODE, other=Ref("Pod", "team", ""), refusal=DecodeRefusal("Depth", "spec")),
        (
            "Pod/team/(without a name), which Node/n1 depends on, can't be decoded (spec: Depth): Node/n1 is "
            "not changed until Pod/team/(without a name) is corrected."
        ),
    ),
    "of a NodePool": (
        NotOurs(object=POOL, pool="a100"),
        (
            "NodePool/a100 was created by someone else, and its nodes are only observed. To adopt it without drift of "
            "its nodes, set adopt: true in GpuPool/a100."
        ),
    ),
    "of another object": (
        NotOurs(object=Ref("PriorityClass", "", "p"), pool="a100"),
        (
            "PriorityClass/p was created by someone else. To adopt it without drift of its nodes, set adopt: true in "
            "GpuPool/a100."
        ),
    ),
    "of labels": (
        NodeLacksLabels(node="n1", labels=(NodeLabel("a", "1"), NodeLabel("b", "2")), object=POOL),
        (
            "n1 lacks the labels a=1, b=2: they are added to the node, because in the template of the adopted "
            "NodePool/a100 they would make every node drift."
        ),
    ),
    "of a pool that nobody declares": (
        TaintStays(
            node="n1",
            taints=("gpu.scheduling/deletion-time", "gpu.scheduling/draining"),
            keeps_pods_away=False,
            pool="a100",
            environment="prod",
        ),
        (
            "n1 has the taints gpu.scheduling/deletion-time and gpu.scheduling/draining, and no policy of "
            "environment prod declares pool a100: n1 is neither drained nor deleted, and the taints stay. Once a "
            "GpuPool a100 is declared, planners continue with n1; kubectl taint nodes n1 "
            "gpu.scheduling/deletion-time- gpu.scheduling/draining- removes the taints."
        ),
    ),
}


@pytest.mark.parametrize(("facts", "words"), SENTENCES.values(), ids=SENTENCES)
def test_a_sentence_is_made_of_the_facts(facts: CodeFacts, words: str) -> None:
    assert sentence(Reason(facts)) == words


def test_a_fact_of_no_published_form_is_refused() -> None:
    assert not FACT.is_valid(1.5)
    assert not FACT.is_valid({"reason": 1, "facts": {"a": None}, "sentence": ""})
    assert not FACT.is_valid([None])
