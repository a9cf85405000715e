"""Whether an object is still as a decision presumes; asked before a write, which the API server then checks again."""

import re
from typing import Any

import msgspec

from reconciler.model.plan.action import Delete, Evict
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.outcome import Result

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")

Object = dict[str, Any]


class WriteResult(msgspec.Struct, frozen=True):
    """There is nothing to send any more."""

    result: Result
    detail: str = ""


DONE = WriteResult("done")
NO_LONGER_OURS = WriteResult("stale", "the right to write has run out meanwhile: whoever has it now plans anew")


def identified(decision: Decision, found: Object | None) -> WriteResult | None:
    """How it ends where the object is not there, or another has its name; None where it is the one that is meant."""
    subject = decision.subject
    is_meant = found is not None and subject.uid in {"", found["metadata"].get("uid", "")}
    if isinstance(decision.act, Delete | Evict):
        is_going = found is None or not is_meant or found["metadata"].get("deletionTimestamp")
        return DONE if is_going else None
    if found is None:
        return WriteResult("stale", f"{subject.title} is not there any more")
    return (
        None
        if is_meant
        else WriteResult("stale", f"{subject.title} is another one by now: the one that was meant is gone")
    )


def presumed(decision: Decision, found: Object) -> WriteResult | None:
    """How it ends where something else stands than was presumed; None where all of it stands."""
    presumes, title = decision.act.presumes, decision.subject.title  # type: ignore[union-attr]  # a hold is no write
    if presumes.absent:
        return WriteResult("stale", f"{title} is there already")
    if presumes.resource_version not in {"", found["metadata"].get("resourceVersion", "")}:
        return WriteResult("stale", f"{title} has changed since it was looked at")
    borne = {each["key"] for each in (found.get("spec") or {}).get("taints") or ()} if presumes.untainted else set()
    if taken := sorted(borne.intersection(presumes.untainted)):
        return WriteResult("stale", f"{title} bears {taken[0]} by now")
    for path, value in presumes.fields:
        stands = text_at(found, path)
        if stands != value:
            return WriteResult("stale", f'{title} was to have "{value}" in {path}, and has "{stands}"')
    return None


def text_at(found: Object, path: str) -> str:
    """What stands at spec.nodeName or metadata.labels[gpu.scheduling/pool]; nothing where nothing does."""
    value: Any = found
    for key, word in _STEP.findall(path):
        value = value.get(key or word) if isinstance(value, dict) else None
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
