"""Reads apiVersion, kind and metadata of a document."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME
from reconciler.model.problem import Problem
from reconciler.policy.rules.kinds import KINDS
from reconciler.policy.shape import API_VERSION, GROUP, Kind
from reconciler.policy.tree import MOST_PROBLEMS, Mapping, Mark, Node, Scalar, describe_node, problem
from reconciler.policy.words import choice, did_you_mean, meant

# `render --as-resources` writes `bundle`. Rendered objects are read like handwritten ones.
_HEAD = ("apiVersion", "kind", "metadata", "bundle", "spec", "status")
_METADATA = ("name", "namespace", "labels", "annotations")
_NAME = re.compile(NAME.pattern)


class PolicyDocument(msgspec.Struct, frozen=True):
    """An object of one file; its spec is not parsed yet."""

    kind: Kind
    name: str
    spec: Node | None
    at: Mark  # where the document begins
    named_at: Mark  # where the name is
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        return f"{self.kind.name}/{self.name}"


_NAMED = "metadata.name"


def read_head(node: Node, kinds: Sequence[Kind] = KINDS) -> tuple[PolicyDocument | None, list[Problem]]:
    """The document as an object of one of the kinds; None if its head cannot be read."""
    if not isinstance(node, Mapping):
        remedy = f"begin with apiVersion: {API_VERSION}"
        return None, [problem(node.at, "RC101", f"expected an object, got {describe_node(node)}", remedy)]
    kind, problems = _kind(node, kinds)
    if not _is_meant_as_policy(node, kinds):
        return None, problems
    name, named_at, errors = _name(node, kind)
    problems += errors
    known = [key for key in _HEAD if key not in {"bundle", "status"}]
    for key, entry in node.entries.items():
        if len(problems) > MOST_PROBLEMS:
            break
        if key not in _HEAD:
            remedy = "" if meant(key, known) else "remove it"
            text = f'unknown key "{key}"{did_you_mean(key, known)}'
            problems.append(problem(entry.key.at, "RC107", text, remedy, key))
        elif key == "status":
            text = "the status is written by the reconciler and may not be set"
            problems.append(problem(entry.key.at, "RC107", text, "remove it", key))
    if kind is None or not name:
        return None, problems
    labels, annotations = _texts(node, "labels"), _texts(node, "annotations")
    return PolicyDocument(kind, name, node.get("spec"), node.at, named_at, labels, annotations), problems


def _is_meant_as_policy(node: Mapping, kinds: Sequence[Kind]) -> bool:
    """Whether a document has the group or a kind of policies: any other document gets no problems of its fields."""
    version, name = node.get("apiVersion"), node.get("kind")
    has_group = isinstance(version, Scalar) and version.text.startswith(f"{GROUP}/")
    return has_group or (isinstance(name, Scalar) and name.text in {kind.name for kind in kinds})


def _kind(node: Mapping, kinds: Sequence[Kind]) -> tuple[Kind | None, list[Problem]]:
    version, name = node.get("apiVersion"), node.get("kind")
    if not isinstance(version, Scalar) or not isinstance(name, Scalar) or not name.text:
        missing = "apiVersion" if not isinstance(version, Scalar) else "kind"
        return None, [
            problem(node.at, "RC101", f"{missing} is missing", f"begin with apiVersion: {API_VERSION} and a kind")
        ]
    named = {kind.name: kind for kind in kinds}
    if not version.text.startswith(f"{GROUP}/"):
        text = f"an object with apiVersion {version.text} is not a policy"
        remedy = f"if it is a policy, write {API_VERSION}; otherwise move the object out of this folder"
        return None, [problem(version.at, "RC102", text, remedy)]
    kind = named.get(name.text)
    if kind is None:
        close = meant(name.text, named)
        text = f'there is no kind "{name.text}"' + (f'; did you mean "{close}"?' if close else "")
        # If the intended kind is clear, the rest of the document is read as well, to report all its problems together.
        remedy = "" if close else f"write {choice(tuple(named))}"
        return named.get(close), [problem(name.at, "RC102", text, remedy, "kind")]
    if version.text != API_VERSION:
        text = f"{kind.name} has no version {version.text.removeprefix(f'{GROUP}/')}"
        return kind, [problem(version.at, "RC102", text, f"write {API_VERSION}")]
    return kind, []


def _name(node: Mapping, kind: Kind | None) -> tuple[str, Mark, list[Problem]]:
    metadata = node.get("metadata")
    if not isinstance(metadata, Mapping):
        at = metadata.at if metadata else node.at
        return "", at, [problem(at, "RC109", "metadata.name is missing", "add metadata: {name: ...}", _NAMED)]
    problems: list[Problem] = []
    known = [key for key in _METADATA if key != "namespace" or (kind and kind.namespaced)]
    for key, entry in metadata.entries.items():
        if len(problems) > MOST_PROBLEMS:
            break
        if key not in known:
            text, remedy = f'unknown key "{key}"{did_you_mean(key, known)}', "" if meant(key, known) else "remove it"
            if key == "namespace" and kind:
                text, remedy = f"a {kind.name} belongs to the cluster, not to a namespace", "remove the namespace"
            problems.append(problem(entry.key.at, "RC107", text, remedy))
    problems += [*_noted(metadata, "labels"), *_noted(metadata, "annotations")]
    name = metadata.get("name")
    if not isinstance(name, Scalar) or name.value is None:
        at = name.at if name else metadata.at
        return "", at, [*problems, problem(at, "RC109", "metadata.name is missing", "add a name", _NAMED)]
    if kind and len(name.text) > kind.longest_name:
        text = f"metadata.name: expected at most {kind.longest_name} characters, got {len(name.text)}"
        return "", name.at, [*problems, problem(name.at, "RC109", text, "shorten it", _NAMED)]
    if not isinstance(name.value, str) or not _NAME.fullmatch(name.value):
        text = f"metadata.name: expected {NAME.words}, got {describe_node(name)}"
        return "", name.at, [*problems, problem(name.at, "RC109", text, _better_name(name.text), _NAMED)]
    return name.text, name.at, problems


def _noted(metadata: Mapping, field: str) -> Iterator[Problem]:
    """Problems of labels and annotations: both map strings to strings, and labels have a restricted syntax."""
    noted, above = metadata.get(field), f"metadata.{field}"
    if noted is None or (isinstance(noted, Scalar) and noted.value is None):
        return
    if not isinstance(noted, Mapping):
        yield problem(noted.at, "RC103", f"{above}: expected a map, got {describe_node(noted)}", field=above)
        return
    for key, entry in noted.entries.items():
        value, at = entry.value, f"{above}.{key}"
        if not re.fullmatch(LABEL_KEY.pattern, key):
            yield problem(entry.key.at, "RC106", f'{above}: expected {LABEL_KEY.words}, got "{key}"', field=above)
        if not isinstance(value, Scalar) or not isinstance(value.value, str):
            text = f"{at}: expected a string, got {describe_node(value)}"
            yield problem(
                value.at, "RC103", text, f'write "{value.text}" in quotes' if isinstance(value, Scalar) else "", at
            )
        elif field == "labels" and not re.fullmatch(LABEL_VALUE.pattern, value.text):
            yield problem(
                value.at, "RC106", f"{at}: expected {LABEL_VALUE.words}, got {describe_node(value)}", field=at
            )


def _texts(node: Mapping, field: str) -> tuple[tuple[str, str], ...]:
    """Labels or annotations, sorted. Leaves out entries that `_noted` refuses for their type."""
    metadata = node.get("metadata")
    noted = metadata.get(field) if isinstance(metadata, Mapping) else None
    entries = noted.entries.items() if isinstance(noted, Mapping) else ()
    values = ((key, entry.value.value) for key, entry in entries if isinstance(entry.value, Scalar))
    return tuple(sorted((key, value) for key, value in values if isinstance(value, str)))


def _better_name(text: str) -> str:
    better = re.sub(r"[^a-z0-9.-]+", "-", text.lower()).strip("-.")
    return f'write "{better}"' if better and _NAME.fullmatch(better) else ""


# --- Environments: base and overlays by folder, merged by kind and name.
#
# Maps merge, lists replace, null restores the default. A file below `overlays/NAME/` belongs to the environment NAME;
# every other file belongs to base and thus to all environments.

BASE = "base"
_OVERLAYS = "overlays"


class Layered(msgspec.Struct, frozen=True):
    """An object of one environment: its first document, and the merged spec, labels and annotations."""

    document: PolicyDocument
    spec: Node | None
    labels: tuple[tuple[str, str], ...]
    annotations: tuple[tuple[str, str], ...]
    in_base: bool


def environment_of(path: str) -> str:
    """The environment that a file belongs to."""
    parts = path.split("/")
    for folder, name in itertools.pairwise(parts[:-1]):
        if folder == _OVERLAYS:
            return name
    return BASE


def environments(paths: Iterable[str]) -> tuple[str, ...]:
    """Base, followed by each overlay, sorted by name."""
    return BASE, *sorted({environment_of(path) for path in paths} - {BASE})


def layered(
    documents: Sequence[PolicyDocument], environment: str, *, by_field: bool = False
) -> tuple[list[Layered], list[Problem]]:
    """The objects of one environment, sorted by name, and problems for objects that one layer declares twice."""
    layers: dict[tuple[str, str], list[PolicyDocument]] = {}
    problems = []
    for wanted in dict.fromkeys((BASE, environment)):
        seen: dict[tuple[str, str], PolicyDocument] = {}
        for document in documents:
            if environment_of(document.at.file) != wanted:
                continue
            key = document.kind.name, document.name
            if key in seen:
                first = seen[key].at
                text = f"{document.title} is declared twice"
                place = first.file if by_field else f"{first.file}:{first.line}"
                remedy = f"first declared at {place}; remove one of them"
                if document.at.file.split("/")[-2:-1] == [_OVERLAYS]:
                    remedy += (
                        f", or move this file into {_OVERLAYS}/NAME/ to make it an overlay for the environment NAME"
                    )
                problems.append(problem(document.named_at, "RC110", text, remedy))
                continue
            seen[key] = document
            layers.setdefault(key, []).append(document)
    return [_merged(stack) for _, stack in sorted(layers.items())], problems


def _merged(stack: list[PolicyDocument]) -> Layered:
    base, *overlays = stack
    spec = base.spec
    for overlay in overlays:
        if overlay.spec is not None:
            spec = overlay.spec if spec is None else merge(spec, overlay.spec)
    labels = dict(pair for each in stack for pair in each.labels)
    annotations = dict(pair for each in stack for pair in each.annotations)
    noted = tuple(sorted(labels.items())), tuple(sorted(annotations.items()))
    return Layered(base, spec, *noted, environment_of(base.at.file) == BASE)


def merge(base: Node, over: Node) -> Node:
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    entries, removed = dict(base.entries), dict[str, Mark]()
    for name, entry in over.entries.items():
        if isinstance(entry.value, Scalar) and entry.value.value is None:
            if entries.pop(name, None) is not None:
                removed[name] = entry.key.at
        elif name in entries:
            merged = merge(entries[name].value, entry.value)
            entries[name] = msgspec.structs.replace(entry, value=merged)
        else:
            entries[name] = entry
    return Mapping(entries, base.at, removed)
