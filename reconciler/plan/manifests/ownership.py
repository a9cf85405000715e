"""Who set which field of an object, as its managedFields tell: trees of f:FIELD, k:{KEYS}, v:VALUE and '.'."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured

Tree = dict[str, Any]

# Stands for every field within, where nobody noted who set what.
ALL: Tree = {"*": {}}


class Owners(msgspec.Struct, frozen=True):
    """Who owns something at a place of an object, or within it; None or absent where they own nothing."""

    ours: Tree | None = None
    others: tuple[tuple[str, Tree], ...] = ()

    def within(self, key: str) -> "Owners":
        """The same one step further in."""
        ours = None if self.ours is None else _step(self.ours, key)
        others = [(who, _step(tree, key)) for who, tree in self.others]
        return Owners(ours, tuple((who, tree) for who, tree in others if tree is not None))

    def taken_apart(self, mark: str) -> list[str]:
        """The keys with that mark by which anybody owns parts of the value, sorted."""
        trees = [tree for _, tree in self.others]
        if self.ours is not None:
            trees.append(self.ours)
        return sorted({key for tree in trees for key in tree if key.startswith(mark)})


def _step(tree: Tree, key: str) -> Tree | None:
    return ALL if tree is ALL else tree.get(key)


def owned_by_us(live: Unstructured) -> Tree | None:
    """The fields that our server-side applies set; None when there were none."""
    for entry in live.metadata.managed_fields:
        if entry.manager == names.FIELD_MANAGER and entry.operation == "Apply" and not entry.subresource:
            return entry.fields
    return None


def owners_of(live: Unstructured) -> Owners:
    """Who owns what, from the whole object inwards."""
    entries = live.metadata.managed_fields
    ours = owned_by_us(live)
    others = tuple(
        sorted(
            ((entry.manager, entry.fields) for entry in entries if entry.fields is not ours), key=lambda each: each[0]
        )
    )
    return Owners(ours, others)
