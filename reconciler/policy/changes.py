"""Differences between the policies of two revisions (base and head), object by object and field by field.

Values are compared in their printed form; an omitted field has its default. List items are compared one by one. Items
are matched by the list's merge keys, or by their whole value if the list has none. If the order of a list matters and
has changed, the whole list is reported as well.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from reconciler.model.bundle import FieldChange, PolicyChange
from reconciler.model.desired import Declared, Desired
from reconciler.model.policy.gpu import PoolTaint
from reconciler.policy.manifests.render import rewritten_templates
from reconciler.policy.shape import Choice, Field, Flag, ListOf, MapOf, Object, Shape, describe

_Objects = dict[tuple[str, str], Declared[Any]]


class FieldPlace(msgspec.Struct, frozen=True):
    """The title of a field and its paths in base and in head. The paths differ if an item moved within its list."""

    title: str = ""
    base: str = "spec"
    head: str = "spec"

    def field(self, name: str) -> "FieldPlace":
        text = f"{self.title}.{name}" if self.title else name
        return FieldPlace(text, f"{self.base}.{name}", f"{self.head}.{name}")

    def item(self, label: str, before: int | None, after: int | None) -> "FieldPlace":
        """An item of a list. Without a label, the item has the title of the list."""
        text = f"{self.title}[{label}]" if label else self.title
        base = self.base if before is None else f"{self.base}[{before}]"
        head = self.head if after is None else f"{self.head}[{after}]"
        return FieldPlace(text, base, head)


class FieldDifference(msgspec.Struct, frozen=True):
    """The printed values of a field in base and in head; None where the field is absent."""

    at: FieldPlace
    before: str | None
    after: str | None


def changes(base: Desired, head: Desired) -> tuple[PolicyChange, ...]:
    """All differences between two revisions of one environment, by kind and name."""
    before, after = _objects(base), _objects(head)
    rewritten = rewritten_templates(base, head)
    policy_changes = []
    for kind, name in sorted({*before, *after}):
        one, other = before.get((kind, name)), after.get((kind, name))
        fields = _field_changes(one, other)
        if kind == "GpuPool":
            fields += rewritten.get(name, [])
        declared = other or one
        if declared and (fields or not (one and other)):
            verb: Literal["add", "change", "remove"] = "add" if one is None else "change" if other else "remove"
            policy_changes.append(PolicyChange(kind, name, verb, declared.origin(), tuple(sorted(fields, key=_order))))
    return tuple(policy_changes)


def _order(change: FieldChange) -> tuple[str, bool, str, str]:
    return change.path, change.after is not None, change.before or "", change.after or ""


def _objects(wish: Desired) -> _Objects:
    return {(declared.kind, declared.name): declared for declared in wish.declared}


def _field_changes(base: Declared[Any] | None, head: Declared[Any] | None) -> list[FieldChange]:
    declared = head or base
    if declared is None:
        return []
    field_changes = []
    kind: type[msgspec.Struct] = type(declared.spec)
    specs = (base.spec if base else None, head.spec if head else None)
    for each in _differences(describe(kind), *specs, FieldPlace()):
        if base and (head is None or each.after is None):
            origin = base.origin(each.at.base)
        else:
            origin = declared.origin(each.at.head)
        field_changes.append(FieldChange(each.at.title, each.before, each.after, origin))
    return field_changes


def _differences(shape: Shape, before: Any, after: Any, at: FieldPlace) -> Iterator[FieldDifference]:
    """None stands for an absent value."""
    if before == after:
        return
    match shape:
        case Object(type=kind, fields=fields) if kind is not PoolTaint:
            for field in fields:
                one, other = _own(field, before, after), _own(field, after, before)
                yield from _differences(field.shape, one, other, at.field(field.name))
        case MapOf(value=value):
            for key in sorted({*(before or {}), *(after or {})}):
                yield from _differences(value, (before or {}).get(key), (after or {}).get(key), at.field(key))
        case ListOf(item=item) if not isinstance(item, Choice):
            yield from _item_differences(shape, before or [], after or [], at)
        case _:
            yield from _in_words(shape, before, after, at)


def _own(field: Field, holder: Any, other: Any) -> Any:
    """The value of a field. If the object is absent: the default if the other object has the default too, else None."""
    if holder is not None:
        return getattr(holder, field.attribute)
    value = getattr(other, field.attribute)
    return value if value == field.default else None


def _in_words(shape: Shape, before: Any, after: Any, at: FieldPlace) -> Iterator[FieldDifference]:
    one, other = (None if value is None else _words(shape, value) for value in (before, after))
    if one != other:
        yield FieldDifference(at, one, other)


def _item_differences(shape: ListOf, before: list[Any], after: list[Any], at: FieldPlace) -> Iterator[FieldDifference]:
    one, other = _labelled(shape, before), _labelled(shape, after)
    for label in [*one, *(each for each in other if each not in one)]:
        old, new = one.get(label), other.get(label)
        is_told_apart = bool(shape.merge_key) and old is not None and new is not None
        is_one_word = isinstance(shape.item, Object) and shape.item.type is PoolTaint
        place = at.item(label[0] if is_told_apart and not is_one_word else "", old, new)
        compared = _differences if is_told_apart else _in_words
        yield from compared(
            shape.item, None if old is None else before[old], None if new is None else after[new], place
        )
    if _is_reordered(shape, one, other):
        yield FieldDifference(at, *(f"[{', '.join(text for text, _ in labels)}]" for labels in (one, other)))


_Label = tuple[str, int]


def _labelled(shape: ListOf, items: Sequence[Any]) -> dict[_Label, int]:
    """Index of each item in the list, by its label and its occurrence number among items with the same label."""
    seen: Counter[str] = Counter()
    result = {}
    for number, item in enumerate(items):
        text = _label(shape, item)
        result[text, seen[text]] = number
        seen[text] += 1
    return result


def _label(shape: ListOf, item: Any) -> str:
    if not (shape.merge_key and isinstance(shape.item, Object)):
        return _words(shape.item, item)
    keys = [field for field in shape.item.fields if field.name in shape.merge_key]
    return ":".join(_words(key.shape, getattr(item, key.attribute)) for key in keys)


def _is_reordered(shape: ListOf, before: dict[_Label, int], after: dict[_Label, int]) -> bool:
    """Whether the kept items changed their order. In a list ordered by preference, also whether a kept item follows one
    that is added or removed.
    """
    if shape.merge_key and not shape.ordered:
        return False
    stays = [label for label in before if label in after]
    if shape.ordered:
        return not list(before)[: len(stays)] == list(after)[: len(stays)] == stays
    return [label for label in after if label in before] != stays


def _words(shape: Shape, value: Any) -> str:
    """A value as written in YAML, in one line. Of an object, only fields that differ from their defaults."""
    match shape:
        case Object(type=kind) if kind is PoolTaint:
            return f"{value.key}={value.value}:{value.effect}" if value.value else f"{value.key}:{value.effect}"
        case Object(fields=fields):
            held = [(field, getattr(value, field.attribute)) for field in fields]
            said = [(field, own) for field, own in held if field.required or own != field.default]
            return "{" + ", ".join(f"{field.name}: {_words(field.shape, own)}" for field, own in said) + "}"
        case MapOf(value=inner):
            return "{" + ", ".join(f"{key}: {_words(inner, each)}" for key, each in sorted(value.items())) + "}"
        case ListOf(item=item):
            return "[" + ", ".join(_words(item, each) for each in value) + "]"
        case Flag():
            return "true" if value else "false"
        case _:
            return str(value) or '""'
