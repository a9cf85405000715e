"""The admission policy that limits the controller's account to its rights, generated from the rights."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.manifest_rules import (
    Fields,
    Including,
    ListOf,
    ManifestField,
    Number,
    OneOf,
    RestrictedText,
    Shape,
    TextMap,
)
from reconciler.model.right import Changes, Right, RightLimits
from reconciler.schema.rights.rules import agents_rights, extender_rights, webhook_rights, writing_rights

# --- Limits of a right as CEL expressions, one list per operation; all in a list must hold.
#
# Theory of operation. An object is compared field by field with its previous state, except for the fields that may
# change. So fields added by a later Kubernetes version must not change either.

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
_VERBS: Mapping[str, str] = {"create": CREATE, "update": UPDATE, "patch": UPDATE, "delete": DELETE}

# Fields that the API server updates with each change.
_BOOKKEEPING = ("managedFields", "resourceVersion", "generation")
_NO_EVICTION = ("NoSchedule", "PreferNoSchedule")


def _of_both(field: str, empty: str, name: str, old_name: str) -> Mapping[str, str]:
    """Variables for a map or list of the object and of its previous state, which is omitted if empty."""
    return {
        variable: f"{state} != null && has({state}.{field}) ? dyn({state}.{field}) : dyn({empty})"
        for variable, state in ((name, "object"), (old_name, "oldObject"))
    }


VARIABLES = {
    **_of_both("metadata.labels", "{}", "labels", "oldLabels"),
    **_of_both("metadata.annotations", "{}", "annotations", "oldAnnotations"),
}
TAINTS = _of_both("spec.taints", "[]", "taints", "oldTaints")
GATES = _of_both("spec.schedulingGates", "[]", "gates", "oldGates")


def operations(verbs: tuple[str, ...]) -> tuple[str, ...]:
    """Operations of the API server for verbs that write; patching an absent object creates it."""
    return tuple(sorted({_VERBS[each] for each in verbs if each in _VERBS}))


def variables(limits: list[RightLimits]) -> dict[str, str]:
    """Variables used in the expressions of these limits."""
    changes = [each.changes for each in limits if each.changes]
    taints = TAINTS if any(each.taints for each in changes) else {}
    gates = GATES if any(each.gates for each in changes) else {}
    return {**VARIABLES, **taints, **gates}


def allowed(limits: RightLimits, operation: str) -> list[str]:
    """Conditions for a write of an object."""
    names = [_named(limits, operation), *_labelled(limits, operation), *_with_fields(limits, operation)]
    if operation == CREATE and limits.made_as:
        names += _shaped(limits.made_as)
    if operation != DELETE and limits.keeps_as:
        names += _shaped(limits.keeps_as)
    if operation == UPDATE and limits.changes:
        names += _unchanged(limits.changes)
    return [each for each in names if each != TRUE] or [TRUE]


def _named(limits: RightLimits, operation: str) -> str:
    name = "oldObject.metadata.name" if operation == DELETE else "object.metadata.name"
    ways = [
        f"{name}.startsWith({literal(each)})" if each.endswith("-") else f"{name} == {literal(each)}"
        for each in limits.names
    ]
    return " || ".join(ways) or TRUE


def _labelled(limits: RightLimits, operation: str) -> list[str]:
    sides = {CREATE: ("labels",), DELETE: ("oldLabels",)}.get(operation, ("labels", "oldLabels"))
    if limits.adopts and operation == UPDATE:
        sides = ("labels",)
    names = [_label(side, key, value) for side in sides for key, value in limits.labels]
    if limits.any_label and operation != CREATE:
        names.append(" || ".join(f"{literal(key)} in variables.oldLabels" for key in limits.any_label))
    if limits.annotation and operation != CREATE:
        names.append(f"{literal(limits.annotation)} in variables.oldAnnotations")
    return names


def _label(side: str, key: str, value: str) -> str:
    of = f"variables.{side}"
    return f"{literal(key)} in {of} && {of}[{literal(key)}] == {literal(value)}"


def _with_fields(limits: RightLimits, operation: str) -> list[str]:
    sides = {CREATE: ("object",), DELETE: ("oldObject",)}.get(operation, ("object", "oldObject"))
    return [
        f"{'.'.join((side, *(str(step) for step in path)))} == {literal(value)}"
        for side in sides
        for path, value in limits.fields
    ]


def _shaped(shape: Fields) -> list[str]:
    """One expression per field of the two outermost levels: each has its own cost and its own line in the policy."""
    lines = []
    for entry in shape.entries:
        value = f"dyn(object)[{literal(entry.name)}]"
        if isinstance(entry.shape, Fields):
            names = [each.name for each in entry.shape.entries]
            lines.append(f"{value}.all(k, k in {literal(names)})")
            lines += [_field(value, each) for each in entry.shape.entries]
        else:
            lines.append(_field("dyn(object)", entry))
    return lines


def _field(owner: str, entry: ManifestField) -> str:
    there, matching = f"{literal(entry.name)} in {owner}", matches(entry.shape, f"{owner}[{literal(entry.name)}]", 1)
    if entry.required:
        return every([there, matching])
    return TRUE if matching == TRUE else f"!({there}) || ({matching})"


def _unchanged(changes: Changes) -> list[str]:
    spec = {"taints": changes.taints, "schedulingGates": changes.gates}
    metadata = [*_BOOKKEEPING, "labels", "annotations"]
    names = [
        _same("object", "oldObject", ["apiVersion", "kind", "metadata", "spec"]),
        _same("object.metadata", "oldObject.metadata", metadata),
        _same("object.spec", "oldObject.spec", [name for name, may_change in spec.items() if may_change]),
        *_same_texts("labels", "oldLabels", changes.labels, changes.kept_labels),
        *_same_texts("annotations", "oldAnnotations", changes.annotations, ()),
    ]
    if prefix := literal(changes.taints) if changes.taints else "":
        others = f"filter(t, !t.key.startsWith({prefix}))"
        names += [
            f"variables.taints.{others} == variables.oldTaints.{others}",
            f"variables.taints.all(t, t in variables.oldTaints || t.effect in {literal(list(_NO_EVICTION))})",
        ]
    if prefix := literal(changes.gates) if changes.gates else "":
        names += [
            "variables.gates.all(g, g in variables.oldGates)",
            f"variables.oldGates.all(g, g in variables.gates || g.name.startsWith({prefix}))",
        ]
    return names


def _same(new: str, old: str, left_out: list[str]) -> str:
    """All other fields are unchanged, including fields of later Kubernetes versions."""
    skipped = f"k in {literal(left_out)} || " if left_out else ""
    return (
        f"dyn({new}).all(k, {skipped}(k in dyn({old}) && dyn({new})[k] == dyn({old})[k])) "
        f"&& dyn({old}).all(k, {skipped}k in dyn({new}))"
    )


def _same_texts(new: str, old: str, keys: tuple[str, ...], kept: tuple[str, ...]) -> list[str]:
    """All other keys are unchanged."""
    ways = [f"k.startsWith({literal(key)})" if key.endswith("/") else f"k == {literal(key)}" for key in keys]
    may_change = f"({' || '.join(ways)})" if ways else "false"
    if kept:
        may_change = f"({may_change} && !(k in {literal(list(kept))}))"
    now, before = f"variables.{new}", f"variables.{old}"
    return [
        f"{now}.all(k, {may_change} || (k in {before} && {now}[k] == {before}[k]))",
        f"{before}.all(k, {may_change} || k in {now})",
    ]


# --- Admission policies of the controller as manifests: one per kind that it writes, and one for all other kinds.
#
# The policies restrict what RBAC roles grant, and grant nothing.

_API = "admissionregistration.k8s.io/v1"
_POLICY = "ValidatingAdmissionPolicy"
_CHANGES = (CREATE, UPDATE, DELETE)
_NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"  # a label that each namespace has
_HEAD = "Limits what the controller's account may write: only objects of these kinds, and only as stated here."


class Account(msgspec.Struct, frozen=True):
    """The account that the policies limit, and the prefix of their names."""

    namespace: str = names.OWN_NAMESPACE
    name: str = names.SERVICE_ACCOUNT

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def admission_page(wishes: Sequence[Desired], namespace: str = names.OWN_NAMESPACE) -> str:
    """The policies for all these environments; without environments, for any policies."""
    of_endpoints = (webhook_rights, extender_rights, agents_rights)
    rights = [*writing_rights(wishes, namespace), *(right for each in of_endpoints for right in each(namespace))]
    manifests = admission_policies(rights, Account(namespace))
    return f"# {_HEAD}\n" + "---\n".join(yaml.safe_dump(each, sort_keys=False, width=120) for each in manifests)


def admission_policies(rights: Sequence[Right], account: Account) -> list[dict[str, Any]]:
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
    constraints: dict[str, Any] = {"resourceRules": [_rule(group, [resource], list(_CHANGES))]}
    if unlimited := _unlimited_namespaces(granted):
        expressions = [{"key": _NAME_OF_NAMESPACE, "operator": "NotIn", "values": unlimited}]
        constraints["namespaceSelector"] = {"matchExpressions": expressions}
    return _policy(
        account,
        f"{account.name}-{resource.replace('/', '-')}",
        constraints,
        variables=[{"name": name, "expression": expression} for name, expression in variables(limits).items()],
        validations=[each for operation in _CHANGES for each in _validations(resource, operation, granted)],
    )


def _unlimited_namespaces(granted: list[Right]) -> list[str]:
    """The namespaces in which the account may do anything with objects of the kind. To have nothing to check there
    spares the API server time: it prepares the object for the expressions of each policy that matches.
    """
    unlimited = (right for right in granted if right.limits is None and right.namespace)
    return sorted({right.namespace for right in unlimited if set(operations(right.verbs)) >= set(_CHANGES)})


def _validations(resource: str, operation: str, granted: list[Right]) -> Iterator[dict[str, str]]:
    """Any one of several rights for an operation is sufficient."""
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
    """Denies other kinds, even if the account is bound to further roles by mistake: pods/exec and tokens of other
    accounts are writes too. Kinds with rights are excluded here, since this policy is the one that matches each write
    in the cluster, by whomever.
    """
    by_group: dict[str, list[str]] = defaultdict(list)
    for group, resource in resources:
        by_group[group].append(resource)
    constraints = {
        "resourceRules": [_rule("*", ["*/*"], ["*"])],
        "excludeResourceRules": [_rule(group, known, ["*"]) for group, known in by_group.items()],
    }
    message = "the account of the controller may not write objects of this kind"
    validations = [_validation("false", message)]
    return _policy(account, f"{account.name}-nothing-else", constraints, [], validations)


def _rule(group: str, resources: list[str], operations: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": resources}


def _policy(
    account: Account, name: str, constraints: dict[str, Any], variables: list[Any], validations: list[Any]
) -> dict[str, Any]:
    return {
        "apiVersion": _API,
        "kind": _POLICY,
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
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


# --- A shape as a CEL expression, for an object with defaults of the API server.
#
# Fields are read by index, not by selector, because `namespace` is a reserved word in CEL. `dyn()` prevents type checks
# against the types of Kubernetes, which cannot be iterated as maps.

TRUE = "true"


def literal(value: Any) -> str:
    """A text, number, boolean, or list of them; CEL literals are the same as in JSON."""
    return json.dumps(value)


def every(parts: list[str]) -> str:
    """Conjunction of the parts."""
    kept = [each for each in parts if each != TRUE]
    return " && ".join(kept) or TRUE


def matches(shape: Shape, value: str, depth: int = 0) -> str:
    """Whether an existing value matches the shape; the API server checks types."""
    match shape:
        case RestrictedText(refused=beginnings):
            return every([f"!{value}.startsWith({literal(each)})" for each in beginnings])
        case Number(least=least, most=most):
            bounds = [f"{value} >= {least}"] if least is not None else []
            return every(bounds + ([f"{value} <= {most}"] if most is not None else []))
        case OneOf(values=(only,)):
            return f"{value} == {literal(only)}"
        case OneOf(values=values):
            return f"{value} in {literal(list(values))}"
        case Including(value=wanted):
            return f"{literal(wanted)} in {value}"
        case TextMap(refused=beginnings) if beginnings:
            key = f"k{depth}"
            return f"{value}.all({key}, {every([f'!{key}.startsWith({literal(each)})' for each in beginnings])})"
        case ListOf(item=item):
            each = f"i{depth}"
            inner = matches(item, each, depth + 1)
            return f"size({value}) > 0" if inner == TRUE else f"size({value}) > 0 && {value}.all({each}, {inner})"
        case Fields():
            return _of_fields(shape, value, depth)
        case _:
            return TRUE


def _of_fields(shape: Fields, value: str, depth: int) -> str:
    key = f"k{depth}"
    names = [each.name for each in shape.entries]
    parts = [f"dyn({value}).all({key}, {key} in {literal(names)})"]
    for entry in shape.entries:
        there = f"{literal(entry.name)} in dyn({value})"
        inner = matches(entry.shape, f"dyn({value})[{literal(entry.name)}]", depth + 1)
        if entry.required:
            parts.append(there if inner == TRUE else f"{there} && {inner}")
        elif inner != TRUE:
            parts.append(f"(!({there}) || ({inner}))")
    return every(parts)
