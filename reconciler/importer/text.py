"""Text written by an import: YAML for people, and notes about what a person must check."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from reconciler.importer.imported_pool import ImportedPool, is_shared, of_type
from reconciler.importer.portion import can_say
from reconciler.model.quantity import Quantity
from reconciler.policy.rules.hardware import NODES, OF_NODES, invalid_amounts, unknown_names
from reconciler.policy.yaml import Ambiguous, resolve

# Refused by `validate` in every field that may contain it.
UNKNOWN = "UNKNOWN"
_SHOWN = 5


class ImportNote(msgspec.Struct, frozen=True):
    """Unknown data, or a setting that the policy expresses only partly."""

    file: str
    sentence: str
    remedy: str


def notes(pool: ImportedPool, unread: str) -> Iterator[ImportNote]:
    """All notes about one pool; `unread` is why its machines could not be read, if so."""
    for tell in (_devices, _mixed, _types, _capacity, _limits):
        for sentence, remedy in tell(pool):
            reason = f" ({unread})" if unread and tell in {_devices, _types, _capacity} else ""
            yield ImportNote(pool.policy_file, sentence + reason, remedy)


NoteTexts = Iterator[tuple[str, str]]


def _devices(pool: ImportedPool) -> NoteTexts:
    usual = pool.gpus.usual
    if not usual.model:
        yield "the model of its GPUs is unknown", "write spec.devices.model, such as a100 or l4"
    if not usual.count:
        yield "the number of GPUs per node is unknown", "write spec.devices.count"
    elif not can_say("devices", {"model": "a", "count": usual.count, "memory": "1Gi"}):
        yield f"its nodes have {usual.count} GPUs, more than a GpuPool allows", "check whether its nodes share GPUs"
    if not usual.memory:
        yield "the memory of a GPU is unknown", "write spec.devices.memory of one GPU, such as 40Gi"
    if any(map(is_shared, pool.machines)):
        yield "its nodes share or partition GPUs, but devices counts whole GPUs", "check spec.devices"


def _mixed(pool: ImportedPool) -> NoteTexts:
    if pool.other_types:
        text = f"its nodes may have other GPUs than most, or none: {_listed(pool.other_types)}"
        yield text, "create a separate NodePool for those types; until then they count as in spec.devices"
    if errors := [name for name in pool.types if not of_type(name).agrees(pool.gpus.usual)]:
        text = f"GPU labels of its nodes contradict {_listed(errors)}, and `validate` refuses that (RC307)"
        yield text, "check the labels of its nodes, and correct spec.devices"


def _types(pool: ImportedPool) -> NoteTexts:
    if not pool.types:
        yield "the instance types of its nodes are unknown", "write spec.instanceTypes"
    elif not pool.asked:
        text = "the NodePool lists no instance types; spec.instanceTypes lists those of its live nodes"
        yield text, "add other possible types to spec.instanceTypes; the NodePool does not follow the list"
    if pool.unlisted_types:
        text = f"a GpuPool cannot list all of its instance types; omitted: {_listed(pool.unlisted_types)}"
        yield text, "nothing to do: its template or spec.requirements still includes them"


def _capacity(pool: ImportedPool) -> NoteTexts:
    if pool.lifeless_types:
        text = f"capacity and GPUs are unknown without live nodes of {_listed(pool.lifeless_types)}"
        yield text, "write their capacity, such as {cpu: 96, memory: 1152Gi, pods: 250}, and check them against devices"
    if not pool.portion.follows_capacity_types and not pool.living_capacity_types:
        text = "the NodePool does not set a capacity type, and has no live nodes"
        yield text, "check spec.capacityTypes, by default on-demand"


def _limits(pool: ImportedPool) -> NoteTexts:
    kept = pool.portion.kept.limits
    for each in unknown_names("spec.limits", sorted(kept), (*OF_NODES, NODES)):
        if each.severity == "error":
            text = f"the NodePool has an ineffective limit, which its template keeps: {each.sentence}"
            yield text, f"remove the limit from the NodePool and the template, and {each.remedy} in spec.limits"
    for each in invalid_amounts("spec.limits", dict(_readable(kept))):
        text = f"its template keeps an implausible limit of the NodePool: {each.sentence}"
        yield text, "correct the limit in the NodePool, remove it from the template, and write it in spec.limits"


def _readable(limits: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    for name, amount in limits.items():
        with suppress(ValueError):
            yield name, Quantity.parse(str(amount))


def _listed(values: Iterable[str]) -> str:
    """The first values, quoted if needed."""
    lines = list(values)
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return flow(lines[:_SHOWN])[1:-1] + more


# --- Writes plain data as YAML for people: short values on one line, long ones on several, quotes only if needed.
#
# The text may be part of a template: quoted text contains nothing that Jinja would treat as a tag.

WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_%-]{0,62}")
# Quotes, other than visible ASCII, and a brace that would begin a template tag.
_ESCAPED = re.compile(r'[^ -~]|["\\]|\{(?=[{%#])')
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def entries(fields: Mapping[str, Any], indent: int) -> list[str]:
    """Lines of a map's entries."""
    return [line for name, value in fields.items() for line in entry(name, value, indent)]


def entry(name: str, value: Any, indent: int) -> list[str]:
    key = " " * indent + f"{_scalar(name)}:"
    short = f"{key} {flow(value)}"
    if len(short) <= WIDTH or not isinstance(value, dict | list) or not value:
        return [short]
    return [key, *(entries(value, indent + 2) if isinstance(value, dict) else items(value, indent + 2))]


def items(values: Sequence[Any], indent: int) -> list[str]:
    lines = []
    for value in values:
        dash = " " * indent + "- "
        short = dash + flow(value)
        if len(short) <= WIDTH or not isinstance(value, dict) or not value:
            lines.append(short)
        else:
            first, *others = entries(value, indent + 2)
            lines += [dash + first.lstrip(), *others]
    return lines


def flow(value: Any) -> str:
    """A value on one line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_scalar(name)}: {flow(each)}" for name, each in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value if _is_plain(value) else '"' + _ESCAPED.sub(_escape, value) + '"'
        case float():
            text = repr(value)
            # YAML 1.1 reads 1e+16 as text.
            return text if "." in text else text.replace("e", ".0e")
    return str(value)


def _is_plain(text: str) -> bool:
    """Whether every YAML parser reads the unquoted text as this very text."""
    if not _PLAIN.fullmatch(text):
        return False
    try:
        return resolve(text) == text
    except Ambiguous:
        return False


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    # YAML reads a JSON surrogate pair as two characters.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
