"""What applying a manifest would change: the table of cases, and what holds for every object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.manifests.compare import Comparison, compare
from reconciler.plan.manifests.planner import is_settled
from tests.unit.plan.manifests.stage import Json, fields_of, patched, table, whole

CASES = table("compare.yaml")
OURS = {names.MANAGED: "true"}


def live_of(case: Json) -> Unstructured:
    managed = dict(case.get("others", {}))
    if "ours" in case:
        managed[names.FIELD_MANAGER] = case["ours"]
    labels = ({} if case.get("theirs") else OURS) | case.get("labels", {})
    return whole(body(case, "live", {"name": "a100", "labels": labels}), managed)


def body(case: Json, which: str, metadata: Json) -> Json:
    return {"apiVersion": "v1", "kind": case.get("kind", "NodePool"), "metadata": metadata, **case[which]}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    live = live_of(case)
    labels = {} if case.get("theirs") else OURS
    metadata = {"name": "a100", "labels": labels | case.get("wish_labels", {})}
    desired = body(case, "wish", metadata | {"annotations": case.get("wish_annotations", {})})
    found = compare(live, desired)
    assert [[each.path, each.before, each.after] for each in found.changes] == case.get("changes", [])
    assert [[each.path, each.manager, each.shared] for each in found.foreign] == case.get("foreign", [])
    if found.changes:
        assert not is_settled(live, desired)


words = some.sampled_from(["weight", "limits", "template", "expireAfter", "taints", "cpu", "x"])
texts = some.sampled_from(["8", "8000m", "1h", "60m", "Never", ""])
leaves = some.one_of(texts, some.integers(0, 9), some.booleans())


def _deeper(inner: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    return some.one_of(some.lists(inner, max_size=3), some.dictionaries(words, inner, max_size=3))


values = some.recursive(leaves, _deeper, max_leaves=8)
specs = some.dictionaries(words, values, max_size=4)


def manifest(spec: Json) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "a100", "labels": {names.MANAGED: "true"}},
        "spec": spec,
    }


@some.composite
def standing(draw: some.DrawFn) -> tuple[Unstructured, Json]:
    """An object that we applied and another then changed or added to; and the next wish, often one of these."""
    applied, added = draw(specs), draw(specs)
    managed = {names.FIELD_MANAGER: fields_of(manifest(applied)), "kubectl-edit": fields_of({"spec": added})}
    live = whole(manifest(patched(applied, added)), draw(some.sampled_from([managed, {}])))
    return live, draw(some.one_of(some.sampled_from([applied, live.spec]), specs))


@given(standing())
def test_what_was_applied_once_is_not_applied_again(both: tuple[Unstructured, Json]) -> None:
    live, spec = both
    first = compare(live, manifest(spec))
    again = compare(applied_to(live, spec, first), manifest(spec))
    assert again.changes == ()
    assert again.merged == first.merged


def applied_to(live: Unstructured, spec: Json, comparison: Comparison) -> Unstructured:
    """The object after the apply, with what we then own."""
    others = {each.manager: each.fields for each in live.metadata.managed_fields if each.manager != names.FIELD_MANAGER}
    ours = {names.FIELD_MANAGER: fields_of(manifest(spec))} if live.metadata.managed_fields else {}
    return whole(manifest(comparison.spec), {**ours, **others})


@given(standing())
def test_an_object_differs_in_nothing_from_itself(both: tuple[Unstructured, Json]) -> None:
    live, _ = both
    assert compare(live, manifest(live.spec)).changes == ()


@given(standing())
def test_what_is_surely_settled_has_no_change(both: tuple[Unstructured, Json]) -> None:
    live, spec = both
    desired = manifest(spec)
    if is_settled(live, desired):
        assert compare(live, desired).changes == ()


@given(specs)
def test_what_we_applied_and_nobody_touched_is_surely_settled(spec: Json) -> None:
    live = whole(manifest(spec), {names.FIELD_MANAGER: fields_of(manifest(spec))})
    assert is_settled(live, manifest(spec))


@given(standing())
def test_whatever_is_foreign_is_a_change(both: tuple[Unstructured, Json]) -> None:
    live, spec = both
    found = compare(live, manifest(spec))
    assert {each.path for each in found.foreign} <= set(found.paths)
