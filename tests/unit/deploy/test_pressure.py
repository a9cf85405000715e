"""What deploy/pressure says fits the program: arguments and port of the endpoint for agents, their account, rights."""

from functools import cache
from typing import Any

import yaml

from reconciler.cli.main import reconciler
from reconciler.controller.agents import AgentSettings
from reconciler.controller.certificates import endpoint_names
from reconciler.model import names
from reconciler.protocol.agent_identity import AgentsAccount
from reconciler.protocol.certificates import service_names
from reconciler.schema.generated import AGENTS_RIGHTS
from reconciler.serve.server import ListenAddress
from tests.lab.identities import AGENT
from tests.lab.places import REPOSITORY
from tests.unit.deploy.test_deploy import container, controller, objects

FOLDER = REPOSITORY / "deploy" / "pressure"


@cache
def shipped() -> list[Any]:
    return objects(FOLDER)


def found(kind: str, name: str) -> Any:
    (one,) = [each for each in shipped() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def additions() -> list[tuple[str, Any]]:
    (patch,) = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["patches"]
    assert patch["target"] == {"kind": "StatefulSet", "name": controller()["metadata"]["name"]}
    start = "/spec/template/spec/containers/0/"
    operations = yaml.safe_load(patch["patch"])
    return [(each["path"].removeprefix(start).removesuffix("/-"), each["value"]) for each in operations]


def test_agents_are_answered_where_the_service_leads_and_their_account_is_shipped() -> None:
    own = [value for key, value in additions() if key == "args"]
    arguments: list[str] = [*container()["args"], *own]
    name = arguments.pop(0)
    run = reconciler.get_command(reconciler.make_context("reconciler", [], resilient_parsing=True), name)
    assert run
    given = run.make_context(name, arguments).params
    account = found("ServiceAccount", "reconciler-agent")["metadata"]
    settings = AgentSettings(given["agents_address"], given["agents_account"])
    assert settings.address == ListenAddress("0.0.0.0", 8445)  # noqa: S104
    assert settings.account == AgentsAccount(account["namespace"], account["name"])
    assert f"system:serviceaccount:{account['namespace']}:{account['name']}" == AGENT
    assert [value for key, value in additions() if key == "ports"] == [{"name": "agents", "containerPort": 8445}]
    service = found("Service", names.AGENTS_SERVICE)
    assert service["spec"]["selector"] == controller()["spec"]["selector"]["matchLabels"]
    (port,) = service["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "agents")
    (rule,) = found("NetworkPolicy", names.AGENTS_SERVICE)["spec"]["ingress"]
    assert rule["ports"] == [{"port": "agents"}]


def test_the_certificate_names_the_service() -> None:
    service = found("Service", names.AGENTS_SERVICE)["metadata"]
    assert set(service_names(service["name"], service["namespace"])) <= set(endpoint_names(service["namespace"]))


def test_the_controller_may_write_the_keys_of_permits_and_no_other_secret() -> None:
    pages = yaml.safe_load_all((REPOSITORY / AGENTS_RIGHTS).read_text())
    (role,) = [each for each in pages if each["kind"] == "Role"]
    assert [(rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]] == [
        (["secrets"], ["create"], None),
        (["secrets"], ["get", "update"], [names.PERMIT_KEYS]),
    ]
    policy = found("ValidatingAdmissionPolicy", "reconciler-secrets")["spec"]
    for operation in ("CREATE", "UPDATE"):
        (allowed,) = [each["expression"] for each in policy["validations"] if f'"{operation}"' in each["expression"]]
        assert f'object.metadata.name == "{names.PERMIT_KEYS}"' in allowed
