"""Reads a cluster from a file: a dump, or the output of kubectl get -o json."""

import codecs
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from reconciler.kube.decode import refused_words, understood
from reconciler.kube.placeholders import StandIn, each_once, parted
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import BadDump, read
from reconciler.plan.files.valid_names import of_observed

# --- Converts a cluster file in any common encoding to JSON; errors have line numbers.

REMEDY = "write the file with reconciler dump, or with the command that reconciler dump --kubectl prints"

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OFFSET = re.compile(r" \(byte (\d+)\)")


class ClusterFileError(ValueError):
    """A file that is not a cluster; lines count from 1, and line 0 means the whole file."""

    def __init__(self, file: str, sentence: str, remedy: str = REMEDY, line: int = 0) -> None:
        super().__init__(f"{file}:{line}: {sentence}" if line else f"{file}: {sentence}")
        self.file = file
        self.sentence = sentence
        self.remedy = remedy
        self.line = line


def as_json(name: str, content: bytes) -> bytes:
    """The content as JSON; converts YAML. Raises ClusterFileError."""
    content = _utf8(name, content)
    start = content.lstrip()[:1]
    if not start:
        raise ClusterFileError(name, "the file is empty")
    return content if start in b"{[" else _from_yaml(name, content)


def end_of_document(fault: Exception) -> int:
    """Offset of the end of a JSON document that another one follows, as after several calls of kubectl; else 0."""
    match = _OFFSET.search(str(fault)) if "trailing characters" in str(fault) else None
    return int(match[1]) - 1 if match else 0  # the error names the first surplus byte


def not_json(name: str, content: bytes, fault: Exception, before: int = 0) -> ClusterFileError:
    """The error for bytes that are not JSON or have a wrong structure; the document begins after `before` bytes."""
    if isinstance(fault, RecursionError):
        return ClusterFileError(name, "the content is nested too deeply")
    if isinstance(fault, UnicodeDecodeError):
        return ClusterFileError(name, "the file has bytes that are not UTF-8", "save the file as UTF-8")
    text = str(fault)
    if "truncated" in text:
        line = line_at(content, len(content.rstrip()))
        remedy = "the file is incomplete: write it again, and check the free disk space"
        return ClusterFileError(name, "the JSON is truncated", remedy, line)
    match = _OFFSET.search(text)
    if not match:
        return ClusterFileError(name, f"the content is not a list of objects: {text}")
    line = line_at(content, before + int(match[1]))
    text = _OFFSET.sub("", text) if line else text
    return ClusterFileError(name, text, line=line)


def line_at(content: bytes, offset: int) -> int:
    """The line number; 0 if the whole file is one line."""
    content = content.rstrip()
    return content.count(b"\n", 0, offset) + 1 if b"\n" in content and offset >= 0 else 0


def _utf8(name: str, content: bytes) -> bytes:
    """Handles UTF-16, which some shells write to files, and the byte order mark of some editors."""
    if content.startswith(codecs.BOM_UTF8):
        return content.removeprefix(codecs.BOM_UTF8)
    if not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as fault:
        raise ClusterFileError(name, "the file is not valid UTF-16", "save the file as UTF-8") from fault


def _from_yaml(name: str, content: bytes) -> bytes:
    """Refuses aliases: kubectl writes none, and a few lines of them can expand beyond the memory."""
    try:
        tokens = yaml.scan(content, Loader=_LOADER)
        alias = next((each for each in tokens if isinstance(each, yaml.AliasToken)), None)
        plain = None if alias else yaml.load(content, Loader=_LOADER)  # noqa: S506 - both are safe loaders
        result = msgspec.json.encode(plain)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 0
        raise ClusterFileError(name, f"the file is neither JSON nor YAML: {fault.problem}", line=line) from fault
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as fault:
        raise ClusterFileError(name, "the file is neither JSON nor YAML") from fault
    if alias:
        line = alias.start_mark.line + 1
        raise ClusterFileError(name, "the file has YAML aliases, which kubectl does not write", line=line)
    return result


NONE_OF_IT = "the file contains none; use --complete if the cluster has none"


class ClusterFile(msgspec.Struct, frozen=True):
    observed: Observed
    inputs: Inputs | None = None  # of a dump: policies and time
    notes: tuple[str, ...] = ()  # notes for readers of a plan made from the file


class _Opening(msgspec.Struct, rename="camel"):
    """The fields that identify the type of the file."""

    format: str = ""
    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] | None = None


class _FileMetadata(msgspec.Struct):
    """Accepts any structure: objects that violate Kubernetes' schema are set aside later."""

    name: Any = ""
    namespace: Any = ""
    uid: Any = ""
    labels: Any = None

    @property
    def place(self) -> tuple[str, str]:
        return _text(self.namespace), _text(self.name)


class _Peek(msgspec.Struct, rename="camel"):
    """The fields that show whether an object is used."""

    kind: str = ""
    api_version: str = ""
    metadata: _FileMetadata | None = None

    @property
    def group(self) -> str:
        group, slash, _ = self.api_version.partition("/")
        return group if slash else ""


def read_cluster(
    name: str, content: bytes, complete: bool = False, namespace: str = names.OWN_NAMESPACE
) -> ClusterFile:
    """Reads a cluster file.

    `complete`: kinds that are absent from the file are absent from the cluster. `namespace`: of the controller; a dump
    contains the namespace. Raises ClusterFileError.
    """
    content = as_json(name, content)
    reading = _KubectlReader(name, content, namespace)
    for opening in _documents(name, content):
        if opening.format:
            return _dump(name, content)
        reading.take_list(opening)
    return reading.result(complete)


def _documents(name: str, content: bytes) -> Iterator[_Opening]:
    """The lists of the file, one after the other, or a dump."""
    start, end = 0, len(content)
    while start < end:
        try:
            opening = msgspec.json.decode(content[start:end], type=_Opening)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
            if end == len(content) and (length := end_of_document(fault)):
                end = start + length
                continue
            raise not_json(name, content, fault, start) from fault
        yield _is_list(name, opening)
        start, end = end, len(content)


def _is_list(name: str, opening: _Opening) -> _Opening:
    if opening.items is None and opening.kind.endswith("List"):
        opening.items = []
    if opening.items is None and not opening.format:
        found = f"one {opening.kind}, not a list" if opening.kind else "no list of objects"
        raise ClusterFileError(name, f"the file contains {found}")
    return opening


def _dump(name: str, content: bytes) -> ClusterFile:
    try:
        inputs = read(content)
    except BadDump as fault:
        raise ClusterFileError(name, str(fault), fault.remedy) from fault
    return ClusterFile(inputs.observed, inputs)


class _KubectlReader:
    """Owner of the objects read so far from one kubectl file."""

    def __init__(self, name: str, content: bytes, namespace: str) -> None:
        self._name = name
        self._content = content
        self._namespace = namespace
        self._opening = _Opening()
        self._objects: dict[ResourceKind, dict[tuple[str, str], Any]] = defaultdict(dict)
        self._skipped: Counter[str] = Counter()
        self._other_versions: dict[ResourceKind, str] = {}
        self._met: set[ResourceKind] = set()
        self._cluster_uid = ""

    def take_list(self, opening: _Opening) -> None:
        self._opening = opening
        for raw in opening.items or ():
            self._take(raw)

    def _take(self, raw: msgspec.Raw) -> None:
        try:
            peek = msgspec.json.decode(raw, type=_Peek)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
            raise self._refused(raw, f"an item of the list is not a Kubernetes object: {fault}") from fault
        self._fill_in(peek)
        metadata = peek.metadata or _FileMetadata()
        if peek.kind == "Namespace" and not peek.group:
            self._cluster_uid = _text(metadata.uid) if metadata.name == "kube-system" else self._cluster_uid
        wanted = _BY_KIND.get((peek.group, peek.kind), ())
        if not wanted:
            self._skipped[f"{peek.kind}.{peek.group}" if peek.group else peek.kind] += 1
        for resource_kind in wanted:
            self._take_as(resource_kind, peek, raw)

    def result(self, complete: bool) -> ClusterFile:
        found: dict[str, Any] = defaultdict(tuple)
        aside: list[SetAside] = []
        for resource_kind in RESOURCE_KINDS:
            objects, set_aside = parted(tuple(self._objects[resource_kind].values()))
            found[resource_kind.field] += objects
            aside += set_aside
        observed = Observed(
            cluster_uid=self._cluster_uid,
            own_namespace=self._namespace,
            unread=self._unread(complete),
            set_aside=each_once(aside),
            **found,
        )
        if why := next(of_observed(observed), ""):
            raise ClusterFileError(self._name, f"no API server prints such an object: {why}")
        return ClusterFile(observed, None, tuple(self._notes(observed)))

    def _fill_in(self, peek: _Peek) -> None:
        """Output of the API server (kubectl get --raw) has kind and version only at the list."""
        if not peek.kind and self._opening.kind != "List":
            peek.kind = self._opening.kind.removesuffix("List")
            peek.api_version = self._opening.api_version

    def _take_as(self, resource_kind: ResourceKind, peek: _Peek, raw: msgspec.Raw) -> None:
        metadata = peek.metadata or _FileMetadata()
        if resource_kind.version and peek.api_version.rpartition("/")[2] != resource_kind.version:
            self._other_versions[resource_kind] = peek.api_version
            return
        self._met.add(resource_kind)
        key, _, value = resource_kind.selector.partition("=")
        if key and (metadata.labels if isinstance(metadata.labels, dict) else {}).get(key) != value:
            return
        if resource_kind.namespace_for(self._namespace) not in {"", metadata.namespace}:
            return
        found = understood(resource_kind, raw, peek.api_version)
        if isinstance(found, StandIn) and not found.metadata.name:
            raise self._refused(raw, refused_words(found))
        # The later one counts: kubectl prints an object once for each requested name of its kind.
        self._objects[resource_kind][metadata.place] = found

    def _refused(self, raw: msgspec.Raw, sentence: str) -> ClusterFileError:
        return ClusterFileError(self._name, sentence, line=line_at(self._content, self._content.find(bytes(raw))))

    def _unread(self, complete: bool) -> tuple[Unread, ...]:
        unread_kinds = []
        for resource_kind in RESOURCE_KINDS:
            if resource_kind in self._other_versions:
                why = f"the file has version {self._other_versions[resource_kind]}, not {resource_kind.version}"
                unread_kinds.append(Unread(resource_kind.title, why))
            elif resource_kind not in self._met and not complete:
                unread_kinds.append(Unread(resource_kind.title, NONE_OF_IT))
        return tuple(sorted(unread_kinds))

    def _notes(self, observed: Observed) -> list[str]:
        notes = [
            "snapshot time unknown (kubectl output has no timestamp): the current time is used, or the time of --now"
        ]
        # Each cluster runs pods in kube-system: only a file of that single namespace is suspicious.
        namespaces = {namespace for found in self._objects.values() for namespace, _ in found if namespace}
        if observed.pods and len(namespaces) == 1 and namespaces != {"kube-system"}:
            notes.append(f"all pods are in namespace {namespaces.pop()}: was the file written without -A?")
        if self._skipped:
            text = ", ".join(f"{count} {kind}" for kind, count in sorted(self._skipped.items()))
            notes.append(f"ignored: {text}")
        return notes


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_BY_KIND: defaultdict[tuple[str, str], list[ResourceKind]] = defaultdict(list)
for _kind in RESOURCE_KINDS:
    _BY_KIND[_kind.group, _kind.kind].append(_kind)
