"""Node selector terms evaluated on all rows at once; node_terms.py evaluates a term on one node, without numpy."""

import numpy as np

from reconciler.fleet.node_terms import expression_holds
from reconciler.fleet.rows import ABSENT, NEVER, Mask, NodeRows
from reconciler.model.cluster.pod import NodeExpression, NodeTerm


def term_mask(term: NodeTerm, rows: NodeRows) -> Mask:
    mask: Mask = np.ones(rows.capacity, bool)
    for each in term.match_expressions:
        if rows.has_label(each.key):
            mask &= _expression_mask(each, rows)
        elif not expression_holds(each, None):  # no node has the label: all nodes are alike
            mask[:] = False
            return mask
    for each in term.match_fields:
        named: Mask = np.zeros(rows.capacity, bool)
        row = rows.row_of.get(each.values[0]) if each.key == "metadata.name" else None
        if row is not None:
            named[row] = True
        mask &= named if each.operator == "In" else ~named
    return mask


def _expression_mask(expression: NodeExpression, rows: NodeRows) -> Mask:
    column = rows.column(expression.key)
    if expression.operator in {"Exists", "DoesNotExist"}:
        there: Mask = column != ABSENT
        return there if expression.operator == "Exists" else ~there
    if expression.operator in {"In", "NotIn"}:
        numbers = [number for value in expression.values if (number := rows.value_id(expression.key, value)) != NEVER]
        among: Mask = column == numbers[0] if len(numbers) == 1 else np.isin(column, numbers)
        return among if expression.operator == "In" else ~among
    known = rows.values(expression.key)
    holds = np.array(
        [expression_holds(expression, value) for value in known] + [expression_holds(expression, None)], bool
    )
    mask: Mask = holds[column]  # absent is -1, the last element
    return mask
