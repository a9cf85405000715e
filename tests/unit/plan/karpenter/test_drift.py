"""Which claims an edit of a NodePool drifts: the table of cases, and the table of edits."""

from typing import Any

import pytest
import yaml

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.plan.karpenter.drift import Drift, drift_of, which_fields
from reconciler.plan.karpenter.template_hash import template_hash
from tests import builders, folders

FOLDER = folders.CASES / "karpenter"
CASES: dict[str, Any] = yaml.safe_load((FOLDER / "drift.yaml").read_text())
EDITS: dict[str, Any] = yaml.safe_load((FOLDER / "edits.yaml").read_text())

TEMPLATE = {
    "metadata": {"labels": {"team": "research"}},
    "spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
        "requirements": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
    },
}
OLDER = {**TEMPLATE, "metadata": {"labels": {"team": "older"}}}
HASHES = {"as it stands": template_hash(TEMPLATE), "older": template_hash(OLDER)}


def merged(under: Any, over: Any) -> Any:
    if not isinstance(under, dict) or not isinstance(over, dict):
        return over
    both = {**under, **{key: merged(under.get(key), value) for key, value in over.items()}}
    return {key: value for key, value in both.items() if value is not None}


def pool(bears: dict[str, str]) -> Unstructured:
    written = {"hash": names.POOL_HASH, "version": names.POOL_HASH_VERSION}
    annotations = {written[key]: value for key, value in bears.items()}
    return Unstructured(
        "karpenter.sh/v1", "NodePool", UnstructuredMetadata("a100", annotations=annotations), spec_of(TEMPLATE)
    )


def spec_of(template: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": template}}


def claim(name: str, said: dict[str, Any]) -> NodeClaim:
    hashed = said.get("hash", "as it stands")
    annotations = Annotations(pool_hash=HASHES.get(hashed, hashed), pool_hash_version=said.get("version", "v3"))
    conditions = [Condition("Launched", "True" if said.get("launched", True) else "Unknown")]
    if reason := said.get("drifted"):
        conditions.append(Condition("Drifted", "True", reason))
    labels = {names.KARPENTER_POOL: said.get("pool", "a100"), "zone": said.get("zone", "a")}
    gone = "2026-11-02T08:00:00Z" if said.get("leaving") else ""
    return builders.claim(
        name, labels=labels, annotations=annotations, deletion_timestamp=gone, conditions=tuple(conditions)
    )


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    node_pool = pool(case.get("bears", {"hash": HASHES["as it stands"], "version": "v3"}))
    # Backwards, so that sorting shows.
    claims = [claim(*each) for each in reversed(case["claims"].items())]
    already, fresh, undrifted = (tuple(case.get(what, ())) for what in ("already", "fresh", "undrifted"))
    found = drift_of(node_pool, merged(node_pool.spec, case["edit"]), claims)
    assert found == Drift(already, fresh, undrifted, case.get("exact", True))


def test_emptied_labels_are_told_from_labels_taken_away() -> None:
    """Both drift, and one edit to the other drifts again: Karpenter hashes what is empty, not what is absent."""
    node_pool = pool({"hash": HASHES["as it stands"], "version": "v3"})
    emptied = {**TEMPLATE, "metadata": {"labels": {}}}
    assert drift_of(node_pool, spec_of(emptied)["spec"], [claim("x", {})]).fresh == ("x",)
    assert template_hash(emptied) != template_hash({**TEMPLATE, "metadata": {}})


@pytest.mark.parametrize("name", EDITS)
def test_edit(name: str) -> None:
    edit = EDITS[name]
    assert which_fields(edit["before"], edit["after"]) == tuple(edit["fields"])
    assert which_fields(edit["after"], edit["before"]) == tuple(edit["fields"])
