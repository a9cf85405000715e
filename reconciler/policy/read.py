"""A tree becomes the struct of its kind, or Problems: all of them, each where it stands."""

import re
from functools import cache
from typing import Any, cast

from reconciler.model.fields import Within
from reconciler.model.problem import Problem
from reconciler.model.quantity import OutOfRange
from reconciler.policy.advice import advice, measure_advice
from reconciler.policy.bounds import bounded
from reconciler.policy.limits import MOST_PROBLEMS
from reconciler.policy.shape import Choice, Flag, ListOf, MapOf, Measured, Object, Shape, Whole, Words
from reconciler.policy.tree import Mapping, Mark, Node, Path, Scalar, Sequence, plain, problem, what, written
from reconciler.policy.words import did_you_mean, expected, how_many, meant

# Stands for a value that could not be read; its problem has been told.
_WRONG = object()


def read_spec(shape: Object, node: Node | None, at: Mark) -> tuple[Any | None, list[Problem]]:
    """The struct of a spec. `at` is where to point when all of it is missing."""
    reader = _Reader()
    whole = reader.value(shape, node if node is not None else Mapping({}, at), ("spec",))
    return (None if reader.problems or reader.doubtful else whole), reader.problems


class _Reader:
    """Owner of the problems found in one spec."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.doubtful = False

    @property
    def _has_enough(self) -> bool:
        """So many problems that no further one is looked for."""
        return len(self.problems) > MOST_PROBLEMS

    def value(self, shape: Shape, node: Node, path: Path) -> Any:
        if self._has_enough:
            return _WRONG
        match shape:
            case Object():
                return self._object(shape, node, path)
            case ListOf():
                return self._list(shape, node, path)
            case MapOf():
                return self._map(shape, node, path)
            case _:
                return self._leaf(shape, node, path)

    def _object(self, shape: Object, node: Node, path: Path) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong_type(shape, node, path)
        names = [field.name for field in shape.fields]
        for name, entry in node.entries.items():
            if name not in names and not self._has_enough:
                told = f'unknown key "{name}"{did_you_mean(name, names)}'
                remedy = "" if meant(name, names) else "take it out"
                self.problems.append(problem(entry.key.at, "RC107", told, remedy))
        values: dict[str, Any] = {}
        for field in shape.fields:
            given = node.get(field.name)
            if given is None or (isinstance(given, Scalar) and given.value is None):
                if field.required:
                    told = f"{written((*path, field.name))} is missing: {_within_a_sentence(field.sentence)}"
                    self.problems.append(problem(node.at, "RC104", told, f"add {field.name}"))
            else:
                values[field.attribute] = self.value(field.shape, given, (*path, field.name))
        return _WRONG if self.problems or self.doubtful else shape.type(**values)

    def _list(self, shape: ListOf, node: Node, path: Path) -> Any:
        if not isinstance(node, Sequence):
            return self._wrong_type(shape, node, path)
        self._counted(bounded(shape), node, len(node.items), path)
        if shape.merge_key:
            self._told_apart(shape.merge_key, node, path)
        return [self.value(shape.item, item, (*path, number)) for number, item in enumerate(node.items)]

    def _told_apart(self, names: tuple[str, ...], node: Sequence, path: Path) -> None:
        seen: dict[str, int] = {}
        for number, item in enumerate(node.items):
            if not isinstance(item, Mapping) or self._has_enough:
                continue
            told = ", ".join(f"{name} {plain(cast('Node', item.get(name)))}" for name in names if item.get(name))
            if told in seen:
                sentence = f"{written((*path, number))} has the same {told} as item {seen[told] + 1}"
                self.problems.append(problem(item.at, "RC108", sentence, "take one of them out"))
            seen.setdefault(told, number)

    def _map(self, shape: MapOf, node: Node, path: Path) -> Any:
        if not isinstance(node, Mapping):
            return self._wrong_type(shape, node, path)
        self._counted(bounded(shape), node, len(node.entries), path)
        values = {}
        for name, entry in node.entries.items():
            if self._has_enough:
                break
            if isinstance(shape.key, Choice):
                if name not in shape.key.values:
                    told = f'unknown key "{name}": expected {expected(shape.key)}{did_you_mean(name, shape.key.values)}'
                    self.problems.append(problem(entry.key.at, "RC107", told))
            elif not _pattern(shape.key.pattern).fullmatch(name):
                told = f'{written(path)}: expected {shape.key.words}, got "{name}"'
                self.problems.append(problem(entry.key.at, "RC106", told))
            values[name] = self.value(shape.value, entry.value, (*path, name))
        return values

    def _leaf(self, shape: Whole | Flag | Words | Choice | Measured, node: Node, path: Path) -> Any:
        if not isinstance(node, Scalar):
            return self._wrong_type(shape, node, path)
        if node.doubtful:
            self.doubtful = True
            return _WRONG
        match shape, node.value:
            case Flag(), bool():
                return node.value
            case Whole(), int() if not isinstance(node.value, bool):
                return self._integer(shape, node, path)
            case Words(), str():
                return self._text(shape, node, path)
            case Choice(values=values), str():
                return node.value if node.value in values else self._no_choice(shape, node, path)
            case Measured(words=words), str() if node.value in words:
                return node.value
            case Measured(), _ if self._may_measure(shape, node):
                return self._measure(shape, node, path)
        return self._wrong_type(shape, node, path)

    def _integer(self, shape: Whole, node: Scalar, path: Path) -> Any:
        least, most = shape.within.least, shape.within.most
        value = cast("int", node.value)
        if (least is not None and value < least) or (most is not None and value > most):
            told = f"{written(path)}: expected {expected(shape)}, got {node.text}"
            nearest = least if least is not None and value < least else most
            self.problems.append(problem(node.at, "RC105", told, f"the nearest is {nearest}"))
        return value

    def _text(self, shape: Words, node: Scalar, path: Path) -> Any:
        value = cast("str", node.value)
        self._counted(bounded(shape), node, len(value), path)
        if shape.shaped and not _pattern(shape.shaped.pattern).fullmatch(value):
            told = f"{written(path)}: expected {shape.shaped.words}, got {what(node)}"
            lower = value.lower()
            remedy = f"write {lower}" if _pattern(shape.shaped.pattern).fullmatch(lower) else ""
            self.problems.append(problem(node.at, "RC106", told, remedy))
        return value

    def _no_choice(self, shape: Choice, node: Scalar, path: Path) -> Any:
        close = meant(node.text, shape.values)
        told = f"{written(path)}: expected {expected(shape)}, got {what(node)}"
        self.problems.append(problem(node.at, "RC106", told, f"write {close}" if close else ""))
        return _WRONG

    def _may_measure(self, shape: Measured, node: Scalar) -> bool:
        """Quantities may be written as numbers; money never, since its cents would pass through a float somewhere."""
        if isinstance(node.value, str):
            return True
        return shape.measure.__name__ == "Quantity" and type(node.value) in {int, float}

    def _measure(self, shape: Measured, node: Scalar, path: Path) -> Any:
        try:
            return shape.measure.parse(node.text)
        except ValueError as wrong:
            told = f"{node.text} {wrong}"
            if not isinstance(wrong, OutOfRange):
                told = f"expected {expected(shape)}, got {what(node)}"
            self.problems.append(
                problem(node.at, "RC106", f"{written(path)}: {told}", measure_advice(shape, node.text))
            )
            return _WRONG

    def _wrong_type(self, shape: Shape, node: Node, path: Path) -> Any:
        told = f"{written(path)}: expected {expected(shape)}, got {what(node)}"
        self.problems.append(problem(node.at, "RC103", told, advice(shape, node, path)))
        return _WRONG

    def _counted(self, within: Within, node: Node, count: int, path: Path) -> None:
        """Lists, maps and texts may be short or long."""
        unit = {Sequence: "item", Mapping: "entry", Scalar: "character"}[type(node)]
        if (within.least is not None and count < within.least) or (within.most is not None and count > within.most):
            told = f"{written(path)}: expected {how_many(within, unit)}, got {count}"
            self.problems.append(problem(node.at, "RC105", told))


def _within_a_sentence(sentence: str) -> str:
    """Without a capital at its beginning, unless that is of an acronym, and without the full stop."""
    first = sentence[0] if sentence[1:2].isupper() else sentence[0].lower()
    return f"{first}{sentence[1:-1]}"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
