"""The DrainPolicy that says what a Cluster Autoscaler was told, as a person would write it, and what it can't say."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.importer.autoscaler.flags import (
    COUNTERPARTS,
    ENABLED,
    EXPLAINED_FLAGS,
    PROGRAM,
    READ,
    Counterpart,
    Flags,
    least_of_cluster,
    notes,
    switched_off,
)
from reconciler.importer.text import ImportNote, entry
from reconciler.model.bundle import Text

NAME = f"from-{PROGRAM}"
FILE = f"policies/base/{NAME}.yaml"
_COMMENTS_AT = 45


class ImportedField(msgspec.Struct, frozen=True):
    """A line of the policy, and where it comes from."""

    name: str
    value: Any
    comment: str


class FlagMapping(msgspec.Struct):
    """Owner of what comes of the flags."""

    fields: list[ImportedField] = []
    notes: list[ImportNote] = []

    def note(self, sentence: str, remedy: str) -> None:
        self.notes.append(ImportNote(FILE, sentence, remedy))


def drain_policy(flags: Flags) -> tuple[Text, tuple[ImportNote, ...]]:
    """For all pools, and suspended: whether they are to be drained is for people to say."""
    mapping = FlagMapping([], [])
    mapping.fields.append(_suspend(flags))
    mapping.fields.append(
        ImportedField("poolNames", ["*"], "all pools; each of them only decides while its mode is Observe")
    )
    for each in COUNTERPARTS:
        mapping.fields.append(_field(each, flags, mapping))
    _switch_off(flags, mapping)
    _agree(mapping)
    _cluster_min(flags, mapping)
    _others(flags, mapping)
    return Text(FILE, "".join(f"{line}\n" for line in _lines(mapping)).encode()), tuple(mapping.notes)


def _suspend(flags: Flags) -> ImportedField:
    if flags.is_false(ENABLED):
        return ImportedField("suspend", True, f"--{ENABLED}=false")
    return ImportedField(
        "suspend", True, "take this out once it says what you mean: pools in mode Enforce are drained then"
    )


def _field(line: Counterpart, flags: Flags, mapping: FlagMapping) -> ImportedField:
    """The first flag that is given and can be read."""
    given = [(name, value) for name in line.flags if (value := flags.value(name)) is not None]
    read: list[tuple[str, Any]] = []
    for name, value in given:
        try:
            read.append((f"--{name}={value}", line.read(value)))
        except ValueError as error:
            mapping.note(f"--{name}={value} is not {error}", f"see whether spec.{line.field} says what is meant")
    for other, value in read[1:]:
        if value != read[0][1]:
            mapping.note(f"{other} is not gone by, as {read[0][0]} says spec.{line.field}", "see whether that is right")
    if read:
        return ImportedField(line.field, read[0][1], read[0][0])
    return ImportedField(line.field, line.read(line.default), f"{PROGRAM}'s default of --{line.flags[0]}")


def _switch_off(flags: Flags, mapping: FlagMapping) -> None:
    """What a flag that is false leaves no meaning to."""
    for flag, field, value in switched_off(flags):
        at = next(at for at, each in enumerate(mapping.fields) if each.name == field)
        mapping.fields[at] = ImportedField(field, value, f"--{flag}=false")
        if flag == "scale-down-unready-enabled":
            sentence = f"--{flag}=false has no counterpart: a node that is not ready for {value} goes all the same"
            mapping.note(sentence, f"see whether spec.{field} says what is meant")


def _agree(mapping: FlagMapping) -> None:
    """Drained nodes count among all that leave."""
    values = {each.name: each.value for each in mapping.fields}
    most, drains = values["maxScaleDownParallelism"], values["maxDrainParallelism"]
    if drains > most:
        at = next(at for at, each in enumerate(mapping.fields) if each.name == "maxDrainParallelism")
        mapping.fields[at] = ImportedField(
            "maxDrainParallelism", most, f"{mapping.fields[at].comment}; no more than leave in all"
        )


def _cluster_min(flags: Flags, mapping: FlagMapping) -> None:
    try:
        least = least_of_cluster(flags)
    except ValueError as error:
        mapping.note(f"{error} can't be read", "write spec.clusterMin: what the cluster is to keep in all")
        return
    if least:
        mapping.fields.append(
            ImportedField("clusterMin", least, "the least of --cores-total, --memory-total and --gpu-total")
        )


def _others(flags: Flags, mapping: FlagMapping) -> None:
    for sentence, remedy in notes(flags):
        mapping.note(sentence, remedy)
    rest = sorted(flags.of.keys() - EXPLAINED_FLAGS - READ)
    if rest:
        listed = ", ".join(f"--{name}" for name in rest)
        mapping.note(f"{listed}: no counterpart in a DrainPolicy", "they are not about which nodes go")


def _lines(mapping: FlagMapping) -> Iterator[str]:
    yield f"# What the flags of {PROGRAM} say, as `reconciler import` found them."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: DrainPolicy"
    yield f"metadata: {{name: {NAME}}}"
    yield "spec:"
    for each in mapping.fields:
        first, *more = entry(each.name, each.value, 2)
        yield f"{first.ljust(max(_COMMENTS_AT, len(first) + 2))}# {each.comment}"
        yield from more
