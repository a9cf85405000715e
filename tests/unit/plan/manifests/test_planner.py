"""What is done for each manifest, and for what no manifest yields: the tables of cases, and what always holds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model import names
from reconciler.model.plan.decision import Apply, Decision, Delete, Label, Preconditions
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.manifests.feature import FEATURE
from reconciler.plan.manifests.planner import manifests
from reconciler.plan.reasons import by_code
from reconciler.report.decision_line import decision_line
from reconciler.report.sentences import sentence
from tests.unit.plan.manifests.stage import POLICY, WISHED, decide, inputs_of, patched, table

UNDECLARED: dict[str, Any] = {"wish": "nothing", "pools": {"l4": {}}}
CASES = {
    **{f"ensure: {name}": case for name, case in table("ensure.yaml").items()},
    **{f"adopt: {name}": case for name, case in table("adopt.yaml").items()},
    **{f"prune: {name}": {**UNDECLARED, **case} for name, case in table("prune.yaml").items()},
}
BECAUSE = by_code(FEATURE.reasons)


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    inputs = inputs_of(case)
    verdict = decide(inputs)
    decided = [[decision_line(each, inputs.now), sentence(each.reason)] for each in verdict.decisions]
    assert decided == case["decisions"]
    follow = [[each.cause, each.fate, len(each.nodes), each.pods] for each in verdict.consequences]
    assert follow == case.get("follow", [])
    if "makes" in case:
        made = verdict.decisions[0].act
        assert isinstance(made, Apply)
        assert msgspec.json.decode(made.manifest) == case["makes"]
    if "applies" in case:
        act = verdict.decisions[0].act
        assert isinstance(act, Apply)
        wished = patched(WISHED, case.get("wish", {}))
        assert msgspec.json.decode(act.manifest) == patched(wished, case["applies"])


def test_each_reason_is_shown_by_a_case() -> None:
    shown = {each.reason.code for case in CASES.values() for each in decide(inputs_of(case)).decisions}
    assert shown == set(BECAUSE)


def act_of(case: dict[str, Any], at: int = 0) -> Decision:
    return decide(inputs_of(case)).decisions[at]


def test_what_is_made_presumes_that_it_is_not_there() -> None:
    made = act_of({"live": "absent"})
    assert isinstance(made.act, Apply)
    assert made.act.presumes == Preconditions(absent=True)
    assert not made.subject.uid


def test_what_is_edited_or_pruned_presumes_what_was_seen() -> None:
    edited = act_of({"wish": {"spec": {"limits": {"cpu": "1"}}}})
    pruned = act_of({**UNDECLARED, "prune": ["NodePool/a100"]})
    assert isinstance(edited.act, Apply)
    assert isinstance(pruned.act, Delete)
    for each in (edited, pruned):
        assert each.act.presumes == Preconditions(resource_version="7")  # type: ignore[union-attr]
        assert each.subject.uid == "uid-a100"


def test_a_label_presumes_the_node_that_was_seen_and_waits_for_the_adoption() -> None:
    wish = {"spec": {"template": {"metadata": {"labels": {names.GPU_TYPE: "a100"}}}}}
    case = {"theirs": True, "pools": {"a100": {"adopt": True}}, "wish": wish, "nodes": 1}
    adopted, label = (act_of(case, at) for at in (0, 1))
    assert isinstance(label.act, Label)
    assert label.act.labels == ((names.GPU_TYPE, "a100"),)
    assert label.act.presumes == Preconditions()
    assert label.subject.uid == "uid-node-0"
    assert label.after == (adopted.subject,)


def test_decisions_name_their_pool_and_the_policy() -> None:
    made = act_of({"live": "absent"})
    assert (made.pool, made.reason.origin) == ("a100", POLICY)
    # The policy of what is pruned is no more: its pool stands on the object.
    assert act_of({**UNDECLARED, "prune": ["NodePool/a100"]}).pool == "a100"


def test_what_is_made_is_in_the_inventory_and_its_template_is_not() -> None:
    act = act_of({"live": "absent"}).act
    assert isinstance(act, Apply)
    body = msgspec.json.decode(act.manifest)
    assert body["metadata"]["labels"] == {names.MANAGED: "true", names.POOL: "a100"}
    assert body["metadata"]["annotations"] == {names.ENVIRONMENT: "prod"}
    assert body["spec"] == WISHED["spec"]


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=5)
@given(random=some.randoms(use_true_random=False))
def test_the_order_of_inputs_does_not_matter(name: str, random: Any) -> None:
    inputs = inputs_of(CASES[name])
    assert decide(shuffled(inputs, random)) == decide(inputs)


def shuffled(inputs: Inputs, random: Any) -> Inputs:
    def mixed(struct: Any) -> Any:
        collections = {key: value for key, value in msgspec.structs.asdict(struct).items() if isinstance(value, tuple)}
        return msgspec.structs.replace(
            struct, **{key: tuple(random.sample(value, len(value))) for key, value in collections.items()}
        )

    mixed_up = {"desired": mixed(inputs.desired), "observed": mixed(inputs.observed), "prune": inputs.prune[::-1]}
    return msgspec.structs.replace(inputs, **mixed_up)


def test_an_idle_plan_asks_nothing_about_nodes() -> None:
    """What stands as it is wished costs a walk over manifests, not over the fleet."""
    inputs = inputs_of({"nodes": 3})

    class Untouched:
        def drifted_claims_of(self, pool: str) -> tuple[()]:
            return ()

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"the fleet was asked for {name}")

    assert manifests(inputs, Draft(Untouched(), inputs.desired)) == Verdict()  # type: ignore[arg-type]
