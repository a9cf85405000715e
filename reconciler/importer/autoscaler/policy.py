"""Writes the DrainPolicy for the flags of a Cluster Autoscaler, formatted for people, with notes about the rest."""

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
    """A line of the policy, and its origin."""

    name: str
    value: Any
    comment: str


class FlagMapping(msgspec.Struct):
    """Fields and notes collected from the flags."""

    fields: list[ImportedField] = []
    notes: list[ImportNote] = []

    def note(self, sentence: str, remedy: str) -> None:
        self.notes.append(ImportNote(FILE, sentence, remedy))


def drain_policy(flags: Flags) -> tuple[Text, tuple[ImportNote, ...]]:
    """The policy for all pools, suspended: people decide which pools to drain."""
    mapping = FlagMapping([], [])
    mapping.fields.append(_suspend(flags))
    mapping.fields.append(ImportedField("poolNames", ["*"], "all pools; pools in mode Observe are only evaluated"))
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
    return ImportedField("suspend", True, "remove this after review: pools in mode Enforce are then drained")


def _field(line: Counterpart, flags: Flags, mapping: FlagMapping) -> ImportedField:
    """The first flag that is given and valid."""
    given = [(name, value) for name in line.flags if (value := flags.value(name)) is not None]
    read: list[tuple[str, Any]] = []
    for name, value in given:
        try:
            read.append((f"--{name}={value}", line.read(value)))
        except ValueError as error:
            mapping.note(f"--{name}={value} is not {error}", f"check spec.{line.field}")
    for other, value in read[1:]:
        if value != read[0][1]:
            mapping.note(f"{other} is ignored, because {read[0][0]} sets spec.{line.field}", "check the value")
    if read:
        return ImportedField(line.field, read[0][1], read[0][0])
    return ImportedField(line.field, line.read(line.default), f"default of {PROGRAM} for --{line.flags[0]}")


def _switch_off(flags: Flags, mapping: FlagMapping) -> None:
    """Removes fields that a false flag makes irrelevant."""
    for flag, field, value in switched_off(flags):
        at = next(at for at, each in enumerate(mapping.fields) if each.name == field)
        mapping.fields[at] = ImportedField(field, value, f"--{flag}=false")
        if flag == "scale-down-unready-enabled":
            sentence = f"--{flag}=false has no counterpart: a node that is not ready for {value} is removed anyway"
            mapping.note(sentence, f"check spec.{field}")


def _agree(mapping: FlagMapping) -> None:
    """Limits parallelism: drained nodes are part of all removed nodes."""
    values = {each.name: each.value for each in mapping.fields}
    most, drains = values["maxScaleDownParallelism"], values["maxDrainParallelism"]
    if drains > most:
        at = next(at for at, each in enumerate(mapping.fields) if each.name == "maxDrainParallelism")
        mapping.fields[at] = ImportedField(
            "maxDrainParallelism", most, f"{mapping.fields[at].comment}; at most the total number of removed nodes"
        )


def _cluster_min(flags: Flags, mapping: FlagMapping) -> None:
    try:
        least = least_of_cluster(flags)
    except ValueError as error:
        mapping.note(f"{error} cannot be parsed", "write spec.clusterMin: the minimum for the whole cluster")
        return
    if least:
        mapping.fields.append(
            ImportedField("clusterMin", least, "minimum of --cores-total, --memory-total and --gpu-total")
        )


def _others(flags: Flags, mapping: FlagMapping) -> None:
    for sentence, remedy in notes(flags):
        mapping.note(sentence, remedy)
    rest = sorted(flags.of.keys() - EXPLAINED_FLAGS - READ)
    if rest:
        listed = ", ".join(f"--{name}" for name in rest)
        mapping.note(f"{listed}: no counterpart in a DrainPolicy", "they do not control node removal")


def _lines(mapping: FlagMapping) -> Iterator[str]:
    yield f"# Converted by `reconciler import` from the flags of {PROGRAM}."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: DrainPolicy"
    yield f"metadata: {{name: {NAME}}}"
    yield "spec:"
    for each in mapping.fields:
        first, *more = entry(each.name, each.value, 2)
        yield f"{first.ljust(max(_COMMENTS_AT, len(first) + 2))}# {each.comment}"
        yield from more
