"""Who acts in the lab besides its admin: the reconciler, a node's agent and a tenant, each with its own rights."""

import base64
import json
from typing import Any

import yaml

from reconciler.model import names
from tests.lab.api import Api, Credential, Manifest
from tests.lab.places import REPOSITORY

NAMESPACE = names.OWN_NAMESPACE
TENANT_NAMESPACE = "team-a"
# Namespaces and the reconciler's rights are read from what it ships, so that a test that passes here passes with those.
SHIPPED = (
    REPOSITORY / "deploy" / "observe" / "namespace.yaml",
    REPOSITORY / "deploy" / "core" / "smart_pods.yaml",
    REPOSITORY / "deploy" / "agents" / "namespace.yaml",
    REPOSITORY / "deploy" / "observe" / "rbac.yaml",
)
NAMESPACES = (names.OWN_NAMESPACE, names.LEASES_NAMESPACE, names.SMART_PODS_NAMESPACE, names.AGENTS_NAMESPACE)

RECONCILER = f"system:serviceaccount:{NAMESPACE}:reconciler"
AGENT = f"system:serviceaccount:{names.AGENTS_NAMESPACE}:reconciler-agent"
SECOND_SCHEDULER = f"system:serviceaccount:{NAMESPACE}:{names.GPU_SCHEDULER}"
TENANT = f"system:serviceaccount:{TENANT_NAMESPACE}:tenant"


def establish(admin: Api) -> None:
    """Makes the namespaces, accounts and rights; the same again changes nothing."""
    components = _binding("lab-components", "cluster-admin", {"kind": "Group", "name": "lab:components"})
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT_NAMESPACE}})
    shipped = [each for file in SHIPPED for each in yaml.safe_load_all(file.read_text()) if each]
    for manifest in [components, *shipped, _account(AGENT), _account(TENANT), *_tenant_rights()]:
        admin.apply(manifest)


def reconciler(admin: Api) -> Api:
    """The program under test: only the rights that its own manifests grant."""
    return _as_account(admin, RECONCILER)


def second_scheduler(admin: Api) -> Api:
    """The account of deploy/scheduler, which must be there."""
    return _as_account(admin, SECOND_SCHEDULER)


def agent(admin: Api, node: str) -> Api:
    """The agent of one node: its token is bound to that Node object and says so."""
    found = admin.get("nodes", node)
    assert found, f"an agent needs its node: there is no {node}"
    bound = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": found["metadata"]["uid"]}
    return _as_account(admin, AGENT, {"boundObjectRef": bound})


def tenant(admin: Api) -> Api:
    """Somebody who runs pods in a namespace of their own."""
    return _as_account(admin, TENANT)


def claims_of(api: Api) -> dict[str, Any]:
    """What a token says of its bearer, for tests to look at."""
    body = api.credential.token.split(".")[1]
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return decoded


def _as_account(admin: Api, user: str, wish: Manifest | None = None) -> Api:
    namespace, name = _parts(user)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 36_000, **(wish or {})},
    }
    answer = admin.must("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
    return Api(admin.url, admin.authority, Credential(token=answer["status"]["token"]))


def _parts(user: str) -> tuple[str, str]:
    _, _, namespace, name = user.split(":")
    return namespace, name


def _account(user: str) -> Manifest:
    namespace, name = _parts(user)
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": namespace, "name": name}}


def _binding(name: str, role: str, subject: Manifest) -> Manifest:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject}],
    }


def _tenant_rights() -> list[Manifest]:
    """Kubernetes' own `edit` role, in one namespace."""
    namespace, name = _parts(TENANT)
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }
    ]
