"""Which taints a pod tolerates, found without a walk over its tolerations: a pod may have many."""

from collections.abc import Iterable

from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Toleration


class Tolerance:
    """The tolerations of a pod, by what they say."""

    __slots__ = ("_any_value", "_one_value")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        """Greater and less than (Gt, Lt) bear nothing: their feature gate is off by default in Kubernetes 1.36."""
        self._any_value: set[tuple[str, str]] = set()  # key and effect; empty: whatever the taint has
        self._one_value: set[tuple[str, str, str]] = set()  # key, effect and value
        for each in tolerations:
            if each.operator in {"", "Equal"}:
                self._one_value.add((each.key, each.effect, each.value))
            elif each.operator == "Exists":
                self._any_value.add((each.key, each.effect))

    def bears(self, taint: NodeTaint) -> bool:
        """Whether one of the tolerations bears the taint."""
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
