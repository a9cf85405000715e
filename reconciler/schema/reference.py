"""The reference of the kinds as one Markdown page: every field in words, every rule, with anchors that stay."""

import copy
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reconciler.model.fields import PolicyStatus, Within
from reconciler.policy.json_schema import form, in_words
from reconciler.policy.shape import (
    API_VERSION,
    GROUP,
    VERSION,
    Choice,
    Field,
    Flag,
    Kind,
    ListOf,
    MapOf,
    Measured,
    Object,
    Shape,
    ValidationRule,
    WholeNumber,
    Words,
    bounded,
    default_of,
    describe,
)
from reconciler.policy.words import choice, expected, how_many

_OPENING = f"""<!-- Written by `make generate` from reconciler/model/kinds; edit there. -->

# The kinds

Every object begins with `apiVersion: {API_VERSION}`, its `kind` and `metadata: {{name: ...}}`; what follows stands
below `spec`. The same text is a file in Git or a custom resource. In an overlay, maps merge, lists replace, and null
restores the default. Editors that read JSON Schema complete and check a file that begins with

```yaml
# yaml-language-server: $schema=../schemas/policies.v1.json
```

or, for an overlay, `policies.overlay.v1.json`.
"""
_STATUS = """## Status

Where the kinds are custom resources, the status of each says what came of it.
"""


def reference_page(kinds: Iterable[Kind]) -> str:
    """The whole page."""
    every = tuple(kinds)
    status = describe(PolicyStatus)
    parts = [_OPENING, _overview(every), *map(_kind, every), _STATUS, *_tables("status", _Path("Status"), status)]
    return "\n".join(parts)


def _overview(kinds: tuple[Kind, ...]) -> str:
    rows = [
        (f"[{kind.name}](#{kind.name.lower()})", f"`{kind.short}`", _scope(kind), kind.shape.sentence) for kind in kinds
    ]
    return _table(("kind", "short name", "scope", "what it is"), rows)


def _kind(kind: Kind) -> str:
    anchor = kind.name.lower()
    place = "In a namespace" if kind.namespaced else "In the cluster, without a namespace"
    parts = [
        f"## {kind.name}\n\n{kind.shape.sentence}\n",
        f"{place}; `kubectl get {kind.plural}`, or `{kind.short}`. {_versions(kind)}.\n",
        *_tables(anchor, _Path(kind.name), kind.shape),
    ]
    if kind.rules:
        parts += ["Between its fields:\n", _rules(kind)]
    if kind.report:
        report = describe(kind.report)
        parts += [f"### {kind.name} `status`\n\n{report.sentence}\n"]
        parts += _tables(f"{anchor}-status", _Path(kind.name, "status"), report)
    return "\n".join(parts)


def _versions(kind: Kind) -> str:
    return f"Version {choice(readable(kind.name, CONVERSIONS, VERSION))}"


def _scope(kind: Kind) -> str:
    return "namespace" if kind.namespaced else "cluster"


def _rules(kind: Kind) -> str:
    return "".join(f"- {rule.code}: {without_figures(rule)}. Remedy: {rule.remedy}.\n" for rule in kind.rules)


class _Path(msgspec.Struct, frozen=True):
    """Where an object stands in its kind."""

    kind: str
    path: str = ""

    def to(self, field: Field) -> "_Path":
        return _Path(self.kind, f"{self.path}.{field.name}{_steps(field.shape)}".lstrip("."))


def _tables(anchor: str, place: _Path, shape: Object) -> Iterator[str]:
    """The table of an object's fields, and then those of the objects in them."""
    yield _table(("field", "takes", "default", "what it is"), (_row(anchor, field) for field in shape.fields))
    for field in shape.fields:
        if inner := _inner(field.shape):
            name, inner_place = f"{anchor}-{field.name.lower()}", place.to(field)
            title = f"{place.kind} `{inner_place.path}`"
            yield f'<a id="{name}"></a>\n\n### {title}\n\n{inner.sentence}\n'
            yield from _tables(name, inner_place, inner)


def _inner(shape: Shape) -> Object | None:
    match shape:
        case Object():
            return shape
        case ListOf(item=inner) | MapOf(value=inner):
            return _inner(inner)
        case _:
            return None


def _steps(shape: Shape) -> str:
    match shape:
        case ListOf(item=item):
            return f"[]{_steps(item)}"
        case MapOf(value=value):
            return f".*{_steps(value)}"
        case _:
            return ""


def _row(anchor: str, field: Field) -> tuple[str, ...]:
    unit = f" ({field.unit})" if field.unit else ""
    return (
        f"`{field.name}`",
        _takes(field.shape, f"{anchor}-{field.name.lower()}") + unit,
        "required" if field.required else _by_default(field),
        field.sentence,
    )


def _by_default(field: Field) -> str:
    default = default_of(field)
    match field.shape:
        case Object():
            return ""
        case ListOf() | MapOf() if not default:
            return "empty"
        case _:
            return "" if default is None else f"`{in_words(default)}`"


def _takes(shape: Shape, anchor: str) -> str:
    match shape:
        case Object():
            return f"[a map](#{anchor})"
        case ListOf(item=item):
            return f"a list of {how_many(bounded(shape), 'item')}: {_takes(item, anchor)}{_merge_key_text(shape)}"
        case MapOf(key=key, value=value):
            keys = choice(key.values) if isinstance(key, Choice) else key.words
            entries = how_many(bounded(shape), "entry")
            return f"a map of {entries}; key: {keys}; value: {_takes(value, anchor)}"
        case Words(refers=refers) if refers:
            star = ", or `*`" if refers.all_as_star else ""
            return f"the name of a [{refers.kind}](#{refers.kind.lower()}){star}"
        case Words():
            shaped = form(shape)
            return shaped.words if shaped else f"a text of {how_many(_from_one(bounded(shape)), 'character')}"
        case _:
            return expected(shape)


def _merge_key_text(shape: ListOf) -> str:
    return f"; no two may agree in {' and '.join(f'`{name}`' for name in shape.merge_key)}" if shape.merge_key else ""


def _from_one(within: Within) -> Within:
    """A text of 0 to 9 characters is one of at most 9."""
    return within if within.least else Within(most=within.most)


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


# --- Versions of a kind: documents of one are read as another through conversions, each a pure function on plain data.
#
# A conversion goes one step, from one version to the next or back. A chain of them is found by itself: the shortest.
# What an older version has no field for, a conversion back keeps in an annotation, so that there and back again loses
# nothing.

Document = dict[str, Any]


class Conversion(msgspec.Struct, frozen=True):
    """One step. `convert` is given a document of its own, which it may change; its apiVersion is set afterwards."""

    kind: str
    from_version: str
    to_version: str
    convert: Callable[[Document], Document]


class NoConversion(ValueError):
    """No chain of conversions leads to the version that is wanted."""


# Every kind has one version so far.
CONVERSIONS: tuple[Conversion, ...] = ()


def convert(document: Mapping[str, Any], conversions: Iterable[Conversion], target: str) -> Document:
    """The same object in the version `target`, such as v2; raises NoConversion. The document itself is left alone."""
    kind, version = str(document.get("kind")), str(document.get("apiVersion")).removeprefix(f"{GROUP}/")
    steps = tuple(step for step in conversions if step.kind == kind)
    chain = _chain(steps, version, target)
    if chain is None:
        known = " or ".join(readable(kind, steps, target))
        raise NoConversion(f"{kind} can't be read from version {version} as {target}: write it in {known}")
    converted = copy.deepcopy(dict(document))
    for step in chain:
        converted = {**step.convert(converted), "apiVersion": f"{GROUP}/{step.to_version}"}
    return converted


def readable(kind: str, conversions: Iterable[Conversion], target: str) -> tuple[str, ...]:
    """The versions of a kind that can be read as `target`, itself among them."""
    steps = tuple(step for step in conversions if step.kind == kind)
    found, before = {target}, set[str]()
    while found != before:
        before = set(found)
        found |= {step.from_version for step in steps if step.to_version in found}
    return tuple(sorted(found))


def _chain(steps: tuple[Conversion, ...], version: str, target: str) -> tuple[Conversion, ...] | None:
    """The fewest steps between two versions; of chains of one length, the one declared first."""
    reached = {version}
    waiting: deque[tuple[str, tuple[Conversion, ...]]] = deque([(version, ())])
    while waiting:
        at, chain = waiting.popleft()
        if at == target:
            return chain
        for step in steps:
            if step.from_version == at and step.to_version not in reached:
                reached.add(step.to_version)
                waiting.append((step.to_version, (*chain, step)))
    return None


# --- Rules in words: without the figures of any object, or, for the API server to fill in, with those of one.

_FIGURE = re.compile(r"\{([a-z_]+)\}")


def without_figures(rule: ValidationRule) -> str:
    """What must hold, of any object."""
    return _FIGURE.sub("", rule.sentence).replace("  ", " ").replace(" ,", ",").strip()


def refusal(rule: ValidationRule) -> str:
    """The whole message to somebody whose object breaks it."""
    return f"{without_figures(rule)} ({rule.code}): {rule.remedy}"


def refusal_with_figures(rule: ValidationRule, shape: Object) -> str | None:
    """The same as an expression in CEL that names the object's own figures; None where the sentence has none."""
    named = _FIGURE.findall(rule.sentence)
    by_attribute = {field.attribute: field for field in shape.fields}
    for attribute in named:
        if not isinstance(by_attribute[attribute].shape, WholeNumber | Flag | Words | Choice | Measured):
            raise TypeError(f"{rule.code} names {attribute}, which can't be written as one word")
    # Texts put together by + may grow without bound in the API server's reckoning of costs, those by format may not.
    form = _FIGURE.sub("%s", f"{rule.sentence} ({rule.code}): {rule.remedy}".replace("%", "%%"))
    figures = ", ".join(f"self.{by_attribute[attribute].name}" for attribute in named)
    return f"{quoted(form)}.format([{figures}])" if named else None


def quoted(text: str) -> str:
    """A text in CEL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
