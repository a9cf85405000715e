"""Three-way comparison of live object, desired manifest and previously set fields, to predict a server-side apply.

Desired values win. Fields that we set and no longer desire are removed, unless someone else also set them; then the
default of the server applies, if there is one. Other fields do not change: fields of others, and defaults. A list is
one value, unless managedFields splits it by keys; a map is split, unless its kind defines it as one value. A field
that another manager set to a different value is foreign: the API server would refuse the change.

`kubectl get` omits managedFields. Then all fields of our objects count as set by us, and all fields of others as set
by someone else.
"""

import re
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import DOMAINS, Unstructured, without_secrets
from reconciler.model.quantity import Quantity
from reconciler.plan.karpenter.budgets import nanoseconds

# --- Effect of applying a manifest: changed fields, the resulting object, and conflicts.


class ManifestFieldChange(msgspec.Struct, frozen=True):
    """A changed field with its old and new value as JSON, or None if absent."""

    path: str  # such as spec.limits.cpu
    before: str | None
    after: str | None


class Foreign(msgspec.Struct, frozen=True, order=True):
    """A field that would be changed although another manager set it: the API server would refuse the change."""

    path: str
    manager: str
    shared: bool = False  # we set the same value too


class Comparison(msgspec.Struct, frozen=True):
    """Effect of an apply; `merged` is the resulting object."""

    changes: tuple[ManifestFieldChange, ...]
    merged: dict[str, Any]
    foreign: tuple[Foreign, ...]

    @property
    def spec(self) -> dict[str, Any]:
        found = self.merged.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(each.path for each in self.changes)

    @property
    def managers(self) -> tuple[str, ...]:
        """Managers of foreign fields."""
        return tuple(sorted({each.manager for each in self.foreign}))

    @property
    def contested(self) -> tuple[str, ...]:
        """Paths of foreign fields."""
        return tuple(sorted({each.path for each in self.foreign}))


# --- Field ownership from managedFields: trees of f:FIELD, k:{KEYS}, v:VALUE and '.'.

Tree = dict[str, Any]

# Stands for every field within, if ownership is unknown.
ALL: Tree = {"*": {}}


class Owners(msgspec.Struct, frozen=True):
    """Owners of a place in an object, or within it; None or absent if they own nothing there."""

    ours: Tree | None = None
    others: tuple[tuple[str, Tree], ...] = ()

    def within(self, key: str) -> "Owners":
        """Owners one step further in."""
        ours = None if self.ours is None else _step(self.ours, key)
        others = [(who, _step(tree, key)) for who, tree in self.others]
        return Owners(ours, tuple((who, tree) for who, tree in others if tree is not None))

    def taken_apart(self, mark: str) -> list[str]:
        """Keys with that mark by which managers own parts of the value, sorted."""
        trees = [tree for _, tree in self.others]
        if self.ours is not None:
            trees.append(self.ours)
        return sorted({key for tree in trees for key in tree if key.startswith(mark)})


def _step(tree: Tree, key: str) -> Tree | None:
    return ALL if tree is ALL else tree.get(key)


def owned_by_us(live: Unstructured) -> Tree | None:
    """Fields set by our server-side applies; None if there were none."""
    for entry in live.metadata.managed_fields:
        if entry.manager == names.FIELD_MANAGER and entry.operation == "Apply" and not entry.subresource:
            return entry.fields
    return None


def owners_of(live: Unstructured) -> Owners:
    """Owners from the root of the object."""
    entries = live.metadata.managed_fields
    ours = owned_by_us(live)
    others = tuple(
        sorted(
            ((entry.manager, entry.fields) for entry in entries if entry.fields is not ours), key=lambda each: each[0]
        )
    )
    return Owners(ours, others)


# --- Behavior of the API server for fields of rendered kinds, which objects do not show.

Path = tuple[str, ...]

_NODE = ("spec", "template", "spec")


class Traits(msgspec.Struct, frozen=True):
    # Defaults of the server.
    defaults: dict[Path, Any] = {}
    # Values equal to absent ones, dropped by the server.
    unstored: dict[Path, Any] = {}
    # Maps with one owner, replaced as a whole.
    atomic_maps: frozenset[Path] = frozenset()
    # Immutable fields, with everything below.
    fixed: tuple[Path, ...] = ()
    # Built-in kinds are stored without empty values; custom resources as written.
    drops_empty: bool = True
    # The server and its plug-ins set so many fields that defaults and removed fields cannot be distinguished.
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
    """The immutable ones of these paths."""
    fixed = [".".join(each) for each in traits(kind).fixed]
    return tuple(path for path in paths if any(f"{path}.".startswith((f"{each}.", f"{each}[")) for each in fixed))


# Owner of fields if managedFields is missing.
SOMEONE = "someone else"

HEAD = frozenset({"apiVersion", "kind", "metadata"})


def compare(live: Unstructured, desired: dict[str, Any]) -> Comparison:
    """Effect of applying a manifest."""
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
    for name in sorted({*live.rest, *desired} - HEAD):
        found = walk.merged((name,), live.rest.get(name), desired.get(name), owners.within(f"f:{name}"))
        if found is not None:
            merged[name] = found
    changes = sorted(walk.changes, key=lambda each: each.path)
    return Comparison(tuple(changes), merged, tuple(sorted(walk.foreign)))


def _as_read(live: Unstructured, desired: dict[str, Any]) -> dict[str, Any]:
    """The manifest without fields that are never read: they would seem to differ."""
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


# --- State of one comparison: walks live object, manifest and owners in parallel.

_WORD = re.compile(r"[A-Za-z0-9_-]+")


class FieldWalk:
    """None always means absent."""

    def __init__(self, kind: Traits) -> None:
        self._kind = kind
        self.changes: list[ManifestFieldChange] = []
        self.foreign: list[Foreign] = []

    def merged(self, path: Path, live: Any, wished: Any, owners: Owners) -> Any:
        """The value after an apply."""
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
        """Remainder of a value that is not desired: everything that we did not set, or that others set too."""
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
        """A list with keyed items; an item missing in the manifest may be a default."""
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
        """Key fields of the items of a list; empty if the list is one value."""
        if not all(isinstance(item, dict) for item in (*live, *wished)):
            return ()
        if owned := owners.taken_apart("k:"):
            return tuple(sorted(msgspec.json.decode(owned[0][2:])))
        # Ownership is unknown: use the keys of defaults that the server adds.
        named = all("name" in item for item in (*live, *wished))
        return ("name",) if self._kind.filled_in and named and not owners.others else ()


def _as_set(live: list[Any], wished: list[Any], owners: Owners, owned: list[str]) -> list[Any]:
    """Content of a list that is a set."""
    only_ours = {key for key in owned if key in (owners.ours or {}) and not owners.within(key).others}
    stays = [item for item in live if item in wished or f"v:{_json(item)}" not in only_ours]
    return stays + [item for item in wished if item not in stays]


def _item(identity: dict[str, Any]) -> str:
    return f"[{','.join(f'{key}={value}' for key, value in sorted(identity.items()))}]"


def _written(path: Path) -> str:
    """Such as spec.limits.cpu, spec.limits[nvidia.com/gpu], or spec.containers[name=main].image."""
    parts = (f".{part}" if _WORD.fullmatch(part) else part if part[0] == "[" else f"[{part}]" for part in path)
    return "".join(parts).removeprefix(".")


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


# --- Equality of field values for Kubernetes despite different spellings.
#
# Rules depend on the name of a field and of its parent: there are no schemas here. Without a rule, values are equal
# only if identical. Custom resources are stored as written: there an empty list differs from an absent one, and
# Karpenter hashes them differently. Built-in kinds drop empty values.

# Maps from resource names to quantities: "1000m" is 1, and 8 is "8".
_AMOUNTS = frozenset({"limits", "requests", "overhead", "capacity"})
_DURATIONS = frozenset({"expireAfter", "terminationGracePeriod", "consolidateAfter", "duration"})
# Lists that Karpenter and the scheduler treat as sets.
_UNORDERED = frozenset({"requirements", "taints", "startupTaints", "values", "reasons"})
# Free texts: "60m" in a label is not a duration.
_TEXTS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
# Elsewhere an empty map has a meaning: `selector: {}` selects all, `emptyDir: {}` is a volume.
_EMPTY_SAYS_NOTHING = _AMOUNTS | _TEXTS | {"metadata", "resources", "securityContext"}


def same(one: Any, other: Any, path: Path, drops_empty: bool) -> bool:
    """Whether two values of the field are equal for Kubernetes; None means absent."""
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
    """Normalized form: the same for equal values."""
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
    except ValueError:  # Never, or finer than the stored precision: only equal texts are equal
        return value
    return value
