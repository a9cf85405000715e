"""The bytes of a cluster file, in whatever way a shell wrote them, become JSON; faults are told with their line."""

import codecs
import re

import msgspec
import yaml

REMEDY = "write it with reconciler dump, or with the command line that reconciler dump --kubectl prints"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OFFSET = re.compile(r" \(byte (\d+)\)")


class ClusterFileError(ValueError):
    """A file that no cluster can be read from; lines count from 1, and 0 means the file as a whole."""

    def __init__(self, file: str, sentence: str, remedy: str = REMEDY, line: int = 0) -> None:
        super().__init__(f"{file}:{line}: {sentence}" if line else f"{file}: {sentence}")
        self.file = file
        self.sentence = sentence
        self.remedy = remedy
        self.line = line


def as_json(name: str, content: bytes) -> bytes:
    """The same as JSON, where it is YAML. Raises ClusterFileError."""
    content = _utf8(name, content)
    start = content.lstrip()[:1]
    if not start:
        raise ClusterFileError(name, "the file is empty")
    return content if start in b"{[" else _from_yaml(name, content)


def end_of_document(fault: Exception) -> int:
    """Where a JSON document ends after which another one follows, as of several calls of kubectl; else 0."""
    match = _OFFSET.search(str(fault)) if "trailing characters" in str(fault) else None
    return int(match[1]) - 1 if match else 0  # the fault names the byte behind the one that is too many


def not_json(name: str, content: bytes, fault: Exception, before: int = 0) -> ClusterFileError:
    """What to tell of bytes that turned out not to be JSON, or not of the right shape; the document begins after
    `before` bytes."""
    if isinstance(fault, RecursionError):
        return ClusterFileError(name, "it is nested too deeply to be a cluster")
    if isinstance(fault, UnicodeDecodeError):
        return ClusterFileError(name, "it holds bytes that are not UTF-8", "save the file as UTF-8")
    text = str(fault)
    if "truncated" in text:
        line = line_at(content, len(content.rstrip()))
        remedy = "it was not written to its end: write it again, and see that there is room on the disk"
        return ClusterFileError(name, "the JSON ends in the middle", remedy, line)
    match = _OFFSET.search(text)
    if not match:
        return ClusterFileError(name, f"it is not a list of objects: {text}")
    line = line_at(content, before + int(match[1]))
    text = _OFFSET.sub("", text) if line else text
    return ClusterFileError(name, text, line=line)


def line_at(content: bytes, offset: int) -> int:
    """0 where all of it is one line, which helps nobody to find the place."""
    content = content.rstrip()
    return content.count(b"\n", 0, offset) + 1 if b"\n" in content and offset >= 0 else 0


def _utf8(name: str, content: bytes) -> bytes:
    """Some shells write UTF-16 when output is sent to a file, and some editors put a mark before UTF-8."""
    if content.startswith(codecs.BOM_UTF8):
        return content.removeprefix(codecs.BOM_UTF8)
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as fault:
        raise ClusterFileError(name, "it begins as UTF-16 and goes on otherwise", "save the file as UTF-8") from fault


def _from_yaml(name: str, content: bytes) -> bytes:
    """Aliases are refused: kubectl writes none, and a few lines of them can stand for more than memory holds."""
    try:
        tokens = yaml.scan(content, Loader=_LOADER)
        alias = next((each for each in tokens if isinstance(each, yaml.AliasToken)), None)
        plain = None if alias else yaml.load(content, Loader=_LOADER)  # noqa: S506 - both are safe loaders
        result = msgspec.json.encode(plain)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 0
        raise ClusterFileError(name, f"it is neither JSON nor YAML: {fault.problem}", line=line) from fault
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as fault:
        raise ClusterFileError(name, "it is neither JSON nor YAML") from fault
    if alias:
        line = alias.start_mark.line + 1
        raise ClusterFileError(name, "it uses YAML aliases, which kubectl does not write", line=line)
    return result
