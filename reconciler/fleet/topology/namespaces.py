"""The labels of namespaces, which terms may ask about."""

from reconciler.model.cluster.observed import Observed


class Namespaces:
    """Labels by namespace; `unread` says why there are none where they could not be read."""

    __slots__ = ("_labels", "unread")

    def __init__(self, labels: dict[str, dict[str, str]], unread: str = "") -> None:
        self._labels = labels
        self.unread = unread

    @classmethod
    def of(cls, observed: Observed) -> "Namespaces":
        labels = {each.metadata.name: each.metadata.labels for each in observed.namespaces}
        return cls(labels, observed.why_unread("namespaces"))

    def labels_of(self, name: str) -> dict[str, str] | None:
        return self._labels.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespaces) and (self._labels, self.unread) == (other._labels, other.unread)

    __hash__ = None  # type: ignore[assignment]
