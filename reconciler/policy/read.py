"""A tree becomes the struct of its kind, or Problems: all of them, each where it stands.

`spec_schema` checks what a schema can say; here values become those of the struct, and the rest is found on the way: a
quantity or duration finer or longer than can be held, and items of a list that cannot be told apart.
"""

from typing import Any, cast

from reconciler.model.problem import Problem
from reconciler.policy.limits import MOST_PROBLEMS
from reconciler.policy.shape import ListOf, MapOf, Measured, Object, Shape
from reconciler.policy.spec_schema import check_spec, measure_problem
from reconciler.policy.tree import Mapping, Mark, Node, Path, Scalar, Sequence, plain, problem, written

# Stands for a value that could not be read; its problem has been told.
_INVALID = object()


def read_spec(shape: Object, node: Node | None, at: Mark) -> tuple[Any | None, list[Problem]]:
    """The struct of a spec. `at` is where to point when all of it is missing."""
    whole = node if node is not None else Mapping({}, at)
    checked = check_spec(shape, whole, ("spec",))
    reader = _SpecReader(checked.problems, checked.unreadable)
    value = reader.value(shape, whole, ("spec",))
    return (None if reader.problems or reader.doubtful else value), reader.problems


class _SpecReader:
    """Owner of the problems found in one spec."""

    def __init__(self, problems: list[Problem], unreadable: set[Path]) -> None:
        self.problems = problems
        self.doubtful = False
        self._unreadable = unreadable

    @property
    def _has_enough(self) -> bool:
        """So many problems that no further one is looked for."""
        return len(self.problems) > MOST_PROBLEMS

    def value(self, shape: Shape, node: Node, path: Path) -> Any:
        if self._has_enough or path in self._unreadable:
            return _INVALID
        match shape, node:
            case Object(), Mapping():
                return self._object(shape, node, path)
            case ListOf(), Sequence():
                return self._list(shape, node, path)
            case MapOf(), Mapping():
                return {name: self.value(shape.value, each.value, (*path, name)) for name, each in node.entries.items()}
            case _, Scalar():
                return self._leaf(shape, node, path)
        raise TypeError(f"{written(path)} was not checked against its schema")

    def _object(self, shape: Object, node: Mapping, path: Path) -> Any:
        values: dict[str, Any] = {}
        for field in shape.fields:
            given = node.get(field.name)
            if given is not None and not (isinstance(given, Scalar) and given.value is None):
                values[field.attribute] = self.value(field.shape, given, (*path, field.name))
        return _INVALID if self.problems or self.doubtful else shape.type(**values)

    def _list(self, shape: ListOf, node: Sequence, path: Path) -> Any:
        if shape.merge_key:
            self._check_distinct(shape.merge_key, node, path)
        return [self.value(shape.item, item, (*path, number)) for number, item in enumerate(node.items)]

    def _check_distinct(self, names: tuple[str, ...], node: Sequence, path: Path) -> None:
        seen: dict[str, int] = {}
        for number, item in enumerate(node.items):
            if not isinstance(item, Mapping) or self._has_enough:
                continue
            text = ", ".join(f"{name} {plain(cast('Node', item.get(name)))}" for name in names if item.get(name))
            if text in seen:
                at = written((*path, number))
                sentence = f"{at} has the same {text} as item {seen[text] + 1}"
                self.problems.append(problem(item.at, "RC108", sentence, "take one of them out", at))
            seen.setdefault(text, number)

    def _leaf(self, shape: Shape, node: Scalar, path: Path) -> Any:
        if node.doubtful:
            self.doubtful = True
            return _INVALID
        if not isinstance(shape, Measured) or node.value in shape.words:
            return node.value
        try:
            return shape.measure.parse(node.text)
        except ValueError:
            self.problems.append(measure_problem(shape, node, path))
            return _INVALID
