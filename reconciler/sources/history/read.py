"""What was kept, read again: the inputs of plans, in the order in which they were made."""

from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.inputs_delta import Succession
from reconciler.plan.files.valid_names import why_invalid
from reconciler.sources.history.records import HistoryRecord, began_at, files, records

_BEGINNING = Instant(0)


class RecordedInputs(msgspec.Struct, frozen=True):
    """The inputs of a plan, its digest, and the version of reconciler that made it."""

    inputs: Inputs
    digest: str
    version: str


class NotKept(ValueError):
    """There is nothing to answer from; the sentence says what there is."""


def kept(folder: Path, since: Instant = _BEGINNING, until: Instant | None = None) -> Iterator[RecordedInputs]:
    """All of a time, the oldest first. Raises NotKept."""
    found = files(folder)
    if not found:
        raise NotKept(f"no history is kept in {folder}")
    for file, following in zip_longest(found, found[1:]):
        if (until is not None and began_at(file) > until) or (following and began_at(following) <= since):
            continue
        succession = Succession()
        for record in _records(file):
            if why := why_invalid(record.told.inputs):
                raise NotKept(f"{file.name} is no history that reconciler writes: {why}")
            inputs = succession.take(record.told)
            if inputs.now >= since and (until is None or inputs.now <= until):
                yield RecordedInputs(inputs, record.digest, record.version)


def kept_at(folder: Path, at: Instant) -> RecordedInputs:
    """Of the last plan that acted by then. Raises NotKept."""
    found = files(folder)
    before = [file for file in found if began_at(file) <= at]
    if not before:
        first = f"it begins at {timestamp(began_at(found[0]))}" if found else f"no history is kept in {folder}"
        raise NotKept(f"nothing is kept of {timestamp(at)}: {first}")
    found_last = deque(kept(folder, since=began_at(before[-1]), until=at), maxlen=1)
    if not found_last:
        raise NotKept(f"the file {before[-1].name} of the history holds no whole record")
    return found_last[0]


def _records(file: Path) -> Iterator[HistoryRecord]:
    try:
        yield from records(file)
    except msgspec.MsgspecError as fault:
        raise NotKept(
            f"{file.name} can't be read by this version of reconciler: {fault}; read it with the version that wrote it"
        ) from fault
