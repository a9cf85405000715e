"""Checks whether rendered manifests can be applied: kind, name, and for a NodePool the schema of Karpenter.

Each problem points to the template line that produced the faulty line.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model.bundle import Rendering
from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, NAMESPACE, why_no_name
from reconciler.model.manifest_rules import SMART_PODS, YIELDED, ManifestKind, faults
from reconciler.model.problem import Problem
from reconciler.policy.manifests.kubernetes_schema import Structural, Violation
from reconciler.policy.tree import Node, Path, places, plain, written
from reconciler.policy.words import choice, did_you_mean, meant
from reconciler.policy.yaml import read

MANIFEST = "RC411"

_METADATA = ("name", "namespace", "labels", "annotations")
_NAMESPACE, _KEY, _VALUE = (re.compile(each.pattern) for each in (NAMESPACE, LABEL_KEY, LABEL_VALUE))


Kinds = Mapping[str, ManifestKind]


class Yielded(msgspec.Struct, frozen=True):
    """One document of a rendered text: its data, and the line of each path's value."""

    data: Any
    line_of: Callable[[Path], int]


def manifests_of(
    rendering: Rendering, schema: Structural | None, kinds: Kinds = YIELDED
) -> tuple[list[Yielded], list[Problem]]:
    """The documents of a rendering, and all their problems; of a failed rendering, its problem."""
    if rendering.problem:
        return [], [rendering.problem]
    nodes, problems = read("", rendering.text.encode())
    documents = [_yielded(node) for node in nodes]
    return documents, [relocated(rendering, each) for each in problems] + check(rendering, documents, schema, kinds)


def check(
    rendering: Rendering, documents: Sequence[Yielded], schema: Structural | None, kinds: Kinds = YIELDED
) -> list[Problem]:
    """Problems of rendered documents. Without a schema, NodePools are not checked against Karpenter's."""
    problems = []
    for document in documents:
        violations = _violations(document.data, kinds)
        if not violations and schema and document.data["kind"] == "NodePool":
            # The API server validates metadata itself; a CRD schema does not contain it.
            violations = schema.violations({name: each for name, each in document.data.items() if name != "metadata"})
        problems += [problem_at(rendering, document, each) for each in violations]
    return problems


def problem_at(rendering: Rendering, document: Yielded, violation: Violation) -> Problem:
    """The problem for a violation, located at the template line that produced the value."""
    file, line = origin(rendering, document.line_of(violation.path))
    at = f"{written(violation.path)} " if violation.path else ""
    sentence = f"{_title(document.data)}: {at}{violation.sentence}"
    return Problem(file, line, 1 if line else 0, violation.code, sentence, violation.remedy)


def origin(rendering: Rendering, line: int) -> tuple[str, int]:
    """The template and template line that produced a line of the text."""
    lines = rendering.lines
    return lines[min(max(line, 1), len(lines)) - 1] if lines else ("", 0)


def relocated(rendering: Rendering, problem: Problem) -> Problem:
    """A problem of the rendered text, located at the template line."""
    file, line = origin(rendering, problem.line)
    return msgspec.structs.replace(problem, file=file, line=line, column=1 if line else 0, width=1)


def _yielded(node: Node) -> Yielded:
    marks = dict(places(node))

    def line_of(path: Path) -> int:
        while path and path not in marks:
            path = path[:-1]
        return (marks[path] if path else node.at).line

    return Yielded(plain(node), line_of)


def _title(manifest: Any) -> str:
    if not isinstance(manifest, dict):
        return "the manifest"
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = manifest.get("kind")
    return f"{kind if isinstance(kind, str) else 'the manifest'}{f'/{name}' if isinstance(name, str) else ''}"


def _violations(manifest: Any, kinds: Kinds) -> list[Violation]:
    """Problems of the outermost fields and metadata; if there are none, fields that the kind may not set."""
    violations = list(_of_any_kind(manifest, kinds))
    if violations or manifest["kind"] in SMART_PODS:  # `smart_pods` checks these kinds more strictly, all at once
        return violations
    found = faults(kinds[manifest["kind"]].shape, manifest)
    return [Violation(fault.path, MANIFEST, fault.sentence, fault.remedy) for fault in found]


def _of_any_kind(manifest: Any, kinds: Kinds) -> Iterator[Violation]:
    if not isinstance(manifest, dict):
        yield Violation((), MANIFEST, "must be a map", "begin with apiVersion, kind and metadata")
        return
    kind = manifest.get("kind")
    yields = kinds.get(kind) if isinstance(kind, str) else None
    if yields is None:
        text = f'is "{kind}", which templates may not render' if kind else "is missing"
        remedy = f"write {choice(tuple(kinds))}"
        if isinstance(kind, str) and kind in SMART_PODS:
            text = f'is "{kind}", which only the template of smart pods may render'
            remedy = "remove it; smart pods are rendered from spec.smartPods.template of the GpuPool"
        yield Violation(("kind",), MANIFEST, text, remedy)
        return
    if manifest.get("apiVersion") != yields.api_version:
        yield Violation(
            ("apiVersion",), MANIFEST, f"of a {kind} is {yields.api_version}", f"write {yields.api_version}"
        )
    for name in manifest:
        if name not in yields.fields:
            remedy = "" if meant(name, yields.fields) else "remove it"
            text = f"is not a field of {kind}{did_you_mean(name, yields.fields)}"
            yield Violation((name,), MANIFEST, text, remedy)
    if "spec" in yields.fields and not isinstance(manifest.get("spec"), dict):
        yield Violation(("spec",), MANIFEST, "must be a map", f"give the {kind} a spec")
    yield from _metadata_violations(manifest.get("metadata"), f"{kind}", yields.namespaced)


def _metadata_violations(metadata: Any, kind: str, namespaced: bool) -> Iterator[Violation]:
    if not isinstance(metadata, dict):
        yield Violation(("metadata",), MANIFEST, "must be a map with a name", "give it metadata: {name: …}")
        return
    name = metadata.get("name")
    if why := why_no_name(name) if isinstance(name, str) else NAME.words:
        text = f"must be {why}" if name else "is missing"
        yield Violation(("metadata", "name"), MANIFEST, text, "write name: {{ pool.name }}")
    for key, value in metadata.items():
        path: Path = ("metadata", key)
        if key not in _METADATA:
            yield Violation(path, MANIFEST, f"may not be set{did_you_mean(key, _METADATA)}", "remove it")
        elif key == "namespace" and not namespaced:
            yield Violation(path, MANIFEST, f"may not be set: {kind} is cluster-scoped", "remove it")
        elif key == "namespace" and not (isinstance(value, str) and _NAMESPACE.fullmatch(value)):
            yield Violation(path, MANIFEST, f"must be {NAMESPACE.words}", "write a namespace, or remove it")
        elif key in {"labels", "annotations"}:
            yield from _text_violations(value, path)


def _text_violations(texts: Any, path: Path) -> Iterator[Violation]:
    if not isinstance(texts, dict):
        yield Violation(path, MANIFEST, "must be a map", "write key: value")
        return
    for key, value in texts.items():
        if not _KEY.fullmatch(key):
            yield Violation((*path, key), MANIFEST, f"must be {LABEL_KEY.words}")
        if not isinstance(value, str):
            yield Violation((*path, key), MANIFEST, "must be a string", "put it in quotes")
        elif path[-1] == "labels" and not _VALUE.fullmatch(value):
            yield Violation((*path, key), MANIFEST, f"must be {LABEL_VALUE.words}")
