"""Three ways, what stands, what is wished and what we set before; so what a server-side apply would change.

Where the wish says something, it wins. What we set and no longer wish goes, unless someone else set it too; then the
server's default comes back, if there is one. All else stays: fields of others, and defaults. A list is one value,
unless managedFields takes it apart by keys; a map is taken apart, unless its kind has it as one value. Where another
manager set a field to something else, the API server would refuse: such a field is foreign.

`kubectl get` leaves managedFields out. Then all of an object that is ours counts as set by us, and all of another as
set by someone else.
"""

import re
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import DOMAINS, Unstructured, without_secrets
from reconciler.model.quantity import Quantity
from reconciler.plan.karpenter.budgets import nanoseconds

# --- What applying a manifest would change: fields, the object as it would then stand, and what is in the way.


class ManifestFieldChange(msgspec.Struct, frozen=True):
    """A field, and what it is and would be: JSON, or None where nothing is said."""

    path: str  # spec.limits.cpu
    before: str | None
    after: str | None


class Foreign(msgspec.Struct, frozen=True, order=True):
    """A field that would be changed although another manager set it to what it is: the API server would refuse."""

    path: str
    manager: str
    shared: bool = False  # we set it too, to the same


class Comparison(msgspec.Struct, frozen=True):
    """What an apply would do; `merged` is the object as it would then stand."""

    changes: tuple[ManifestFieldChange, ...]
    merged: dict[str, Any]
    foreign: tuple[Foreign, ...]

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as it would then stand."""
        found = self.merged.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def paths(self) -> tuple[str, ...]:
        """What changes."""
        return tuple(each.path for each in self.changes)

    @property
    def managers(self) -> tuple[str, ...]:
        """Who is in the way."""
        return tuple(sorted({each.manager for each in self.foreign}))

    @property
    def contested(self) -> tuple[str, ...]:
        """The fields of which others are in the way."""
        return tuple(sorted({each.path for each in self.foreign}))


# --- Who set which field of an object, as its managedFields tell: trees of f:FIELD, k:{KEYS}, v:VALUE and '.'.

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


# --- What the API server does with fields of the kinds that templates yield, and no object tells.

Path = tuple[str, ...]

_NODE = ("spec", "template", "spec")


class Traits(msgspec.Struct, frozen=True):
    """Of one kind."""

    # What the server writes where nothing is said.
    defaults: dict[Path, Any] = {}
    # What it leaves out when it stores the object, since that says no more than nothing.
    unstored: dict[Path, Any] = {}
    # Maps that have one owner and are replaced as a whole.
    atomic_maps: frozenset[Path] = frozenset()
    # What can't be changed once it is there: the field, and all within.
    fixed: tuple[Path, ...] = ()
    # Built-in kinds are stored without what is empty; custom resources as they were written.
    drops_empty: bool = True
    # Where the server and its plug-ins fill in so much that what is not said can't be told from what was taken back.
    filled_in: bool = False


_TRAITS = {
    "NodePool": Traits(
        drops_empty=False,
        defaults={
            ("spec", "disruption"): {
                "budgets": [{"nodes": "10%"}],
                "consolidateAfter": "0s",
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
            },
            ("spec", "disruption", "budgets"): [{"nodes": "10%"}],
            ("spec", "disruption", "consolidationPolicy"): "WhenEmptyOrUnderutilized",
            (*_NODE, "expireAfter"): "720h",
        },
        atomic_maps=frozenset({("spec", "template", "metadata", "labels")}),
        fixed=((*_NODE, "nodeClassRef", "group"), (*_NODE, "nodeClassRef", "kind")),
    ),
    "Pod": Traits(atomic_maps=frozenset({("spec", "nodeSelector")}), fixed=(("spec",),), filled_in=True),
    "PodDisruptionBudget": Traits(atomic_maps=frozenset({("spec", "selector")})),
    "PriorityClass": Traits(
        defaults={("preemptionPolicy",): "PreemptLowerPriority"},
        fixed=(("value",), ("preemptionPolicy",)),
        unstored={("globalDefault",): False},
    ),
}


def traits(kind: str) -> Traits:
    return _TRAITS.get(kind, Traits())


def fixed_fields(kind: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the paths that can't be changed."""
    fixed = [".".join(each) for each in traits(kind).fixed]
    return tuple(path for path in paths if any(f"{path}.".startswith((f"{each}.", f"{each}[")) for each in fixed))


# Who set the fields of an object that does not tell.
SOMEONE = "someone else"

_APART = frozenset({"apiVersion", "kind", "metadata"})


def compare(live: Unstructured, desired: dict[str, Any]) -> Comparison:
    """What applying a manifest would change."""
    desired = _as_read(live, desired)
    kind = traits(live.kind)
    owners = _owners(live, kind)
    walk = FieldWalk(kind)
    metadata: dict[str, Any] = {"name": live.name}
    if live.metadata.namespace:
        metadata["namespace"] = live.metadata.namespace
    for field, texts in (("labels", live.metadata.labels), ("annotations", live.metadata.annotations)):
        owned = owners.within("f:metadata").within(f"f:{field}")
        metadata[field] = walk.merged(("metadata", field), texts, desired["metadata"].get(field, {}), owned)
    merged: dict[str, Any] = {"apiVersion": live.api_version, "kind": live.kind, "metadata": metadata}
    for name in sorted({*live.rest, *desired} - _APART):
        found = walk.merged((name,), live.rest.get(name), desired.get(name), owners.within(f"f:{name}"))
        if found is not None:
            merged[name] = found
    changes = sorted(walk.changes, key=lambda each: each.path)
    return Comparison(tuple(changes), merged, tuple(sorted(walk.foreign)))


def _as_read(live: Unstructured, desired: dict[str, Any]) -> dict[str, Any]:
    """The manifest without what is not read of an object either: it could only seem to differ."""
    metadata = desired["metadata"]
    if not live.metadata.managed_fields and "annotations" in metadata:
        seen = {key: value for key, value in metadata["annotations"].items() if key.partition("/")[0] in DOMAINS}
        metadata = {**metadata, "annotations": seen}
    return without_secrets(live.kind, {**desired, "metadata": metadata})


def _owners(live: Unstructured, kind: Traits) -> Owners:
    if live.metadata.managed_fields:
        return owners_of(live)
    rest: Tree = {f"f:{name}": ALL for name in live.rest if name != "status"}
    if not live.is_ours:
        return Owners(None, ((SOMEONE, rest | {"f:metadata": ALL}),))
    return Owners() if kind.filled_in else Owners(rest)


# --- Owner of what one comparison has found so far: it walks what stands, what is wished and who set what side by side.

_WORD = re.compile(r"[A-Za-z0-9_-]+")


class FieldWalk:
    """Everywhere None is what says nothing."""

    def __init__(self, kind: Traits) -> None:
        self._kind = kind
        self.changes: list[ManifestFieldChange] = []
        self.foreign: list[Foreign] = []

    def merged(self, path: Path, live: Any, wished: Any, owners: Owners) -> Any:
        """The value as it would stand after an apply."""
        if wished is None:
            return self._unsaid(path, live, owners)
        if live == wished or (live is None and wished == self._kind.unstored.get(path)):
            return wished
        if isinstance(live, dict) and isinstance(wished, dict) and not self._is_one_value(path, owners):
            inner = {
                key: self.merged((*path, key), live.get(key), wished.get(key), owners.within(f"f:{key}"))
                for key in sorted({*live, *wished})
            }
            return {key: value for key, value in inner.items() if value is not None}
        if isinstance(live, list) and isinstance(wished, list):
            if keys := self._keys(live, wished, owners):
                return self._by_key(path, (live, wished, keys), owners)
            if owned := owners.taken_apart("v:"):
                wished = _as_set(live, wished, owners, owned)
                owners = Owners()
        if same(live, wished, path, self._kind.drops_empty):
            return wished
        if live is not None:
            shared = owners.ours is not None
            self.foreign += [Foreign(_written(path), manager, shared) for manager, _ in owners.others]
        return self._changed(path, live, wished)

    def _unsaid(self, path: Path, live: Any, owners: Owners) -> Any:
        """What is left of a value that is not wished: all that we did not set, or that another set too."""
        if live is None or owners.ours is None:
            return live
        if not owners.others:
            default = self._kind.defaults.get(path)
            same_as_default = same(live, default, path, self._kind.drops_empty)
            return live if same_as_default else self._changed(path, live, default)
        if isinstance(live, dict) and owners.taken_apart("f:"):
            inner = {key: self._unsaid((*path, key), live[key], owners.within(f"f:{key}")) for key in sorted(live)}
            return {key: value for key, value in inner.items() if value is not None}
        if isinstance(live, list) and (keys := self._keys(live, [], owners)):
            return self._by_key(path, (live, [], keys), owners)
        return live

    def _by_key(self, path: Path, lists: tuple[list[Any], list[Any], tuple[str, ...]], owners: Owners) -> list[Any]:
        """A list whose items are known by some of their fields; one not named in the wish may be a default."""
        live, wished, keys = lists
        left, found = list(wished), []
        for item in live:
            identity = {key: item.get(key) for key in keys}
            meant = next((each for each in left if all(each.get(k, v) == v for k, v in identity.items())), None)
            left = [each for each in left if each is not meant]
            inner = owners.within(f"k:{_json(identity)}")
            found.append(self.merged((*path, _item(identity)), item, meant, inner))
        for item in left:
            self._changed((*path, _item({key: item[key] for key in keys if key in item})), None, item)
        return [each for each in found if each is not None] + left

    def _changed(self, path: Path, before: Any, after: Any) -> Any:
        lines = (None if each is None else _json(each) for each in (before, after))
        self.changes.append(ManifestFieldChange(_written(path), *lines))
        return after

    def _is_one_value(self, path: Path, owners: Owners) -> bool:
        return path in self._kind.atomic_maps and not owners.taken_apart("f:")

    def _keys(self, live: list[Any], wished: list[Any], owners: Owners) -> tuple[str, ...]:
        """The fields by which the items of a list are known; none where it is one value."""
        if not all(isinstance(item, dict) for item in (*live, *wished)):
            return ()
        if owned := owners.taken_apart("k:"):
            return tuple(sorted(msgspec.json.decode(owned[0][2:])))
        # Nobody noted who set what: what the server fills in everywhere names its items.
        named = all("name" in item for item in (*live, *wished))
        return ("name",) if self._kind.filled_in and named and not owners.others else ()


def _as_set(live: list[Any], wished: list[Any], owners: Owners, owned: list[str]) -> list[Any]:
    """What a list that is a set would hold."""
    only_ours = {key for key in owned if key in (owners.ours or {}) and not owners.within(key).others}
    stays = [item for item in live if item in wished or f"v:{_json(item)}" not in only_ours]
    return stays + [item for item in wished if item not in stays]


def _item(identity: dict[str, Any]) -> str:
    return f"[{','.join(f'{key}={value}' for key, value in sorted(identity.items()))}]"


def _written(path: Path) -> str:
    """spec.limits.cpu, spec.limits[nvidia.com/gpu], spec.containers[name=main].image."""
    parts = (f".{part}" if _WORD.fullmatch(part) else part if part[0] == "[" else f"[{part}]" for part in path)
    return "".join(parts).removeprefix(".")


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


# --- When two values of a field mean the same to Kubernetes, although they are written differently.
#
# Rules go by the name of a field and of the field around it: there are no schemas here. Where none applies, values are
# the same when they are equal. Custom resources are kept as they were written: there an empty list is not the same as
# none, and Karpenter hashes it otherwise. Built-in kinds drop what is empty.

# What stands in these, each under the name of a resource, is an amount: "1000m" is 1, and 8 is "8".
_AMOUNTS = frozenset({"limits", "requests", "overhead", "capacity"})
_DURATIONS = frozenset({"expireAfter", "terminationGracePeriod", "consolidateAfter", "duration"})
# Lists that Karpenter and the scheduler read as sets.
_UNORDERED = frozenset({"requirements", "taints", "startupTaints", "values", "reasons"})
# Texts of people: "60m" in a label is no duration.
_TEXTS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
# Elsewhere an empty map says something: `selector: {}` selects all, `emptyDir: {}` is a volume.
_EMPTY_SAYS_NOTHING = _AMOUNTS | _TEXTS | {"metadata", "resources", "securityContext"}


def same(one: Any, other: Any, path: Path, drops_empty: bool) -> bool:
    """Whether two values of the field mean the same; None is no value."""
    if one == other:
        return True
    name, around = path[-1], path[-2] if len(path) > 1 else ""
    if drops_empty:
        one, other = _without_empty(one, name), _without_empty(other, name)
    return bool(_plain(one, name, around) == _plain(other, name, around))


def _without_empty(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        inner = {key: _without_empty(each, key) for key, each in value.items()}
        said = {key: each for key, each in inner.items() if each is not None}
        return said if said or name not in _EMPTY_SAYS_NOTHING else None
    if isinstance(value, list):
        return [_without_empty(each, "") for each in value] or None
    return value


def _plain(value: Any, name: str, around: str) -> Any:
    """The same for all that means the same."""
    if isinstance(value, dict):
        return {key: _plain(each, key, name) for key, each in value.items()}
    if isinstance(value, list):
        items = [_plain(each, "", name) for each in value]
        if name in _UNORDERED:
            items.sort(key=lambda each: msgspec.json.encode(each, order="sorted"))
        return items
    return _measure(value, name, around)


def _measure(value: Any, name: str, around: str) -> Any:
    try:
        if (around in _AMOUNTS or name == "sizeLimit") and isinstance(value, str | int) and not isinstance(value, bool):
            return Quantity.parse(str(value)).milli
        if name in _DURATIONS and around not in _TEXTS and isinstance(value, str):
            return nanoseconds(value)
    except ValueError:  # Never, or finer than is kept: only equal texts are the same
        return value
    return value
