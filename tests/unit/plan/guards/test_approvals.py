"""What an approval must name to cover a decision, and what a plan says of approvals that do not apply."""

from typing import Any

import msgspec
import pytest

from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.decision import Action, Decision, Delete, Ref, Taint
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.causes import Cause, cause_of
from reconciler.plan.guards.approvals import INSTALL, TITLE, Approvals, approval_notes, policy_digest
from reconciler.policy.resolve import bundle_of, resolve
from tests.unit.plan.manifests.stage import POLICY, inputs_of
from tests.unit.plan.some_reasons import some_reason
from tests.unit.policy.custom_resources.stage import POLICIES, rendered, seen, wish_of

DRAINED = {"maxDrainParallelism": 1, "maxScaleDownParallelism": 1}
SCALED = {"poolName": "a100", "minSize": 0, "maxSize": 9, "minGPUUtilizationPercent": 70}
TAINT = Taint(key="k", value="v", effect="NoSchedule")


def desired() -> Desired:
    """Two DrainPolicies name a100, one of them with all other pools."""
    drains = {"all": {**DRAINED, "poolNames": ["*"]}, "night": {**DRAINED, "poolNames": ["a100"]}}
    return msgspec.structs.replace(
        inputs_of({"pools": {"a100": {}, "l4": {}}}).desired,
        provisioners=(Declared("NodeProvisioner", "sizes", msgspec.convert(SCALED, NodeProvisioner), ()),),
        drains=tuple(_drains(name, each) for name, each in drains.items()),
    )


def _drains(name: str, said: dict[str, Any]) -> Declared[DrainPolicy]:
    return Declared("DrainPolicy", name, msgspec.convert(said, DrainPolicy), ())


def causes(planner: str, pool: str, act: Action = TAINT) -> Cause:
    return cause_of(desired(), Decision(planner, Ref("NodePool", "", pool, "uid"), act, some_reason("Any"), pool))


@pytest.mark.parametrize(
    ("planner", "pool", "policies"),
    [
        ("manifests", "a100", {("GpuPool", "a100")}),
        ("smart_pods", "a100", {("GpuPool", "a100")}),
        ("scaling", "a100", {("NodeProvisioner", "sizes")}),
        ("scaling", "l4", set()),
        ("drain", "a100", {("DrainPolicy", "all"), ("DrainPolicy", "night")}),
        ("drain", "l4", {("DrainPolicy", "all")}),
        ("manifests", "old", set()),
    ],
)
def test_a_decision_follows_from_the_policies_that_an_approval_must_name(
    planner: str, pool: str, policies: set[tuple[str, str]]
) -> None:
    assert causes(planner, pool) == Cause(frozenset(policies))


def test_what_no_policy_yields_any_more_is_lost_and_a_node_that_is_deleted_is_not() -> None:
    assert causes("manifests", "old", Delete()) == Cause(lost="NodePool/old")
    assert causes("scaling", "a100", Delete()) == Cause(frozenset({("NodeProvisioner", "sizes")}))


def told(case: dict[str, Any], absent: tuple[str, ...] = ()) -> list[str]:
    inputs = inputs_of(case)
    guard = Declared("ChangeGuard", "fleet", ChangeGuard(pool_names=["*"]), (("", POLICY),))
    guarded = msgspec.structs.replace(inputs.desired, guards=(guard,))
    observed = msgspec.structs.replace(inputs.observed, absent=absent)
    return list(approval_notes(msgspec.structs.replace(inputs, desired=guarded, observed=observed)))


def test_a_cluster_without_the_definition_is_told_with_the_command_that_installs_it() -> None:
    (note,) = told({}, absent=(TITLE,))
    assert note.endswith(INSTALL)
    assert told({}) == []


def test_an_approval_of_another_content_or_of_what_is_not_declared_says_so() -> None:
    keys = (("GpuPool", "a100"), ("DrainPolicy", "x"))
    objects = [{"kind": kind, "name": name, "digest": f"sha256:{'0' * 64}"} for kind, name in keys]
    first, second = told({"approvals": {"granted": {"objects": objects}}})
    assert first.startswith(
        "ChangeApproval/granted does not cover GpuPool/a100: the approved digest is sha256:00000000, "
    )
    assert second == "ChangeApproval/granted does not cover DrainPolicy/x: no such policy is declared"


def test_a_loss_is_agreed_to_by_the_first_approval_by_name_and_by_the_command_before_any() -> None:
    def losses(**more: Any) -> dict[str, str]:
        inputs: Inputs = inputs_of({"approvals": {name: {"prune": ["NodePool/a100"]} for name in ("b", "a")}, **more})
        return Approvals(inputs).losses

    assert losses() == {"NodePool/a100": "ChangeApproval/a"}
    assert losses(prune=["NodePool/a100"]) == {"NodePool/a100": "--prune NodePool/a100"}


COMMIT = "b7d0a15f1e2d3c4b5a69788796a5b4c34c1f9e2b"
APPROVED = {"approvals": {"granted": {"revision": COMMIT, "ceilings": {"maxRemovedNodes": 99}}}}


def claiming(revision: str) -> Desired:
    """Whoever may write policies as custom resources edits them, names a commit of others, and computes the digest."""
    edited = POLICIES.replace("maxSize: 9", "maxSize: 1")
    (wish,) = resolve(bundle_of(seen(*rendered(wish_of(edited, revision))))).wishes
    return wish


def test_custom_resources_that_claim_an_approved_commit_are_not_approved_by_it() -> None:
    wish = claiming(COMMIT)
    assert wish.revision == COMMIT
    read = msgspec.structs.replace(inputs_of(APPROVED), desired=wish)
    assert Approvals(read).holding == ()
    (note,) = approval_notes(read)
    assert note == (
        "ChangeApproval/granted approves a revision, which custom resources only claim to have, so the approval is not "
        "valid: approve policies by their content (reconciler approve KIND/NAME --resources)"
    )
    by_commit = msgspec.structs.replace(wish_of(revision=COMMIT), is_claimed=False)
    assert len(Approvals(msgspec.structs.replace(read, desired=by_commit)).holding) == 1


def test_of_custom_resources_an_approval_of_the_content_counts_whatever_they_claim() -> None:
    wish = claiming(COMMIT)
    digest = policy_digest(wish, "NodeProvisioner", "a100")
    objects = [{"kind": "NodeProvisioner", "name": "a100", "digest": digest}]
    read = msgspec.structs.replace(inputs_of({"approvals": {"granted": {"objects": objects}}}), desired=wish)
    (approval,) = Approvals(read).holding
    assert approval.policies == {("NodeProvisioner", "a100")}
