"""What deploy/webhook says fits the program: its argument, its names, its port, and the pods that it concerns."""

from typing import Any

import cel
import pytest
import yaml

from reconciler.cli.main import reconciler
from reconciler.model import names
from reconciler.protocol.certificates import service_names
from reconciler.serve import webhook
from reconciler.serve.server import ListenAddress
from tests.lab.places import REPOSITORY
from tests.unit.deploy.test_deploy import container, controller, objects

FOLDER = REPOSITORY / "deploy" / "webhook"


def found(kind: str, name: str) -> Any:
    (one,) = [each for each in objects(FOLDER) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def configured() -> Any:
    (one,) = found("MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION)["webhooks"]
    return one


def additions() -> dict[str, Any]:
    """What the patch appends to lists of the controller's container."""
    (patch,) = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["patches"]
    assert patch["target"] == {"kind": "StatefulSet", "name": controller()["metadata"]["name"]}
    operations = yaml.safe_load(patch["patch"])
    assert {each["op"] for each in operations} == {"add"}
    start = "/spec/template/spec/containers/0/"
    return {each["path"].removeprefix(start).removesuffix("/-"): each["value"] for each in operations}


def test_its_argument_is_understood_and_its_port_is_open() -> None:
    added = additions()
    arguments: list[str] = [*container()["args"], added["args"]]
    name = arguments.pop(0)
    run = reconciler.get_command(reconciler.make_context("reconciler", [], resilient_parsing=True), name)
    assert run
    assert run.make_context(name, arguments).params["webhook_address"] == ListenAddress("0.0.0.0", 8443)  # noqa: S104
    assert added["ports"] == {"name": "webhook", "containerPort": 8443}
    (port,) = found("Service", names.WEBHOOK_SERVICE)["spec"]["ports"]
    (rule,) = found("NetworkPolicy", "reconciler-webhook")["spec"]["ingress"]
    assert port["targetPort"] == rule["ports"][0]["port"] == added["ports"]["name"]


def test_the_api_server_connects_by_a_name_of_the_certificate() -> None:
    hook = configured()
    service = hook["clientConfig"]["service"]
    there = found("Service", service["name"])
    assert (service["name"], service["namespace"]) == (names.WEBHOOK_SERVICE, there["metadata"]["namespace"])
    assert service["port"] == there["spec"]["ports"][0]["port"]
    assert service["path"] == webhook.PATH
    assert f"{service['name']}.{service['namespace']}.svc" in service_names(names.WEBHOOK_SERVICE, names.OWN_NAMESPACE)
    assert there["spec"]["selector"] == controller()["spec"]["selector"]["matchLabels"]
    assert "publishNotReadyAddresses" not in there["spec"]
    assert hook["name"] == names.WEBHOOK


def test_a_pod_with_a_claim_never_passes_unpatched_and_reconcilers_namespaces_never_wait() -> None:
    hook = configured()
    assert (hook["failurePolicy"], hook["sideEffects"], hook["reinvocationPolicy"]) == ("Fail", "None", "IfNeeded")
    assert hook["timeoutSeconds"] > webhook.LOOKUP_SECONDS
    (rule,) = hook["rules"]
    assert (rule["operations"], rule["resources"], rule["apiGroups"]) == (["CREATE"], ["pods"], [""])
    (selected,) = hook["namespaceSelector"]["matchExpressions"]
    ours = {names.OWN_NAMESPACE, names.SMART_PODS_NAMESPACE, names.AGENTS_NAMESPACE, names.LEASES_NAMESPACE}
    assert (selected["operator"], set(selected["values"])) == ("NotIn", ours)


@pytest.mark.parametrize(
    ("metadata", "is_called"),
    [
        ({}, False),
        ({"annotations": {}}, False),
        ({"annotations": {"gpu.scheduling/claims": "train"}}, False),
        ({"labels": {names.CLAIM: "train"}}, False),
        ({"annotations": {names.CLAIM: ""}}, True),
        ({"annotations": {names.CLAIM: "train", "a": "b"}}, True),
    ],
)
def test_pods_with_a_claim_are_sent_and_of_no_other_the_condition_fails(metadata: Any, is_called: bool) -> None:
    (condition,) = configured()["matchConditions"]
    context = cel.Context({"object": {"metadata": metadata, "spec": {}}})
    assert cel.compile(condition["expression"]).execute(context) is is_called


def test_the_account_may_write_the_certificates_and_its_own_configuration_only() -> None:
    rules = [
        (rule["resources"], rule["verbs"], rule.get("resourceNames"))
        for role in (found("Role", "reconciler-webhook"), found("ClusterRole", "reconciler-webhook"))
        for rule in role["rules"]
    ]
    assert rules == [
        (["secrets"], ["create"], None),
        (["secrets"], ["get", "update"], [names.WEBHOOK_CERTIFICATES]),
        (["mutatingwebhookconfigurations"], ["get", "patch"], [names.WEBHOOK_CONFIGURATION]),
    ]
    (policy,) = [
        each
        for each in objects(FOLDER)
        if each["kind"] == "ValidatingAdmissionPolicy" and each["metadata"]["name"] == "reconciler-secrets"
    ]
    made = [each["expression"] for each in policy["spec"]["validations"] if '"CREATE"' in each["expression"]]
    assert any(f'object.metadata.name == "{names.WEBHOOK_CERTIFICATES}"' in each for each in made)
    assert any(each["expression"] == 'request.operation != "DELETE"' for each in policy["spec"]["validations"])


def test_what_fixes_the_gpus_of_a_pod_is_protected() -> None:
    policy = found("ValidatingAdmissionPolicy", "reconciler-claims")["spec"]
    (validation,) = policy["validations"]
    assert all(f'"{key}"' in validation["expression"] for key in (names.CLAIM, names.ALLOCATED, names.DEVICES))
    assert found("ValidatingAdmissionPolicyBinding", "reconciler-claims")["spec"]["validationActions"] == ["Deny"]
