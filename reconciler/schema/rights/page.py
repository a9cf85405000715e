"""Rights as manifests: roles with a comment for each rule, and their bindings; output is stable."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.right import Right
from reconciler.schema.rights.rules import (
    PEOPLE,
    agents_rights,
    extender_rights,
    reading_rights,
    webhook_rights,
    writing_rights,
)

_ACCOUNT = "reconciler"
_RBAC = "rbac.authorization.k8s.io"
_WIDTH = 110
_LOOKS = "Read-only rights of reconciler: enough to plan and to explain, without changes to a cluster."
_SERVES = "Rights of reconciler for the admission webhook, in addition to the others."
_SCHEDULES = "Rights of reconciler for the scheduler extender, in addition to the others and to those of the webhook."
_ANSWERS = (
    "Rights of reconciler to answer agents of elastic pods, in addition to the others and to those of the webhook."
)
_WRITES = "Rights of reconciler to write, in addition to its read-only rights."


class Role(msgspec.Struct, frozen=True):
    name: str
    rights: tuple[Right, ...]
    namespace: str
    account_namespace: str

    @property
    def kind(self) -> str:
        return "Role" if self.namespace else "ClusterRole"

    @property
    def metadata(self) -> dict[str, str]:
        return {"name": self.name} | ({"namespace": self.namespace} if self.namespace else {})


def reading_page(wishes: Sequence[Desired], namespace: str = names.OWN_NAMESPACE) -> str:
    """The account and its read-only rights for the policies of these environments; without environments, for any
    policies."""
    account = _yaml({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _account(namespace)})
    roles = _roles("reconciler-observe", reading_rights(wishes, namespace), namespace)
    return _page(_LOOKS, [account, *(text for role in roles for text in _documents(role))])


def writing_page(wishes: Sequence[Desired], namespace: str = names.OWN_NAMESPACE, resources: bool | None = None) -> str:
    """Rights of the same account to write; `resources`: whether the policies are custom resources."""
    roles = _roles("reconciler-enforce", writing_rights(wishes, namespace, resources), namespace)
    return _page(_WRITES, [text for role in roles for text in _documents(role)])


def webhook_page(namespace: str = names.OWN_NAMESPACE) -> str:
    """Rights of the same account for the admission webhook."""
    roles = _roles("reconciler-webhook", webhook_rights(namespace), namespace)
    return _page(_SERVES, [text for role in roles for text in _documents(role)])


def extender_page(namespace: str = names.OWN_NAMESPACE) -> str:
    """Rights of the same account for the scheduler extender."""
    roles = _roles("reconciler-extender", extender_rights(namespace), namespace)
    return _page(_SCHEDULES, [text for role in roles for text in _documents(role)])


def agents_page(namespace: str = names.OWN_NAMESPACE) -> str:
    """Rights of the same account to answer agents of elastic pods."""
    roles = _roles("reconciler-agents", agents_rights(namespace), namespace)
    return _page(_ANSWERS, [text for role in roles for text in _documents(role)])


def person_page(person: str, namespace: str = names.OWN_NAMESPACE) -> str:
    """Roles for people; the cluster's owners bind them."""
    found = PEOPLE[person]
    roles = _roles(f"reconciler-{person}", found.rights(namespace), namespace)
    return _page(f"{found.sentence} Bind it to people you trust with these rights.", [_role(role) for role in roles])


def _page(sentence: str, documents: Sequence[str]) -> str:
    return f"# {sentence}\n" + "---\n".join(documents)


def _roles(name: str, rights: Sequence[Right], account_namespace: str) -> Iterator[Role]:
    """One role per namespace, preceded by the role for the whole cluster."""
    for namespace in sorted({right.namespace for right in rights}):
        there = tuple(right for right in rights if right.namespace == namespace)
        yield Role(name, there, namespace, account_namespace)


def _role(role: Role) -> str:
    head = {"apiVersion": f"{_RBAC}/v1", "kind": role.kind, "metadata": role.metadata}
    return _yaml(head) + "rules:\n" + "".join(_rule(right) for right in role.rights)


def _documents(role: Role) -> Iterator[str]:
    yield _role(role)
    yield _yaml(
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": f"{role.kind}Binding",
            "metadata": role.metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": role.kind, "name": role.name},
            "subjects": [{"kind": "ServiceAccount", **_account(role.account_namespace)}],
        }
    )


def _account(namespace: str) -> dict[str, str]:
    return {"name": _ACCOUNT, "namespace": namespace}


def _rule(right: Right) -> str:
    rule = {"apiGroups": [right.group], "resources": list(right.resources), "verbs": list(right.verbs)}
    if right.names:
        rule["resourceNames"] = list(right.names)
    comment = "".join(f"  # {line}\n" for line in textwrap.wrap(right.why, _WIDTH, break_on_hyphens=False))
    return comment + textwrap.indent(_yaml(rule), "    ").replace("    ", "  - ", 1)


def _yaml(data: dict[str, Any]) -> str:
    """YAML with flat values on one line."""
    return yaml.safe_dump(data, default_flow_style=None, sort_keys=False, width=120)
