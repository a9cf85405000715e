"""Node selector terms and tolerations: which nodes a pod selects, and which taints a pod tolerates."""

import re
from collections.abc import Iterable

from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import NodeExpression, NodeTerm, Toleration

# --- Node selector terms on a node's labels and name; term_masks.py evaluates a term on all rows at once.
#
# An empty term matches nothing, nor does a term that the scheduler cannot parse: an unknown operator, no value for In,
# a non-integer for Gt or Lt.

_WHOLE = re.compile(r"[+-]?[0-9]+")
_LONGEST = 256  # characters of a number: Go accepts leading zeros


def readable(term: NodeTerm) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields_are = all(each.operator in {"In", "NotIn"} and len(each.values) == 1 for each in term.match_fields)
    return fields_are and all(_expression_is_readable(each) for each in term.match_expressions)


def _expression_is_readable(expression: NodeExpression) -> bool:
    match expression.operator:
        case "In" | "NotIn":
            return bool(expression.values)
        case "Exists" | "DoesNotExist":
            return not expression.values
        case "Gt" | "Lt":
            return len(expression.values) == 1 and _number(expression.values[0]) is not None
    return False


def term_holds(term: NodeTerm, node: Node) -> bool:
    labels = node.metadata.labels
    return all(expression_holds(each, labels.get(each.key)) for each in term.match_expressions) and all(
        expression_holds(each, node.name if each.key == "metadata.name" else "") for each in term.match_fields
    )


def expression_holds(expression: NodeExpression, value: str | None) -> bool:
    """Whether a label value satisfies the expression; None: the label is absent."""
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    has, than = _number(value), _number(expression.values[0])
    if has is None or than is None:
        return False
    return has > than if expression.operator == "Gt" else has < than


def _number(text: str | None) -> int | None:
    """As Go's ParseInt: a 64-bit integer."""
    if text is None or len(text) > _LONGEST or not _WHOLE.fullmatch(text):
        return None
    found = int(text)
    return found if -(2**63) <= found < 2**63 else None


# --- Tolerations indexed by key, effect and value: a pod may have many.


class Tolerance:
    """The tolerations of a pod, indexed."""

    __slots__ = ("_any_value", "_one_value")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        """The operators Gt and Lt match nothing: their feature gate is off by default in Kubernetes 1.36."""
        self._any_value: set[tuple[str, str]] = set()  # key and effect; an empty one matches all
        self._one_value: set[tuple[str, str, str]] = set()  # key, effect and value
        for each in tolerations:
            if each.operator in {"", "Equal"}:
                self._one_value.add((each.key, each.effect, each.value))
            elif each.operator == "Exists":
                self._any_value.add((each.key, each.effect))

    def bears(self, taint: NodeTaint) -> bool:
        """Whether a toleration matches the taint."""
        key, effect, value, any_value, one_value = (
            taint.key,
            taint.effect,
            taint.value,
            self._any_value,
            self._one_value,
        )
        if any_value and (
            (key, effect) in any_value or (key, "") in any_value or ("", effect) in any_value or ("", "") in any_value
        ):
            return True
        return bool(one_value) and (
            (key, effect, value) in one_value
            or (key, "", value) in one_value
            or ("", effect, value) in one_value
            or ("", "", value) in one_value
        )
