"""Text that an import writes: plain YAML for people, and notes about what a person must look at."""

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

# Refused by `validate` in each field that it may stand in.
UNKNOWN = "UNKNOWN"
_SHOWN = 5


class ImportNote(msgspec.Struct, frozen=True):
    """Something that could not be known, or that a policy says less of than the NodePool."""

    file: str
    sentence: str
    remedy: str


def notes(pool: ImportedPool, unread: str) -> Iterator[ImportNote]:
    """All about one pool; `unread` is why its machines could not be seen, if they could not."""
    for tell in (_devices, _mixed, _types, _capacity, _limits):
        for sentence, remedy in tell(pool):
            reason = f" ({unread})" if unread and tell in {_devices, _types, _capacity} else ""
            yield ImportNote(pool.policy_file, sentence + reason, remedy)


NoteTexts = Iterator[tuple[str, str]]


def _devices(pool: ImportedPool) -> NoteTexts:
    usual = pool.gpus.usual
    if not usual.model:
        yield "nothing tells the model of its GPUs", "write spec.devices.model, such as a100 or l4"
    if not usual.count:
        yield "nothing tells how many GPUs a node has", "write spec.devices.count"
    elif not can_say("devices", {"model": "a", "count": usual.count, "memory": "1Gi"}):
        yield f"its nodes have {usual.count} GPUs, more than a GpuPool can say", "see whether its nodes share GPUs"
    if not usual.memory:
        yield "nothing tells the memory of a GPU", "write spec.devices.memory: that of one GPU, such as 40Gi"
    if any(map(is_shared, pool.machines)):
        yield (
            "its nodes share or divide GPUs, and devices counts whole ones",
            "see whether spec.devices says what is meant",
        )


def _mixed(pool: ImportedPool) -> NoteTexts:
    if pool.other_types:
        text = f"its nodes may have other GPUs than most, or none: {_listed(pool.other_types)}"
        yield text, "give those types a NodePool of their own; until then they count as what spec.devices says"
    if errors := [name for name in pool.types if not of_type(name).agrees(pool.gpus.usual)]:
        text = f"its nodes say of their GPUs what is not so of {_listed(errors)}, and `validate` refuses it (RC307)"
        yield text, "see what the labels of its nodes say, and correct spec.devices"


def _types(pool: ImportedPool) -> NoteTexts:
    if not pool.types:
        yield "nothing tells what its nodes can be", "write spec.instanceTypes"
    elif not pool.asked:
        text = "the NodePool lists no instance types; those of its live nodes were written down"
        yield text, "add to spec.instanceTypes what else its nodes can be; the NodePool does not follow it"
    if pool.unlisted_types:
        text = f"a GpuPool can't list all of its instance types; left out are {_listed(pool.unlisted_types)}"
        yield text, "none is needed: the NodePool asks for them still, by its template or spec.requirements"


def _capacity(pool: ImportedPool) -> NoteTexts:
    if pool.lifeless_types:
        text = f"no live node tells the capacity and the GPUs of {_listed(pool.lifeless_types)}"
        yield text, "write their capacity, such as {cpu: 96, memory: 1152Gi, pods: 250}, and check them against devices"
    if not pool.portion.follows_capacity_types and not pool.living_capacity_types:
        text = "the NodePool does not say how its nodes may be bought, and none is alive"
        yield text, "see whether spec.capacityTypes, on-demand by default, says it"


def _limits(pool: ImportedPool) -> NoteTexts:
    kept = pool.portion.kept.limits
    for each in unknown_names("spec.limits", sorted(kept), (*OF_NODES, NODES)):
        if each.severity == "error":
            text = f"the NodePool has a limit that limits nothing, and its template keeps it: {each.sentence}"
            yield text, f"take it out of the NodePool and the template, and {each.remedy} in spec.limits"
    for each in invalid_amounts("spec.limits", dict(_readable(kept))):
        text = f"its template keeps a limit of the NodePool that cannot be meant: {each.sentence}"
        yield text, "correct it in the NodePool, take it out of the template, and write it in spec.limits"


def _readable(limits: Mapping[str, Any]) -> Iterator[tuple[str, Quantity]]:
    for name, amount in limits.items():
        with suppress(ValueError):
            yield name, Quantity.parse(str(amount))


def _listed(values: Iterable[str]) -> str:
    """The first of them, quoted where needed."""
    lines = list(values)
    more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    return flow(lines[:_SHOWN])[1:-1] + more


# --- Writes plain data as YAML for people: short things in one line, long ones below each other, quotes only where
# needed.
#
# What is written may also stand in a template: between quotes nothing is left that Jinja would take for a tag.

WIDTH = 110

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_%-]{0,62}")
# Quotes, what is no visible ASCII, and a brace that would begin a tag of a template.
_ESCAPED = re.compile(r'[^ -~]|["\\]|\{(?=[{%#])')
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


def entries(fields: Mapping[str, Any], indent: int) -> list[str]:
    """The lines of a map's entries."""
    return [line for name, value in fields.items() for line in entry(name, value, indent)]


def entry(name: str, value: Any, indent: int) -> list[str]:
    """The lines of one entry of a map."""
    key = " " * indent + f"{_scalar(name)}:"
    short = f"{key} {flow(value)}"
    if len(short) <= WIDTH or not isinstance(value, dict | list) or not value:
        return [short]
    return [key, *(entries(value, indent + 2) if isinstance(value, dict) else items(value, indent + 2))]


def items(values: Sequence[Any], indent: int) -> list[str]:
    """The lines of a list's items."""
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
    """A value in one line."""
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
            # YAML 1.1 takes 1e+16 for a text.
            return text if "." in text else text.replace("e", ".0e")
    return str(value)


def _is_plain(text: str) -> bool:
    """Whether each reader of YAML takes it for this very text, without quotes."""
    if not _PLAIN.fullmatch(text):
        return False
    try:
        return resolve(text) == text
    except Ambiguous:
        return False


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    # JSON's pairs of halves mean two characters to YAML.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
