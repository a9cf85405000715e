"""Problems of custom resources, told by object and field: the lines of the text that was read are nobody's."""

from collections.abc import Sequence

import msgspec

from reconciler.model.bundle import Bundle, Text
from reconciler.model.problem import Problem
from reconciler.policy.tree import Mapping, Node, Path, written
from reconciler.policy.tree import Sequence as Items
from reconciler.policy.yaml.yaml_text import read

Places = dict[tuple[int, int], str]


def by_field(bundle: Bundle, problems: Sequence[Problem]) -> list[Problem]:
    """The same problems; those of an object begin with the field, unless their sentence names it, or a part of it."""
    wanted = {each.file for each in problems}
    fields = {text.path: _fields(text) for text in bundle.policies if text.path in wanted}
    return [_with_field(each, fields[each.file]) if each.file in fields else each for each in problems]


def _with_field(problem: Problem, fields: Places) -> Problem:
    field = fields.get((problem.line, problem.column), "")
    sentence = problem.sentence if not field or _is_within(problem.field, field) else f"{field}: {problem.sentence}"
    return msgspec.structs.replace(problem, line=0, column=0, width=1, excerpt="", sentence=sentence)


def _is_within(field: str, other: str) -> bool:
    """Whether it is the other field, or a part of it."""
    return field == other or field.startswith((f"{other}.", f"{other}["))


def _fields(text: Text) -> Places:
    """Which field stands where."""
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
