"""Reference of the kinds as one Markdown page: all fields and rules, with stable anchors."""

import copy
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reconciler.model.fields import PolicyStatus, Within
from reconciler.policy.json_schema import in_words
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

Every object begins with `apiVersion: {API_VERSION}`, its `kind` and `metadata: {{name: ...}}`; the following fields are
below `spec`. The same text works as a file in Git and as a custom resource. In an overlay, maps merge, lists replace,
and null restores the default. Editors that read JSON Schema complete and check a file that begins with

```yaml
# yaml-language-server: $schema=../schemas/policies.v1.json
```

or, for an overlay, `policies.overlay.v1.json`.
"""
_STATUS = """## Status

If the policies are custom resources, each has a status.
"""


def reference_page(kinds: Iterable[Kind]) -> str:
    every = tuple(kinds)
    status = describe(PolicyStatus)
    parts = [_OPENING, _overview(every), *map(_kind, every), _STATUS, *_tables("status", _Path("Status"), status)]
    return "\n".join(parts)


def _overview(kinds: tuple[Kind, ...]) -> str:
    rows = []
    for kind in kinds:
        scope = "namespace" if kind.namespaced else "cluster"
        rows.append((f"[{kind.name}](#{kind.name.lower()})", f"`{kind.short}`", scope, kind.shape.sentence))
    return _table(("kind", "short name", "scope", "description"), rows)


def _kind(kind: Kind) -> str:
    anchor = kind.name.lower()
    place = "Namespaced" if kind.namespaced else "Cluster-scoped"
    parts = [
        f"## {kind.name}\n\n{kind.shape.sentence}\n",
        f"{place}; `kubectl get {kind.plural}`, or `{kind.short}`. {_versions(kind)}.\n",
        *_tables(anchor, _Path(kind.name), kind.shape),
    ]
    if kind.rules:
        parts += ["Rules between fields:\n", _rules(kind)]
    if kind.report:
        report = describe(kind.report)
        parts += [f"### {kind.name} `status`\n\n{report.sentence}\n"]
        parts += _tables(f"{anchor}-status", _Path(kind.name, "status"), report)
    return "\n".join(parts)


def _versions(kind: Kind) -> str:
    return f"Version {choice(readable(kind.name, CONVERSIONS, VERSION))}"


def _rules(kind: Kind) -> str:
    return "".join(f"- {rule.code}: {without_figures(rule)}. Remedy: {rule.remedy}.\n" for rule in kind.rules)


class _Path(msgspec.Struct, frozen=True):
    kind: str
    path: str = ""

    def to(self, field: Field) -> "_Path":
        return _Path(self.kind, f"{self.path}.{field.name}{_steps(field.shape)}".lstrip("."))


def _tables(anchor: str, place: _Path, shape: Object) -> Iterator[str]:
    """Table of an object's fields, followed by those of nested objects."""
    yield _table(("field", "type", "default", "description"), (_row(anchor, field) for field in shape.fields))
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
            length = how_many(_from_one(bounded(shape)), "character")
            return shape.shaped.words if shape.shaped else f"a text of {length}"
        case _:
            return expected(shape)


def _merge_key_text(shape: ListOf) -> str:
    return f"; unique by {' and '.join(f'`{name}`' for name in shape.merge_key)}" if shape.merge_key else ""


def _from_one(within: Within) -> Within:
    """0 to 9 characters are described as at most 9."""
    return within if within.least else Within(most=within.most)


def _table(titles: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


# --- Versions of a kind: documents are converted between versions by pure functions on plain data.
#
# A conversion is one step between two versions. The shortest chain is found automatically. A conversion to an older
# version keeps fields that it lacks in an annotation, so that a round trip loses nothing.

Document = dict[str, Any]


class Conversion(msgspec.Struct, frozen=True):
    """One step. `convert` gets its own copy of a document, which it may change; its apiVersion is set afterwards."""

    kind: str
    from_version: str
    to_version: str
    convert: Callable[[Document], Document]


class NoConversion(ValueError):
    """No chain of conversions leads to the target version."""


# Every kind has one version so far.
CONVERSIONS: tuple[Conversion, ...] = ()


def convert(document: Mapping[str, Any], conversions: Iterable[Conversion], target: str) -> Document:
    """The same object in the version `target`, such as v2. Raises NoConversion. The argument does not change."""
    kind, version = str(document.get("kind")), str(document.get("apiVersion")).removeprefix(f"{GROUP}/")
    steps = tuple(step for step in conversions if step.kind == kind)
    chain = _chain(steps, version, target)
    if chain is None:
        known = " or ".join(readable(kind, steps, target))
        raise NoConversion(f"{kind} cannot be converted from version {version} to {target}: write it in {known}")
    converted = copy.deepcopy(dict(document))
    for step in chain:
        converted = {**step.convert(converted), "apiVersion": f"{GROUP}/{step.to_version}"}
    return converted


def readable(kind: str, conversions: Iterable[Conversion], target: str) -> tuple[str, ...]:
    """Versions of a kind that can be read as `target`, including itself."""
    steps = tuple(step for step in conversions if step.kind == kind)
    found, before = {target}, set[str]()
    while found != before:
        before = set(found)
        found |= {step.from_version for step in steps if step.to_version in found}
    return tuple(sorted(found))


def _chain(steps: tuple[Conversion, ...], version: str, target: str) -> tuple[Conversion, ...] | None:
    """The fewest steps between two versions; among equal chains, the one declared first."""
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


# --- Rules as text: without figures, or with the figures of an object for the API server.

_FIGURE = re.compile(r"\{([a-z_]+)\}")


def without_figures(rule: ValidationRule) -> str:
    """The rule for any object."""
    return _FIGURE.sub("", rule.sentence).replace("  ", " ").replace(" ,", ",").strip()


def refusal(rule: ValidationRule) -> str:
    """The complete message for an object that violates the rule."""
    return f"{without_figures(rule)} ({rule.code}): {rule.remedy}"


def refusal_with_figures(rule: ValidationRule, shape: Object) -> str | None:
    """The message as a CEL expression with the figures of the object; None if it has no figures."""
    named = _FIGURE.findall(rule.sentence)
    by_attribute = {field.attribute: field for field in shape.fields}
    for attribute in named:
        if not isinstance(by_attribute[attribute].shape, WholeNumber | Flag | Words | Choice | Measured):
            raise TypeError(f"{rule.code} names {attribute}, which is not a single word")
    # The cost estimate of the API server is unbounded for texts joined by +, but not for format.
    form = _FIGURE.sub("%s", f"{rule.sentence} ({rule.code}): {rule.remedy}".replace("%", "%%"))
    figures = ", ".join(f"self.{by_attribute[attribute].name}" for attribute in named)
    return f"{quoted(form)}.format([{figures}])" if named else None


def quoted(text: str) -> str:
    """A CEL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
