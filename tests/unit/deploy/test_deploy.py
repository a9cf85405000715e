"""What deploy/core says fits the program: arguments, endpoints, account, rights, and the gate of pods that wait."""

from pathlib import Path
from typing import Any

import cel
import pytest
import yaml
from starlette.routing import Route

from reconciler import __version__
from reconciler.cli.main import reconciler
from reconciler.model import names
from reconciler.serve.server import Answers, ListenAddress, probes
from tests.lab.places import REPOSITORY

CORE = REPOSITORY / "deploy" / "core"
AGENTS = REPOSITORY / "deploy" / "agents"


def objects(folder: Path) -> list[Any]:
    """What kustomize would build, images and all."""
    built = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found: list[Any] = []
    for each in built["resources"]:
        place = folder / each
        found += objects(place) if place.is_dir() else list(yaml.safe_load_all(place.read_text()))
    return found


def controller() -> Any:
    (found,) = [each for each in objects(CORE) if each["kind"] == "StatefulSet"]
    return found


def container() -> Any:
    (found,) = controller()["spec"]["template"]["spec"]["containers"]
    return found


def test_its_arguments_are_understood() -> None:
    name, *arguments = container()["args"]
    run = reconciler.get_command(reconciler.make_context("reconciler", [], resilient_parsing=True), name)
    assert run
    given = run.make_context(name, arguments).params
    assert given["resources"] is True
    assert given["address"] == ListenAddress("0.0.0.0", 8080)  # noqa: S104
    assert given["probe_address"] == ListenAddress("0.0.0.0", 8081)  # noqa: S104
    assert given["log_format"] == "json"
    mounted = {each["mountPath"] for each in container()["volumeMounts"]}
    assert str(given["history"].parent) in mounted
    assert {"name": "RECONCILER_HISTORY", "value": str(given["history"])} in container()["env"]


def test_its_probes_and_ports_are_answered() -> None:
    app = probes(Answers(str, str, bytes))
    paths = {each.path for each in app.routes if isinstance(each, Route)}
    asked = [each["httpGet"] for key, each in container().items() if key.endswith("Probe")]
    assert len(asked) == 3
    assert {each["path"] for each in asked} <= paths
    assert {each["port"] for each in asked} == {"probes"}
    ports = {each["name"]: each["containerPort"] for each in container()["ports"]}
    assert ports == {"http": 8080, "probes": 8081}


def test_nobody_but_who_takes_metrics_may_connect() -> None:
    policies = [each for each in objects(CORE) if each["kind"] == "NetworkPolicy"]
    (policy,) = [each for each in policies if each["metadata"]["namespace"] == names.OWN_NAMESPACE]
    assert policy["spec"]["podSelector"] == controller()["spec"]["selector"]
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"port": "http"}]
    assert rule["from"]


def test_it_runs_as_the_account_that_the_rights_are_for_in_our_namespace() -> None:
    found = objects(CORE)
    accounts = [each["metadata"] for each in found if each["kind"] == "ServiceAccount"]
    (account,) = [each for each in accounts if each["namespace"] == names.OWN_NAMESPACE]
    assert controller()["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    subjects = {(each["name"], each["namespace"]) for one in found for each in one.get("subjects", ())}
    assert subjects == {(account["name"], names.OWN_NAMESPACE)}
    assert controller()["metadata"]["namespace"] == names.OWN_NAMESPACE
    assert names.OWN_NAMESPACE in {each["metadata"]["name"] for each in found if each["kind"] == "Namespace"}


def test_only_the_agents_have_a_privileged_namespace() -> None:
    found = {
        each["metadata"]["name"]: each["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for each in [*objects(CORE), *objects(AGENTS)]
        if each["kind"] == "Namespace"
    }
    assert found == {
        names.OWN_NAMESPACE: "restricted",
        names.LEASES_NAMESPACE: "restricted",
        names.SMART_PODS_NAMESPACE: "restricted",
        names.AGENTS_NAMESPACE: "privileged",
    }


def test_smart_pods_get_no_token_no_network_and_no_priority_of_the_system() -> None:
    there = [each for each in objects(CORE) if each["metadata"].get("namespace") == names.SMART_PODS_NAMESPACE]
    of = {each["kind"]: each for each in there}
    assert (of["ServiceAccount"]["metadata"]["name"], of["ServiceAccount"]["automountServiceAccountToken"]) == (
        "default",
        False,
    )
    assert of["NetworkPolicy"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert of["ResourceQuota"]["spec"]["hard"] == {"pods": "0"}
    (classes,) = of["ResourceQuota"]["spec"]["scopeSelector"]["matchExpressions"]
    assert set(classes["values"]) == {"system-cluster-critical", "system-node-critical"}
    assert "RoleBinding" not in {each["kind"] for each in there if "default" in str(each.get("subjects"))}


def test_it_is_this_version_and_runs_twice() -> None:
    (image,) = yaml.safe_load((CORE / "kustomization.yaml").read_text())["images"]
    assert (image["name"], image["newTag"]) == (container()["image"], __version__)
    assert controller()["spec"]["replicas"] == 2


def gate() -> tuple[Any, Any]:
    """The policy and its binding."""
    found = [each for each in objects(CORE) if each["kind"].startswith("MutatingAdmissionPolicy")]
    policy, binding = sorted(found, key=lambda each: str(each["kind"]))
    return policy, binding


@pytest.mark.parametrize(
    ("pod", "is_gated"),
    [
        ({"metadata": {"annotations": {names.WAIT_FOR_CAPACITY: "true"}}, "spec": {}}, True),
        ({"metadata": {"annotations": {names.WAIT_FOR_CAPACITY: "true", "a": "b"}}, "spec": {"nodeName": ""}}, True),
        ({"metadata": {"annotations": {names.WAIT_FOR_CAPACITY: "true"}}, "spec": {"nodeName": "n"}}, False),
        ({"metadata": {"annotations": {names.WAIT_FOR_CAPACITY: "false"}}, "spec": {}}, False),
        ({"metadata": {"annotations": {"a": "true"}}, "spec": {}}, False),
        ({"metadata": {"annotations": {}}, "spec": {}}, False),
        ({"metadata": {}, "spec": {"schedulingGates": [{"name": "example.com/queue"}]}}, False),
    ],
)
def test_pods_that_ask_for_it_are_gated_and_of_no_other_an_expression_fails(pod: Any, is_gated: bool) -> None:
    conditions = [each["expression"] for each in gate()[0]["spec"]["matchConditions"]]
    context = cel.Context({"object": pod})
    told = [cel.compile(each).execute(context) for each in conditions]
    assert all(isinstance(each, bool) for each in told)
    assert all(told) == is_gated


def test_the_gate_is_ours_and_only_pods_as_they_are_made_get_it() -> None:
    policy, binding = gate()
    assert binding["spec"] == {"policyName": policy["metadata"]["name"]}
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    ((mutation),) = policy["spec"]["mutations"]
    # A merge, by which gates of others stay: a JSON patch would have to know whether there are any.
    assert mutation["patchType"] == "ApplyConfiguration"
    expression = " ".join(mutation["applyConfiguration"]["expression"].split())
    assert f'schedulingGates: [Object.spec.schedulingGates{{name: "{names.CAPACITY_GATE}"}}]' in expression
