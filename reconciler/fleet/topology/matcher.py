"""Whom a term means, in one canonical form: selectors that say the same in other words are equal and counted once."""

from typing import NamedTuple

from reconciler.fleet.topology.namespaces import Namespaces
from reconciler.model.cluster.metadata import LabelSelector

Labels = dict[str, str]


class LabelRequirement(NamedTuple):
    """A label compared with In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found in self.values
            case "NotIn":
                return found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
        return False

    def __str__(self) -> str:
        match self.operator:
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case "In" | "NotIn":
                return f"{self.key} {self.operator} ({', '.join(self.values)})"
        return f"{self.key} {self.operator}"


# Of a selector: None where it is absent and means nobody, none at all where it is empty and means everybody.
Requirements = tuple[LabelRequirement, ...] | None


def canonical(selector: LabelSelector | None) -> Requirements:
    """What a selector requires; labels that must be equal are written as In."""
    if selector is None:
        return None
    equal = {LabelRequirement(key, "In", (value,)) for key, value in selector.match_labels.items()}
    compared = {
        LabelRequirement(each.key, each.operator, tuple(sorted(set(each.values))))
        for each in selector.match_expressions
    }
    return tuple(sorted(equal | compared))


def all_hold(requirements: Requirements, labels: Labels) -> bool:
    return requirements is not None and all(each.holds(labels) for each in requirements)


class Matcher(NamedTuple):
    """Pods of some namespaces with some labels."""

    namespaces: tuple[str, ...]
    of_namespaces: Requirements  # of the labels of namespaces that are meant besides those named
    of_labels: Requirements

    def means(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a pod that looks for a node means a pod like this one.

        A selector of namespaces is unrolled into those that are there, unless it is empty: then all are meant. All are
        meant too by one that would mean a namespace without labels (DoesNotExist and NotIn alone): having unrolled it,
        the scheduler of 1.36 asks it again, and then of no labels at all.
        """
        if not all_hold(self.of_labels, labels):
            return False
        return all_hold(self.of_namespaces, {}) or self._names(namespace, namespaces.labels_of(namespace))

    def repels(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a pod that has its node means one like this that looks for one.

        A namespace that is not there counts as one without labels; where none could be read, all might be meant.
        """
        if self.of_namespaces and namespaces.unread:
            return all_hold(self.of_labels, labels)
        return self._names(namespace, namespaces.labels_of(namespace) or {}) and all_hold(self.of_labels, labels)

    @property
    def asks_namespaces(self) -> bool:
        """Whether the labels of namespaces decide whom it means."""
        return bool(self.of_namespaces)

    def _names(self, namespace: str, found: Labels | None) -> bool:
        if namespace in self.namespaces or self.of_namespaces == ():
            return True
        return found is not None and all_hold(self.of_namespaces, found)

    def __str__(self) -> str:
        if self.of_labels is None:
            return "nobody"
        meant = ", ".join(map(str, self.of_labels)) or "all pods"
        if self.of_namespaces is None:
            return f"{meant} in {', '.join(self.namespaces)}"
        where = [*self.namespaces, f"namespaces with {', '.join(map(str, self.of_namespaces)) or 'any labels'}"]
        return f"{meant} in {', '.join(where)}"
