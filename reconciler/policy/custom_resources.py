"""Writes policies as custom resources, and reports their problems by field."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Bundle, Text
from reconciler.model.desired import Declared, Desired
from reconciler.model.problem import Problem
from reconciler.policy.rules.kinds import kind_named
from reconciler.policy.shape import API_VERSION, Kind, plainly, with_item_defaults
from reconciler.policy.tree import Mapping, Node, Path, written
from reconciler.policy.tree import Sequence as Items
from reconciler.policy.yaml import read

# --- Problems of custom resources are located by object and field, since users do not see the lines of the text read.

Places = dict[tuple[int, int], str]


def by_field(bundle: Bundle, problems: Sequence[Problem]) -> list[Problem]:
    """The same problems, each located by field: a sentence that does not name the field begins with the field."""
    wanted = {each.file for each in problems}
    fields = {text.path: _fields(text) for text in bundle.policies if text.path in wanted}
    return [_with_field(each, fields[each.file]) if each.file in fields else each for each in problems]


def _with_field(problem: Problem, fields: Places) -> Problem:
    field = fields.get((problem.line, problem.column), "")
    sentence = problem.sentence if not field or _is_within(problem.field, field) else f"{field}: {problem.sentence}"
    return msgspec.structs.replace(problem, line=0, column=0, width=1, excerpt="", sentence=sentence)


def _is_within(field: str, other: str) -> bool:
    """Whether `field` is `other` or a part of `other`."""
    return field == other or field.startswith((f"{other}.", f"{other}["))


def _fields(text: Text) -> Places:
    """The field at each line and column."""
    documents, _ = read(text.path, text.content)
    result: Places = {}
    for document in documents:
        _note(result, document, ())
    return result


def _note(found: Places, node: Node, path: Path) -> None:
    found.setdefault((node.at.line, node.at.column), written(path))
    match node:
        case Items(items=items):
            for number, item in enumerate(items):
                _note(found, item, (*path, number))
        case Mapping(entries=entries):
            for name, entry in entries.items():
                found.setdefault((entry.key.at.line, entry.key.at.column), written((*path, name)))
                _note(found, entry.value, (*path, name))


# --- The policies of one environment as custom resources. Each names the digest and the size of its bundle.

Document = dict[str, Any]


def custom_resources(wish: Desired) -> tuple[Document, ...]:
    """In the order of `wish.declared`. Labels and annotations of the policies are kept.

    The field `bundle` repeats the digest: a change of an annotation does not increase metadata.generation, so tools
    such as Flux would take the status of the previous bundle for the status of this bundle.
    """
    digest = digest_of(wish)
    notes = {
        names.BUNDLE_DIGEST: digest,
        names.BUNDLE_COUNT: str(len(wish.declared)),
        names.BUNDLE_REVISION: wish.revision,
        names.ENVIRONMENT: wish.environment,
    }
    following = (*wish.declared[1:], *wish.declared[:1])
    found = []
    for each, after in zip(wish.declared, following, strict=True):
        annotations = {**dict(each.annotations), **notes, names.BUNDLE_NEXT: f"{after.kind}/{after.name}"}
        labels = {"labels": dict(each.labels)} if each.labels else {}
        metadata = {"name": each.name, **labels, "annotations": annotations}
        spec = with_item_defaults(_kind(each).shape, each.spec)
        head = {"apiVersion": API_VERSION, "kind": each.kind, "metadata": metadata}
        found.append({**head, "bundle": digest, "spec": spec})
    return tuple(found)


def digest_of(wish: Desired) -> str:
    """Digest of a bundle. Includes the revision, so that each applied object belongs to exactly one commit."""
    content = (wish.revision, wish.environment, [_document(each) for each in wish.declared])
    return f"sha256:{sha256(msgspec.json.encode(content, order='sorted')).hexdigest()}"


def _document(declared: Declared[Any]) -> Document:
    """Only values that differ from the defaults: a new default in a later version does not change the digest."""
    spec = plainly(_kind(declared).shape, declared.spec)
    return {"apiVersion": API_VERSION, "kind": declared.kind, "metadata": {"name": declared.name}, "spec": spec}


def _kind(declared: Declared[Any]) -> Kind:
    kind = kind_named(declared.kind)
    if kind is None:
        raise AssertionError(f"{declared.kind} was declared, but no kind has this name")
    return kind
