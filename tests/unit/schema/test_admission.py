"""The admission policies say what the rights say, of each kind that is written, and nothing is written beside them."""

from typing import Any

import cel
import pytest
import yaml

from reconciler.cli.main import main
from reconciler.model import names
from reconciler.model.right import Changes, Right, RightLimits
from reconciler.schema.admission import Account, admission_page, admission_policies
from reconciler.schema.generated import ADMISSION
from reconciler.schema.rights.rules import extender_rights, webhook_rights, writing_rights
from tests.lab.places import REPOSITORY
from tests.unit.schema.rights.stage import wish

WRITES = {"create", "update", "patch", "delete"}
# What may be said of them is all theirs, or for the API server to judge.
UNLIMITED = {"pods/binding", "pods/eviction", "leases"}


def policies(page: str) -> dict[str, Any]:
    return {
        each["metadata"]["name"]: each["spec"]
        for each in yaml.safe_load_all(page)
        if each["kind"] == "ValidatingAdmissionPolicy"
    }


def refusals(spec: Any, operation: str, old: Any, new: Any, namespace: str = "") -> list[str]:
    """The messages of what is not so."""
    request = {"operation": operation, "namespace": namespace}
    context: dict[str, Any] = {"object": new, "oldObject": old, "request": request}
    plain = {each["name"]: _of(context, each["expression"]) for each in spec["variables"]}
    context["variables"] = plain
    return [each["message"] for each in spec["validations"] if not _of(context, each["expression"])]


def _of(context: dict[str, Any], expression: str) -> Any:
    return cel.compile(expression).execute(cel.Context(context))


def test_each_right_to_write_has_limits_or_is_for_others_to_limit() -> None:
    for right in writing_rights((), "gpu-system"):
        if WRITES & set(right.verbs) and right.limits is None:
            assert all(each in UNLIMITED or each.endswith("/status") for each in right.resources), right


def test_each_kind_with_limits_has_a_policy_that_is_bound() -> None:
    page = admission_page(())
    found = policies(page)
    granted = (*writing_rights((), "gpu-system"), *webhook_rights("gpu-system"), *extender_rights("gpu-system"))
    limited = {each for right in granted if right.limits for each in right.resources}
    assert found.keys() == {"reconciler-nothing-else", *(f"reconciler-{each.replace('/', '-')}" for each in limited)}
    bound = [each for each in yaml.safe_load_all(page) if each["kind"].endswith("Binding")]
    assert {each["spec"]["policyName"] for each in bound} == found.keys()
    assert all(each["spec"]["validationActions"] == ["Deny"] for each in bound)
    assert all(each["failurePolicy"] == "Fail" for each in found.values())


def test_of_kinds_that_no_right_is_for_nothing_is_written() -> None:
    spec = policies(admission_page(()))["reconciler-nothing-else"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["resources"], rule["operations"]) == (["*/*"], ["*"])
    assert refusals(spec, "CREATE", None, {}) == ["the account of the controller may not write objects of this kind"]
    excluded = {
        (group, resource)
        for rule in spec["matchConstraints"]["excludeResourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    granted = (*writing_rights((), "gpu-system"), *webhook_rights("gpu-system"), *extender_rights("gpu-system"))
    assert excluded == {(right.group, each) for right in granted for each in right.resources}


def test_where_a_right_has_no_limits_the_policy_has_nothing_to_check() -> None:
    everywhere = Right("g", ("things",), ("create", "update"), "x", limits=RightLimits("look", names=("one",)))
    for verbs, exempt in ((("create", "patch", "delete"), True), (("create", "patch"), False)):
        there = Right("g", ("things",), verbs, "x", namespace="there")
        constraints = admission_policies([everywhere, there], Account())[2]["spec"]["matchConstraints"]
        assert ("namespaceSelector" in constraints) == exempt
    cluster_wide = Right("g", ("things",), ("create", "patch", "delete"), "x")
    constraints = admission_policies([everywhere, cluster_wide], Account())[2]["spec"]["matchConstraints"]
    assert "namespaceSelector" not in constraints


def test_only_the_account_of_the_controller_is_limited() -> None:
    for namespace in ("gpu-system", "elsewhere"):
        for spec in policies(admission_page((), namespace)).values():
            (condition,) = spec["matchConditions"]
            assert condition["expression"] == (
                f'request.userInfo.username == "system:serviceaccount:{namespace}:{names.SERVICE_ACCOUNT}"'
            )


def test_smart_pods_are_made_where_the_pools_have_theirs() -> None:
    spec = policies(admission_page([wish(namespace="scaling")]))["reconciler-pods"]
    created = [each["expression"] for each in spec["validations"] if '"CREATE"' in each["expression"]]
    assert 'request.operation != "CREATE" || (request.namespace == "scaling")' in created


def node(**changed: Any) -> dict[str, Any]:
    labels = {names.KARPENTER_POOL: "a100", "team": "search"}
    metadata = {"name": "n", "uid": "u", "labels": labels, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]}, **changed}


OURS = {"key": names.DRAINING, "effect": "NoSchedule"}
EVICTS = OURS | {"effect": "NoExecute"}
CHANGES = {
    "a taint of ours": ({"spec": {"taints": [*node()["spec"]["taints"], OURS]}}, True),
    "a taint of ours that evicts": (
        {"spec": {"taints": [*node()["spec"]["taints"], EVICTS]}},
        False,
    ),
    "without theirs": ({"spec": {}}, False),
    "cordoned": ({"spec": {**node()["spec"], "unschedulable": True}}, False),
    "a field of a later Kubernetes": ({"spec": {**node()["spec"], "later": True}}, False),
    "a field beside the spec": ({"later": True}, False),
    "another version": ({"metadata": {**node()["metadata"], "resourceVersion": "2", "generation": 2}}, True),
    "a finalizer": ({"metadata": {**node()["metadata"], "finalizers": ["x"]}}, False),
    "without labels": ({"metadata": {"name": "n", "uid": "u"}}, False),
    "an annotation": ({"metadata": {**node()["metadata"], "annotations": {names.FROZEN_UNTIL: "x"}}}, False),
}


@pytest.mark.parametrize(("changed", "is_allowed"), CHANGES.values(), ids=CHANGES)
def test_of_a_node_only_what_is_ours_changes(changed: dict[str, Any], is_allowed: bool) -> None:
    spec = policies(admission_page(()))["reconciler-nodes"]
    found = refusals(spec, "UPDATE", node(), node(**changed))
    assert (not found) == is_allowed, found


def test_what_is_left_out_of_the_limits_is_refused() -> None:
    """A right that is added without its fields lets nothing change but what other rights name."""
    right = Right("", ("pods",), ("patch",), "x", limits=RightLimits("look", changes=Changes()))
    policy = admission_policies([right], Account())[2]
    before = {"metadata": {"name": "p"}, "spec": {"a": "b"}}
    assert refusals(policy["spec"], "UPDATE", before, before) == []
    assert refusals(policy["spec"], "UPDATE", before, {**before, "spec": {"a": "c"}})
    assert refusals(policy["spec"], "CREATE", None, before) == ["the account of the controller may not create pods"]


def test_the_command_prints_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rbac", "--admission"]) == 0
    page = capsys.readouterr().out
    assert (REPOSITORY / ADMISSION).read_text().endswith(page)
    assert main(["rbac", "--admission", "--write"]) == 64
    assert main(["rbac", "--admission", "--person", "freezer"]) == 64
