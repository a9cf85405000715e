"""Owner of what one comparison has found so far: it walks what stands, what is wished and who set what side by side."""

import re
from typing import Any

import msgspec

from reconciler.plan.manifests.comparison import Foreign, ManifestFieldChange
from reconciler.plan.manifests.equal_values import same
from reconciler.plan.manifests.kind_traits import Path, Traits
from reconciler.plan.manifests.ownership import Owners

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
