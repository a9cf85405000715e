"""Strict YAML: only the subset that all YAML parsers read in the same way."""

import re
from collections.abc import Iterator
from decimal import Decimal
from unicodedata import name

import msgspec
import yaml

from reconciler.model.problem import Problem
from reconciler.policy.tree import MOST_PROBLEMS, MapEntry, Mapping, Mark, Node, Scalar, Sequence, problem

# --- Characters that make a text look different to a reviewer than to a parser. Policies and templates may not contain
# them: line breaks that not every tool recognizes, other control characters, and text direction controls.
#
# A comment that ends at such a line break hides the text behind it on the same displayed line: `# harmless<CR>mode:
# Enforce`.

CODE = "RC011"

_HIDING = re.compile(
    "\r(?!\n)"  # a carriage return that is not part of a line break
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"  # other control characters, including next line (NEL)
    "|[\u2028\u2029]"  # line and paragraph separator
    "|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # text direction controls
    "|[\U000e0000-\U000e007f]"  # tags: a hidden alphabet
)
_NAMES = {"\r": "carriage return", "\x0b": "vertical tab", "\x0c": "form feed", "\x85": "next line"}


def hidden(file: str, text: str) -> Problem | None:
    """The first such character of a text; one is enough to refuse the file."""
    match = _HIDING.search(text)
    if match is None:
        return None
    before = text[: match.start()]
    line, column = before.count("\n") + 1, match.start() - (before.rfind("\n") + 1) + 1
    character = match.group()
    called = _NAMES.get(character) or name(character, "control character").lower()
    sentence = f"the character U+{ord(character):04X} ({called}) is not allowed: it can hide text from a reviewer"
    remedy = "remove it; use an escape in double quotes in values, and LF or CR LF line endings"
    return Problem(file, line, column, CODE, sentence, remedy)


# --- The value of an unquoted word, if all YAML parsers agree on it; otherwise the word must be quoted.
#
# YAML 1.1, which most tools still read, takes `no` for false, `012` for ten and `12:30:45` for 45,045; YAML 1.2 does
# not. Several tools read a policy in Git, so each such word is refused with a suggestion.

MAX_DIGITS = 18

_TRUTH = {"true": True, "false": False}
_OTHER_TRUTHS = dict.fromkeys(("y", "yes", "on", "true"), "true") | dict.fromkeys(("n", "no", "off", "false"), "false")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)$")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+$")
_QUOTED = 'write "{text}" in quotes'
_QUOTED_OR_NUMBER = f"{_QUOTED}, or a plain number"
_BASE_60 = "is the number {base_60} to some YAML parsers"
_NUMBER_OR_STRING = "is a number to some YAML parsers and a string to others"
# pattern of a whole word, problem, remedy; first match wins
_AMBIGUOUS = tuple(
    (re.compile(pattern + "$", re.IGNORECASE), text, remedy)
    for pattern, text, remedy in (
        (r"[-+]?\.(inf|nan)", "is not a finite number", _QUOTED_OR_NUMBER),
        (r"[-+]?0[0-9_]+", "is an octal number to some YAML parsers", _QUOTED_OR_NUMBER),
        (r"[-+]?0[xob][0-9a-f_]+", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", _BASE_60, _QUOTED),
        (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", "is a date to some YAML parsers and a string to others", _QUOTED),
        (r"[-+]?([0-9][0-9_]*)?\.?[0-9_]*(e[-+]?[0-9]+)", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"\+[0-9][0-9_.]*", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"-?[0-9]+_[0-9_]*(\.[0-9_]*)?", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"-?(\.[0-9][0-9_]*|[0-9]+\.)", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"-?0[0-9]*\.[0-9]+", _NUMBER_OR_STRING, _QUOTED_OR_NUMBER),
        (r"=", "has a special meaning to some YAML parsers", _QUOTED),
    )
)


class Ambiguous(ValueError):
    """An unquoted word that YAML parsers read differently."""

    def __init__(self, code: str, sentence: str, remedy: str) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.remedy = code, sentence, remedy


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted word; raises Ambiguous."""
    if text in {"", "~", "null"}:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if _INTEGER.match(text):
        if len(text) > MAX_DIGITS:
            raise Ambiguous(
                "RC010", f"a number of {len(text)} digits is too large", f"write at most {MAX_DIGITS} digits"
            )
        return int(text)
    if _DECIMAL.match(text) and len(text) <= 2 * MAX_DIGITS:
        return float(text)
    _refuse(text)
    return text


def _refuse(text: str) -> None:
    if text.lower() in _OTHER_TRUTHS:
        truth = _OTHER_TRUTHS[text.lower()]
        sentence = f'"{text}" is {truth} to some YAML parsers and a string to others'
        raise Ambiguous("RC009", sentence, f'write {truth}, or "{text}" in quotes')
    if text.lower() == "null":
        raise Ambiguous("RC009", f'"{text}" is null to some YAML parsers', f'write null, or "{text}" in quotes')
    if len(text) > 64 or text[0] not in "+-.0123456789=":
        return
    for pattern, sentence, remedy in _AMBIGUOUS:
        if pattern.match(text):
            said = sentence.format(base_60=_base_60(text)) if sentence == _BASE_60 else sentence
            raise Ambiguous("RC009", f'"{text}" {said}', remedy.format(text=text))


def _base_60(text: str) -> str:
    """12:30:45 as YAML 1.1 reads it: 45045."""
    value = Decimal(0)
    for part in text.lstrip("+-").replace("_", "").split(":"):
        value = value * 60 + Decimal(part.removesuffix("."))
    return f"{'-' if text.startswith('-') else ''}{value:f}"


# --- Strict reader: ambiguous or dangerous YAML becomes a Problem.
#
# The parser's events are assembled one by one into a tree. There is no recursion, so depth uses no stack, and each
# limit is checked before the next event is read. An alias counts with the full size of its target each time it is used,
# which defuses alias bombs.

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 100_000

_NO_ALIAS = "write the value here, without an alias"

# libyaml's parser if PyYAML was built with it, as its wheels are: an order of magnitude faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_BRACKETS = {"while parsing a flow sequence": "[", "while parsing a flow mapping": "{"}


class _Refused(Exception):
    """The document cannot be read further."""

    def __init__(self, found: Problem) -> None:
        super().__init__(found.sentence)
        self.problem = found


class _Open(msgspec.Struct):
    """A list or map that is still open."""

    at: Mark
    is_map: bool
    anchor: str | None
    items: list[Node]
    entries: dict[str, MapEntry]
    size: int = 1
    key: Scalar | None = None
    skipped: bool = False  # the next value belongs to a refused key


def _remedy_of(error: yaml.MarkedYAMLError) -> str:
    """What to change after a syntax error, if its cause is clear."""
    opened, problem_text = error.context_mark, error.problem or ""
    if error.context == "while scanning an alias":
        # An unquoted star is parsed as an alias: poolNames: [*], or schedule: * 7 * * 1-5.
        return 'write "*" in quotes'
    if "tab character" in problem_text:
        return "indent with spaces"
    if "cannot start any token" in problem_text:
        return "indent with spaces, not with tabs; put a text that begins with %, @ or ` in quotes"
    if error.context == "while parsing a flow node":
        return "write a value, or close the bracket"
    if opened and error.context in _BRACKETS:
        return f"close the {_BRACKETS[error.context]} of line {opened.line + 1}, or write a comma between its items"
    return ""


def read(file: str, content: bytes) -> tuple[list[Node], list[Problem]]:
    """The documents of one file, and their problems. Empty documents are left out."""
    if len(content) > MAX_BYTES:
        sentence = f"the file has {len(content):,} bytes, more than {MAX_BYTES:,}"
        return [], [Problem(file, 0, 0, "RC003", sentence, "split it")]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        sentence = f"byte {error.start + 1} of the file is not UTF-8"
        return [], [Problem(file, line, 1, "RC001", sentence, "save the file as UTF-8")]
    if found := hidden(file, text):
        return [], [found]
    reader = _YamlReader(file)
    try:
        documents = list(reader.documents(text))
    except _Refused as refused:
        return [], [*reader.problems, refused.problem]
    return documents, reader.problems


class _YamlReader:
    """Owner of the state of one file while it is read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int] | None] = {}  # None: not closed yet
        self._nodes = 0
        self._done: Node | None = None

    def documents(self, text: str) -> Iterator[Node]:
        for event in self._events(text):
            if len(self.problems) > MOST_PROBLEMS:
                return
            match event:
                case yaml.DocumentStartEvent():
                    self._anchors, self._done = {}, None
                case yaml.DocumentEndEvent():
                    empty = isinstance(self._done, Scalar) and self._done.value is None
                    if self._done is not None and not empty:
                        yield self._done
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                    self._begin(event)
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._end()

    def _events(self, text: str) -> Iterator[yaml.Event]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.reader.ReaderError as error:
            line = text[: error.position].count("\n") + 1
            sentence = f"the character {error.character!r} is not allowed"
            raise _Refused(Problem(self.file, line, 1, "RC001", sentence, "remove it")) from None
        except yaml.MarkedYAMLError as error:
            at = error.problem_mark or error.context_mark
            sentence = ", ".join(part for part in (error.context, error.problem) if part)
            line, column = (at.line + 1, at.column + 1) if at else (0, 0)
            remedy = _remedy_of(error)
            raise _Refused(Problem(self.file, line, column, "RC001", f"invalid YAML: {sentence}", remedy)) from None

    def _mark(self, event: yaml.Event, width: int = 1) -> Mark:
        at = event.start_mark
        line, column = (at.line + 1, at.column + 1) if at else (0, 0)
        return Mark(self.file, line, column, max(1, width))

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        start, end = event.start_mark, event.end_mark
        at = self._mark(event, end.column - start.column if start and end and start.line == end.line else 1)
        doubtful = self._refuse_tag(event.tag, at)
        value: str | int | float | bool | None = event.value
        if event.implicit[0] and not event.style:
            try:
                value = resolve(event.value)
            except Ambiguous as ambiguous:
                self.problems.append(problem(at, ambiguous.code, ambiguous.sentence, ambiguous.remedy))
                doubtful = True
        node = Scalar(value, event.value, at, doubtful)
        self._remember(event.anchor, node, 1)
        self._add(node, 1)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        at = self._mark(event)
        self._refuse_tag(event.tag, at)
        if len(self._open) >= MAX_DEPTH:
            raise _Refused(
                problem(at, "RC004", f"nested deeper than {MAX_DEPTH} levels", "no policy needs more than 8 levels")
            )
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(at, isinstance(event, yaml.MappingStartEvent), event.anchor, [], {}))

    def _end(self) -> None:
        done = self._open.pop()
        node: Node = Mapping(done.entries, done.at) if done.is_map else Sequence(tuple(done.items), done.at)
        self._remember(done.anchor, node, done.size)
        self._add(node, done.size)

    def _alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        at = self._mark(event, len(name) + 1)
        if name not in self._anchors:
            raise _Refused(problem(at, "RC005", f'the anchor "{name}" is not defined above', _NO_ALIAS))
        known = self._anchors[name]
        if known is None:
            text = f'the alias "{name}" refers to a value that contains it'
            raise _Refused(problem(at, "RC005", text, _NO_ALIAS))
        self._add(*known, at)

    def _remember(self, anchor: str | None, node: Node, size: int) -> None:
        if anchor:
            self._anchors[anchor] = node, size

    def _add(self, node: Node, size: int, at: Mark | None = None) -> None:
        """Adds a finished node to its parent. `size` is the node's expanded size."""
        self._nodes += size if at else 1
        if self._nodes > MAX_NODES:
            text = f"with aliases expanded, the file has more than {MAX_NODES:,} values"
            raise _Refused(problem(at or node.at, "RC005", text, "write the values without aliases, or split the file"))
        if not self._open:
            self._done = node
            return
        parent = self._open[-1]
        parent.size += size
        if not parent.is_map:
            parent.items.append(node)
        elif parent.key is None and not parent.skipped:
            self._key(parent, node)
        else:
            if parent.key is not None:
                parent.entries[parent.key.text] = MapEntry(parent.key, node)
            parent.key, parent.skipped = None, False

    def _key(self, parent: _Open, node: Node) -> None:
        found = self._key_problem(parent, node)
        if found:
            self.problems.append(found)
            parent.skipped = True
        elif isinstance(node, Scalar):
            parent.key = node

    def _key_problem(self, parent: _Open, node: Node) -> Problem | None:
        if not isinstance(node, Scalar):
            return problem(node.at, "RC007", "a key must be a string", "write a name")
        if node.text == "<<":
            return problem(node.at, "RC006", "merge keys are not supported", "write the keys here, without <<")
        if not isinstance(node.value, str):
            return problem(
                node.at, "RC007", f"the key {node.text or 'null'} is not a string", f'write "{node.text}" in quotes'
            )
        if node.text in parent.entries:
            first = parent.entries[node.text].key.at.line
            return problem(
                node.at,
                "RC002",
                f'the key "{node.text}" is used twice',
                f"first used in line {first}; remove one of them",
            )
        return None

    def _refuse_tag(self, tag: str | None, at: Mark) -> bool:
        if tag is not None and tag != "!":
            text = f"the tag {tag.replace('tag:yaml.org,2002:', '!!')} is not allowed: policies are plain data"
            self.problems.append(problem(at, "RC008", text, "remove it"))
            return True
        return False
