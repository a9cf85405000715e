"""Verb by verb, the same on an imagined cluster and on a real one: what it does, and what it leaves alone."""

import msgspec
import pytest

from reconciler.model.plan.decision import Act, Preconditions, Ref, Result
from tests.contract import objects
from tests.contract.cases import CASES, NODE, Case
from tests.contract.ground import Fallen, Ground, decision

replace = msgspec.structs.replace
each_verb = pytest.mark.parametrize("case", CASES, ids=lambda case: case.verb)


@pytest.fixture(autouse=True)
def node(ground: Ground) -> None:
    """Something to bind to."""
    if ground.get(Ref("Node", "", NODE)) is None:
        ground.put(objects.node(NODE))


def put(ground: Ground, name: str, case: Case) -> Ref:
    """The subject, and what has to be there as well."""
    if case.beside is not None:
        ground.put(case.beside(name))
    return ground.put(case.subject(name))


def presuming(act: Act, **presumes: object) -> Act:
    return replace(act, presumes=Preconditions(**presumes))  # type: ignore[arg-type]


def result(ground: Ground, ref: Ref, act: Act) -> tuple[Result, str]:
    (outcome,) = ground.apply([decision(ref, act)])
    assert outcome.subject == ref
    return outcome.result, outcome.detail


@each_verb
def test_it_takes_effect_and_what_is_theirs_survives(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    assert result(ground, ref, case.act(ref)) == ("done", "")
    found = ground.get(ref)
    assert case.shows(found)
    if found:
        assert objects.THEIRS.items() <= found["metadata"]["labels"].items()
    if found and ref.kind == "Node":
        assert objects.THEIR_TAINT in found["spec"]["taints"]
    if found and ref.kind == "NodePool":
        assert found["spec"]["limits"] == {"cpu": "1000"}


@each_verb
def test_what_is_so_already_is_done_and_nothing_is_written(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    act = case.act(ref)
    before = ground.get(ref)
    assert before
    seen = presuming(act, resource_version=before["metadata"]["resourceVersion"])
    result(ground, ref, act)
    written = ground.writes
    assert written
    # Also when it presumes what stood before: it was this very action that changed it.
    assert [result(ground, ref, each) for each in (act, seen)] == [("done", "")] * 2
    assert ground.writes == written
    assert case.shows(ground.get(ref))


@each_verb
def test_another_of_that_name_is_left_alone(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    written = ground.writes
    other = replace(ref, uid="5f0c1c1e-0000-4000-8000-000000000000")
    found, detail = result(ground, other, case.act(ref))
    # What was to go is gone: that another has its name does not change it.
    assert found == ("done" if case.goes else "stale")
    assert case.goes or "another" in detail
    assert ground.writes == written
    assert not case.shows(ground.get(ref))


@each_verb
def test_what_changed_since_it_was_seen_is_left_alone(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    before = ground.get(ref)
    assert before
    ground.edit(ref, {"metadata": {"labels": {"example.com/later": "yes"}}})
    written = ground.writes
    act = presuming(case.act(ref), resource_version=before["metadata"]["resourceVersion"])
    found, detail = result(ground, ref, act)
    assert (found, "has changed" in detail) == ("stale", True)
    assert ground.writes == written
    assert not case.shows(ground.get(ref))


@each_verb
def test_a_field_that_is_not_as_presumed_is_told(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    written = ground.writes
    path = "metadata.labels[example.com/team]"
    found, detail = result(ground, ref, presuming(case.act(ref), fields=((path, "ads"),)))
    assert found == "stale"
    assert detail == f'{ref.title} was expected to have "ads" in {path}, but has "search"'
    assert ground.writes == written
    assert result(ground, ref, presuming(case.act(ref), fields=((path, "search"),))) == ("done", "")
    assert case.shows(ground.get(ref))


@pytest.mark.parametrize(
    "case", [each for each in CASES if each.verb in {"taint", "harden", "delete-empty"}], ids=lambda case: case.verb
)
def test_a_taint_that_somebody_put_on_meanwhile_is_told(ground: Ground, name: str, case: Case) -> None:
    ref = ground.put(case.subject(name))
    written, theirs = ground.writes, objects.THEIR_TAINT["key"]
    act = case.act(ref)
    wary = replace(act, presumes=replace(act.presumes, untainted=("example.com/other", theirs)))
    found, detail = result(ground, ref, wary)
    assert (found, detail) == ("stale", f"{ref.title} has {theirs} now")
    assert ground.writes == written
    unconcerned = replace(act, presumes=replace(act.presumes, untainted=("example.com/other",)))
    assert result(ground, ref, unconcerned) == ("done", "")
    assert case.shows(ground.get(ref))


@each_verb
def test_what_is_not_there_is_not_made_up(ground: Ground, name: str, case: Case) -> None:
    manifest = case.subject(name)
    ref = Ref(manifest["kind"], manifest["metadata"].get("namespace", ""), name, uid="5f0c1c1e")
    written = ground.writes
    found, detail = result(ground, ref, case.act(ref))
    assert found == ("done" if case.goes else "stale")
    assert case.goes or detail == f"{ref.title} does not exist any more"
    assert ground.writes == written
    assert ground.get(ref) is None


@each_verb
def test_behind_a_fence_that_fell_nothing_is_written(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    written = ground.writes
    (outcome,) = ground.apply([decision(ref, case.act(ref))], Fallen())
    assert (outcome.result, "leadership term has expired" in outcome.detail) == ("stale", True)
    assert ground.writes == written
    assert not case.shows(ground.get(ref))


@each_verb
def test_what_would_be_done_is_not(ground: Ground, name: str, case: Case) -> None:
    ref = put(ground, name, case)
    written = ground.writes
    assert ground.apply([decision(ref, case.act(ref), would=True)]) == []
    assert ground.writes == written
