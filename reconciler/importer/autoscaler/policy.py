"""The DrainPolicy that says what a Cluster Autoscaler was told, as a person would write it, and what it can't say."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.importer.autoscaler.counterparts import (
    COUNTERPARTS,
    ENABLED,
    READ,
    Counterpart,
    least_of_cluster,
    switched_off,
)
from reconciler.importer.autoscaler.flags import PROGRAM, Flags
from reconciler.importer.autoscaler.replacements import TOLD, notes
from reconciler.importer.notes import Note
from reconciler.importer.plain_yaml import entry
from reconciler.model.bundle import Text

NAME = f"from-{PROGRAM}"
FILE = f"policies/base/{NAME}.yaml"
_COMMENTS_AT = 45


class Field(msgspec.Struct, frozen=True):
    """A line of the policy, and where it comes from."""

    name: str
    value: Any
    comment: str


class Told(msgspec.Struct):
    """Owner of what comes of the flags."""

    fields: list[Field] = []
    notes: list[Note] = []

    def note(self, sentence: str, remedy: str) -> None:
        self.notes.append(Note(FILE, sentence, remedy))


def drain_policy(flags: Flags) -> tuple[Text, tuple[Note, ...]]:
    """For all pools, and suspended: whether they are to be drained is for people to say."""
    told = Told([], [])
    told.fields.append(_suspend(flags))
    told.fields.append(Field("poolNames", ["*"], "all pools; each of them only decides while its mode is Observe"))
    for each in COUNTERPARTS:
        told.fields.append(_field(each, flags, told))
    _switch_off(flags, told)
    _agree(told)
    _cluster_min(flags, told)
    _others(flags, told)
    return Text(FILE, "".join(f"{line}\n" for line in _lines(told)).encode()), tuple(told.notes)


def _suspend(flags: Flags) -> Field:
    if flags.is_false(ENABLED):
        return Field("suspend", True, f"--{ENABLED}=false")
    return Field("suspend", True, "take this out once it says what you mean: pools in mode Enforce are drained then")


def _field(line: Counterpart, flags: Flags, told: Told) -> Field:
    """The first flag that is given and can be read."""
    given = [(name, value) for name in line.flags if (value := flags.value(name)) is not None]
    read: list[tuple[str, Any]] = []
    for name, value in given:
        try:
            read.append((f"--{name}={value}", line.read(value)))
        except ValueError as wrong:
            told.note(f"--{name}={value} is not {wrong}", f"see whether spec.{line.field} says what is meant")
    for other, value in read[1:]:
        if value != read[0][1]:
            told.note(f"{other} is not gone by, as {read[0][0]} says spec.{line.field}", "see whether that is right")
    if read:
        return Field(line.field, read[0][1], read[0][0])
    return Field(line.field, line.read(line.default), f"{PROGRAM}'s default of --{line.flags[0]}")


def _switch_off(flags: Flags, told: Told) -> None:
    """What a flag that is false leaves no meaning to."""
    for flag, field, value in switched_off(flags):
        at = next(at for at, each in enumerate(told.fields) if each.name == field)
        told.fields[at] = Field(field, value, f"--{flag}=false")
        if flag == "scale-down-unready-enabled":
            sentence = f"--{flag}=false has no counterpart: a node that is not ready for {value} goes all the same"
            told.note(sentence, f"see whether spec.{field} says what is meant")


def _agree(told: Told) -> None:
    """Drained nodes count among all that leave."""
    values = {each.name: each.value for each in told.fields}
    most, drains = values["maxScaleDownParallelism"], values["maxDrainParallelism"]
    if drains > most:
        at = next(at for at, each in enumerate(told.fields) if each.name == "maxDrainParallelism")
        told.fields[at] = Field("maxDrainParallelism", most, f"{told.fields[at].comment}; no more than leave in all")


def _cluster_min(flags: Flags, told: Told) -> None:
    try:
        least = least_of_cluster(flags)
    except ValueError as wrong:
        told.note(f"{wrong} can't be read", "write spec.clusterMin: what the cluster is to keep in all")
        return
    if least:
        told.fields.append(Field("clusterMin", least, "the least of --cores-total, --memory-total and --gpu-total"))


def _others(flags: Flags, told: Told) -> None:
    for sentence, remedy in notes(flags):
        told.note(sentence, remedy)
    rest = sorted(flags.of.keys() - TOLD - READ)
    if rest:
        listed = ", ".join(f"--{name}" for name in rest)
        told.note(f"{listed}: no counterpart in a DrainPolicy", "they are not about which nodes go")


def _lines(told: Told) -> Iterator[str]:
    yield f"# What the flags of {PROGRAM} say, as `reconciler import` found them."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: DrainPolicy"
    yield f"metadata: {{name: {NAME}}}"
    yield "spec:"
    for each in told.fields:
        first, *more = entry(each.name, each.value, 2)
        yield f"{first.ljust(max(_COMMENTS_AT, len(first) + 2))}# {each.comment}"
        yield from more
