"""Owner of what finds the few terms that may mean a pod without trying all of them, by a label that they must have."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from reconciler.fleet.topology.matcher import LabelRequirement, Matcher

T = TypeVar("T")


def telling(matchers: Iterable[Matcher]) -> LabelRequirement | None:
    """A requirement that only few pods meet: one that names the values of a label."""
    found = (each for matcher in matchers for each in matcher.of_labels or () if each.operator == "In")
    return min(found, key=lambda each: len(each.values), default=None)


class Index(Generic[T]):
    """Things by a label and value that they need, and those that need none."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[T]] = {}
        self._others: list[T] = []

    def add(self, matchers: tuple[Matcher, ...], thing: T) -> None:
        requirement = telling(matchers)
        if requirement is None:
            self._others.append(thing)
            return
        for value in requirement.values:
            self._by_label.setdefault((requirement.key, value), []).append(thing)

    def candidates(self, labels: dict[str, str]) -> Iterator[T]:
        """Each at most once, in the order that they came in for one set of labels."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())
