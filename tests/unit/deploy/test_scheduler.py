"""What deploy/scheduler says fits the program: argument and port of the extender, files of the scheduler, rights."""

from functools import cache
from typing import Any

import yaml

from reconciler.cli.main import reconciler
from reconciler.controller.certificates import endpoint_names
from reconciler.controller.run import ExtenderSettings
from reconciler.model import names
from reconciler.schema.generated import EXTENDER_RIGHTS, SCHEDULER
from reconciler.serve.server import ListenAddress
from tests.lab.places import REPOSITORY
from tests.unit.deploy.test_deploy import container, controller, objects

FOLDER = REPOSITORY / "deploy" / "scheduler"
POD = {"app.kubernetes.io/name": names.GPU_SCHEDULER}


def kustomization() -> Any:
    return yaml.safe_load((FOLDER / "kustomization.yaml").read_text())


@cache
def shipped() -> list[Any]:
    return objects(FOLDER)


def found(kind: str, name: str) -> Any:
    (one,) = [each for each in shipped() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def configuration() -> Any:
    return yaml.safe_load((REPOSITORY / SCHEDULER).read_text())


def pod() -> Any:
    return found("Deployment", names.GPU_SCHEDULER)["spec"]["template"]


def scheduler() -> Any:
    (one,) = pod()["spec"]["containers"]
    return one


def additions() -> dict[str, Any]:
    """What the patch appends to lists of the controller's container."""
    (patch,) = kustomization()["patches"]
    assert patch["target"] == {"kind": "StatefulSet", "name": controller()["metadata"]["name"]}
    operations = yaml.safe_load(patch["patch"])
    assert {each["op"] for each in operations} == {"add"}
    start = "/spec/template/spec/containers/0/"
    return {each["path"].removeprefix(start).removesuffix("/-"): each["value"] for each in operations}


def test_the_extender_listens_with_certificates_of_its_own_where_its_service_leads() -> None:
    added = additions()
    arguments: list[str] = [*container()["args"], "--webhook=:8443", added["args"]]
    name = arguments.pop(0)
    run = reconciler.get_command(reconciler.make_context("reconciler", [], resilient_parsing=True), name)
    assert run
    given = run.make_context(name, arguments).params
    assert given["extender_address"] == ListenAddress("0.0.0.0", 8444)  # noqa: S104
    assert not any(given[each] for each in ("tls_certificate", "tls_key", "client_authority"))
    assert added["ports"] == {"name": "extender", "containerPort": 8444}
    service = found("Service", names.EXTENDER_SERVICE)
    assert service["spec"]["selector"] == controller()["spec"]["selector"]["matchLabels"]
    assert "publishNotReadyAddresses" not in service["spec"]
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "extender")


def test_the_scheduler_connects_by_a_name_of_the_certificate_and_never_without_the_extender() -> None:
    (extender,) = configuration()["extenders"]
    host = extender["urlPrefix"].removeprefix("https://")
    service = found("Service", names.EXTENDER_SERVICE)["metadata"]
    assert host == f"{service['name']}.{service['namespace']}.svc"
    assert host in endpoint_names(service["namespace"])
    assert extender["enableHTTPS"] is True
    assert extender["ignorable"] is False


def test_the_scheduler_finds_its_configuration_and_its_certificate() -> None:
    mounts = {each["name"]: each["mountPath"] for each in scheduler()["volumeMounts"]}
    volumes = {each["name"]: each for each in pod()["spec"]["volumes"]}
    (generated,) = kustomization()["configMapGenerator"]
    assert volumes["config"]["configMap"]["name"] == generated["name"]
    assert generated["namespace"] == names.OWN_NAMESPACE
    (file,) = generated["files"]
    assert FOLDER / file == REPOSITORY / SCHEDULER
    assert f"--config={mounts['config']}/{file}" in scheduler()["command"]
    secret = volumes["tls"]["secret"]
    assert secret["secretName"] == names.SCHEDULER_CERTIFICATES
    assert not secret.get("optional")
    (extender,) = configuration()["extenders"]
    assert extender["tlsConfig"] == {
        "caFile": f"{mounts['tls']}/ca.crt",
        "certFile": f"{mounts['tls']}/tls.crt",
        "keyFile": f"{mounts['tls']}/tls.key",
    }


def test_replicas_elect_a_leader_by_a_lease_that_their_account_may_write() -> None:
    election = configuration()["leaderElection"]
    assert election["leaderElect"] is True
    assert found("Deployment", names.GPU_SCHEDULER)["spec"]["replicas"] == 2
    role = found("Role", names.GPU_SCHEDULER)
    assert role["metadata"]["namespace"] == election["resourceNamespace"]
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, [election["resourceName"]]]
    account = found("ServiceAccount", names.GPU_SCHEDULER)["metadata"]
    assert pod()["spec"]["serviceAccountName"] == account["name"]
    bound = {
        each["roleRef"]["name"]
        for each in shipped()
        if each["kind"] in {"ClusterRoleBinding", "RoleBinding"}
        and {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]} in each["subjects"]
    }
    assert bound == {
        names.GPU_SCHEDULER,
        "extension-apiserver-authentication-reader",
        "system:kube-scheduler",
        "system:volume-scheduler",
    }


def test_it_is_a_stock_scheduler_of_a_pinned_version() -> None:
    (image,) = kustomization()["images"]
    assert image["name"] == scheduler()["image"]
    assert image["newName"].endswith("/kube-scheduler")
    assert image["newTag"].startswith("v1.36.")


def test_its_pods_are_those_that_the_controller_replaces_and_that_may_connect() -> None:
    assert pod()["metadata"]["labels"] == POD
    assert found("PodDisruptionBudget", names.GPU_SCHEDULER)["spec"]["selector"]["matchLabels"] == POD
    (rule,) = found("NetworkPolicy", names.EXTENDER_SERVICE)["spec"]["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": POD}}]
    assert rule["ports"] == [{"port": additions()["ports"]["name"]}]


def test_it_keeps_to_the_restricted_standard_of_the_namespace() -> None:
    assert pod()["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod()["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    security = scheduler()["securityContext"]
    assert (security["allowPrivilegeEscalation"], security["capabilities"]) == (False, {"drop": ["ALL"]})
    assert pod()["spec"]["securityContext"]["fsGroup"] == pod()["spec"]["securityContext"]["runAsGroup"]


def test_the_controller_may_write_the_secret_of_the_scheduler_and_no_other() -> None:
    (role,) = [
        each for each in yaml.safe_load_all((REPOSITORY / EXTENDER_RIGHTS).read_text()) if each["kind"] == "Role"
    ]
    rules = [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]]
    assert rules == [
        (["secrets"], ["create"], None),
        (["secrets"], ["get", "update"], [names.SCHEDULER_CERTIFICATES]),
        (["pods/eviction"], ["create"], None),
    ]
    policy = found("ValidatingAdmissionPolicy", "reconciler-secrets")["spec"]
    for operation in ("CREATE", "UPDATE"):
        (allowed,) = [each["expression"] for each in policy["validations"] if f'"{operation}"' in each["expression"]]
        for name in (names.WEBHOOK_CERTIFICATES, names.SCHEDULER_CERTIFICATES):
            assert f'object.metadata.name == "{name}"' in allowed


def test_only_the_scheduler_is_served() -> None:
    settings = ExtenderSettings(ListenAddress("127.0.0.1", 0))
    assert settings.context().client_name == names.GPU_SCHEDULER
