"""The words of facts about manifests."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.plan.reason import Facts
from reconciler.plan.manifests.reasons import NodeLabel, NotOurs, OwnedByOther


def _and_its_nodes(facts: NotOurs | OwnedByOther) -> str:
    """What it means for nodes that their NodePool is not ours."""
    return ", and its nodes are only observed" if facts.object.kind == "NodePool" else ""


def _label(label: NodeLabel) -> str:
    return f"{label.key}={label.value}"


WORDS: Mapping[type, Callable[[Any], str]] = {NodeLabel: _label}

PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    NotOurs: {"observed": _and_its_nodes},
    OwnedByOther: {"observed": _and_its_nodes},
}
