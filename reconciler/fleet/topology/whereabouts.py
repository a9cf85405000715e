"""Owner of how many pods of each class are on which row, found by what they are labelled."""

from collections.abc import Iterator

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.topology.index import telling
from reconciler.fleet.topology.matcher import Matcher


class PodLocations:
    """Rows by class, and classes by label."""

    def __init__(self) -> None:
        self._places: list[dict[int, int]] = []
        self.classes: list[PodClass] = []
        self._by_label: dict[tuple[str, str], list[PodClass]] = {}

    def learn(self, pod_class: PodClass) -> None:
        """A class that is new; they come in the order of their numbers."""
        self._places.append({})
        self.classes.append(pod_class)
        for label in pod_class.labels.items():
            self._by_label.setdefault(label, []).append(pod_class)

    def book(self, number: int, row: int, count: int) -> None:
        """More pods on a row; fewer if the count is below 0."""
        places = self._places[number]
        now = places.get(row, 0) + count
        if now:
            places[row] = now
        else:
            del places[row]

    def of(self, pod_class: PodClass) -> dict[int, int]:
        """How many there are on each row that has some. Not to be changed."""
        return self._places[pod_class.number]

    def candidates(self, matchers: tuple[Matcher, ...]) -> Iterator[PodClass]:
        """The classes that a term might mean: few, where it names the values of a label."""
        requirement = telling(matchers)
        if requirement is None:
            yield from self.classes
            return
        for value in requirement.values:
            yield from self._by_label.get((requirement.key, value), ())
