"""The admission policies of the controller as manifests: one a kind that it writes, and one against all others.

RBAC stays as it is: the policies take away from what roles grant, and grant nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import yaml

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.right import Right
from reconciler.schema.admission.expressions import CREATE, DELETE, UPDATE, allowed, operations, variables
from reconciler.schema.admission.shapes import TRUE, literal
from reconciler.schema.rights.writing import writing_rights

_API = "admissionregistration.k8s.io/v1"
_POLICY = "ValidatingAdmissionPolicy"
_CHANGES = (CREATE, UPDATE, DELETE)
_HEAD = "What the account of the controller may write of what its roles let it write, and nothing of any other kind."


class Account(msgspec.Struct, frozen=True):
    """Whom the policies limit, and what their names begin with."""

    namespace: str = names.OWN_NAMESPACE
    name: str = names.SERVICE_ACCOUNT

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def admission_page(wishes: Sequence[Desired], namespace: str = names.OWN_NAMESPACE) -> str:
    """For the policies of all these environments; without any, for whatever policies there may be."""
    manifests = admission_policies(writing_rights(wishes, namespace), Account(namespace))
    return f"# {_HEAD}\n" + "---\n".join(_yaml(each) for each in manifests)


def admission_policies(rights: Sequence[Right], account: Account) -> list[dict[str, Any]]:
    """Each policy with its binding."""
    by_resource: dict[tuple[str, str], list[Right]] = defaultdict(list)
    for right in rights:
        for resource in right.resources:
            by_resource[right.group, resource].append(right)
    found = [_nothing_else(account, sorted(by_resource))]
    for (group, resource), granted in sorted(by_resource.items()):
        if any(right.limits for right in granted):
            found.append(_of_resource(account, group, resource, granted))
    return [each for policy in found for each in (policy, _binding(policy["metadata"]["name"]))]


def _of_resource(account: Account, group: str, resource: str, granted: list[Right]) -> dict[str, Any]:
    limits = [right.limits for right in granted if right.limits]
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": list(_CHANGES), "resources": [resource]}
    return _policy(
        account,
        f"{account.name}-{resource}",
        rule,
        variables=[{"name": name, "expression": expression} for name, expression in variables(limits).items()],
        validations=[each for operation in _CHANGES for each in _validations(resource, operation, granted)],
    )


def _validations(resource: str, operation: str, granted: list[Right]) -> Iterator[dict[str, str]]:
    """Where several rights are for an operation, any of them is enough."""
    meant = [right for right in granted if operation in operations(right.verbs)]
    ways: list[list[str]] = []
    for right in meant:
        if (way := _way(right, operation)) not in ways:
            ways.append(way)
    text = "; or ".join(sorted({right.limits.sentence for right in meant if right.limits}))
    message = f"the account of the controller may only {text}"
    if not ways:
        message = f"the account of the controller may not {operation.lower()} {resource}"
        yield _validation(f"request.operation != {literal(operation)}", message)
    elif len(ways) == 1:
        for each in ways[0]:
            if each != TRUE:
                yield _validation(f"request.operation != {literal(operation)} || ({each})", message)
    elif [TRUE] not in ways:
        either = " || ".join(f"({' && '.join(f'({each})' for each in way)})" for way in ways)
        yield _validation(f"request.operation != {literal(operation)} || {either}", message)


def _way(right: Right, operation: str) -> list[str]:
    lines = [f"request.namespace == {literal(right.namespace)}"] if right.namespace else []
    return lines + (allowed(right.limits, operation) if right.limits else []) or [TRUE]


def _validation(expression: str, message: str) -> dict[str, str]:
    return {"expression": expression, "message": message}


def _nothing_else(account: Account, resources: list[tuple[str, str]]) -> dict[str, Any]:
    """Whatever roles the account is bound to by mistake: pods/exec and tokens of other accounts are writes too."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
    known = [f"{group}/{resource}" for group, resource in resources]
    requested = (
        "request.resource.group + '/' + request.resource.resource "
        "+ (has(request.subResource) && request.subResource != '' ? '/' + request.subResource : '')"
    )
    message = "the account of the controller may not write objects of this kind"
    return _policy(
        account,
        f"{account.name}-nothing-else",
        rule,
        variables=[{"name": "asked", "expression": requested}],
        validations=[_validation(f"variables.asked in {literal(known)}", message)],
    )


def _policy(
    account: Account, name: str, rule: dict[str, Any], variables: list[Any], validations: list[Any]
) -> dict[str, Any]:
    return {
        "apiVersion": _API,
        "kind": _POLICY,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [
                {"name": "is-the-controller", "expression": f"request.userInfo.username == {literal(account.user)}"}
            ],
            "variables": variables,
            "validations": validations,
        },
    }


def _binding(policy: str) -> dict[str, Any]:
    spec = {"policyName": policy, "validationActions": ["Deny"]}
    return {"apiVersion": _API, "kind": f"{_POLICY}Binding", "metadata": {"name": policy}, "spec": spec}


def _yaml(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, default_flow_style=False, sort_keys=False, width=120)
