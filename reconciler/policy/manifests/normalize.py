"""What a change of templates does: manifests that say something else although their template was asked for the same.

Where a template was asked for something else too, its answer is another anyway, and which of the two made it so can't
be told: that is no change of a template.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model.change import FieldChange
from reconciler.model.desired import Desired, Manifest
from reconciler.policy.manifests.render import orders

_PATH = "template"
_MOST_FIELDS = 3  # of one manifest; `render` shows all of it
_Titled = dict[str, Manifest]


def rewritten_templates(base: Desired, head: Desired) -> dict[str, list[FieldChange]]:
    """By pool, a change for each manifest that is new, gone, or another."""
    before, after = _by_pool(base), _by_pool(head)
    others = {pool for pool in {*before, *after} if _bodies(before[pool]) != _bodies(after[pool])}
    if not others:
        return {}
    requested, asks = _render_requests(base, others), _render_requests(head, others)
    return {
        pool: list(_rewritten(before[pool], after[pool]))
        for pool in sorted(others)
        if pool in asks and requested.get(pool) == asks[pool]
    }


def _by_pool(wish: Desired) -> defaultdict[str, _Titled]:
    result: defaultdict[str, _Titled] = defaultdict(dict)
    for each in wish.manifests:
        result[each.pool]["/".join(part for part in (each.kind, each.namespace, each.name) if part)] = each
    return result


def _bodies(manifests: _Titled) -> dict[str, str]:
    return {title: each.body for title, each in manifests.items()}


def _render_requests(wish: Desired, names: set[str]) -> dict[str, Any]:
    """What the templates of these pools are asked for."""
    some = msgspec.structs.replace(wish, pools=tuple(pool for pool in wish.pools if pool.name in names))
    return {order.pool.name: order.request for order in orders(some)}


def _rewritten(before: _Titled, after: _Titled) -> Iterator[FieldChange]:
    for title in sorted({*before, *after}):
        one, other = before.get(title), after.get(title)
        if one and other:
            if one.body != other.body:
                yield _differing(title, one, other)
        elif other:
            yield FieldChange(_PATH, None, title, other.template)
        elif one:
            yield FieldChange(_PATH, title, None, one.template)


def _differing(title: str, one: Manifest, other: Manifest) -> FieldChange:
    before, after = (dict(_leaves(msgspec.json.decode(each.body), "")) for each in (one, other))
    paths = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    return FieldChange(
        _PATH, _changed_fields_text(title, before, paths), _changed_fields_text(title, after, paths), other.template
    )


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each value that holds nothing further, by its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _changed_fields_text(title: str, leaves: dict[str, str], paths: Sequence[str]) -> str:
    """The manifest with some of its fields that differ."""
    shown = [f"{path}: {leaves[path]}" for path in paths[:_MOST_FIELDS] if path in leaves]
    more = len(paths) - _MOST_FIELDS
    if more > 0:
        shown.append(f"and {more} more")
    return f"{title} ({', '.join(shown)})" if shown else title
