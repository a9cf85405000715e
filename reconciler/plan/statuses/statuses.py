"""Decisions that tell each policy how it stands; none where it is told so already."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from reconciler.model.planned.action import Apply, Ref, Status
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.plan import Plan
from reconciler.plan.requests.short import short_of
from reconciler.plan.statuses.body import LONGEST, MOST_PROBLEMS, body_of, is_same
from reconciler.plan.statuses.reasons import PLANNER, TOLD
from reconciler.plan.statuses.short import with_shortages
from reconciler.plan.statuses.sized import sized
from reconciler.plan.statuses.standing import About, Scenery, Standing, problem_lines, standing_of
from reconciler.plan.statuses.told import Told

NAME = "reconciler-status"
MOST_BYTES = 800_000  # of 1 MiB that a ConfigMap may hold, with what else stands in it
# Written by people; claims and what agents report are told elsewhere.
POLICIES = frozenset({"GpuPool", "NodeProvisioner", "DrainPolicy", "PressurePolicy", "ChangeGuard"})


def statuses(inputs: Inputs, plan: Plan | None, told: Told) -> tuple[Decision, ...]:
    """One a custom resource that is to be told something new; or one for all policies, where they are not in the
    cluster."""
    scenery = Scenery(inputs, plan, told)
    return tuple(_of_objects(scenery)) if told.are_resources else tuple(_of_all(scenery))


def _of_objects(scenery: Scenery) -> Iterator[Decision]:
    there = [each for each in scenery.inputs.observed.policies if each.kind in POLICIES]
    for each in sorted(there, key=lambda one: (one.kind, one.name)):
        if each.metadata.deletion_timestamp:
            continue
        standing = _standing(scenery, each.kind, each.name)
        live = each.rest.get("status")
        before: dict[str, Any] = live if isinstance(live, dict) else {}
        body = body_of(standing, each.metadata.generation, before, scenery.inputs.now)
        if not is_same(body, before):
            subject = Ref(each.kind, "", each.name, each.metadata.uid)
            reason = TOLD.reason(object=subject.title, standing=standing.message)
            yield Decision(PLANNER, subject, Status(body=_json(body)), reason)


def _standing(scenery: Scenery, kind: str, name: str) -> Standing:
    standing = standing_of(About(scenery, kind, name))
    if kind == "GpuPool" and scenery.plan is not None and (kind, name) in scenery.declared:
        return with_shortages(standing, short_of(scenery.plan.memory.shortages, name, scenery.inputs.now))
    return sized(standing, scenery.sizes.get(name)) if kind == "NodeProvisioner" else standing


def _of_all(scenery: Scenery) -> Iterator[Decision]:
    """The ConfigMap, each policy a line of it."""
    told, desired = scenery.told, scenery.inputs.desired
    before = _told_before(told)
    lines: dict[str, str] = {"revision": desired.revision, "environment": desired.environment}
    problems = [line[:LONGEST] for line in problem_lines(told.problems)][:MOST_PROBLEMS]
    if problems:
        lines["problems"] = "\n".join(problems)
    standings = [(f"{each.kind}.{each.name}", _standing(scenery, each.kind, each.name)) for each in desired.declared]
    lines |= _fitting(
        (key, _json(body_of(standing, 0, before.get(key, {}), scenery.inputs.now)))
        for key, standing in sorted(standings, key=lambda each: each[1].is_ready)  # what waits for somebody comes first
    )
    subject = Ref("ConfigMap", told.namespace, NAME)
    metadata = {"name": NAME, "namespace": told.namespace}
    manifest = _json({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": lines})
    if manifest != told.before:
        standing_told = f"{len(problems)} problems" if problems else "no problem"
        reason = TOLD.reason(object=subject.title, standing=standing_told)
        # It is ours alone: what a person wrote into it says nothing to anybody.
        yield Decision(PLANNER, subject, Apply(manifest=manifest, force=True), reason)


def _fitting(lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """As many as a ConfigMap has room for, and how many more there are."""
    found: dict[str, str] = {}
    size_bytes = left = 0
    for key, line in lines:
        size_bytes += len(key) + len(line.encode())
        if size_bytes > MOST_BYTES:
            left += 1
        else:
            found[key] = line
    return found | ({"omitted": f"{left} more policies, for which there is no room here"} if left else {})


def _told_before(told: Told) -> dict[str, dict[str, Any]]:
    """The statuses in the ConfigMap as it was written last, which is by us."""
    if not told.before:
        return {}
    lines: dict[str, str] = msgspec.json.decode(told.before)["data"]
    return {key: msgspec.json.decode(line) for key, line in lines.items() if "." in key and line.startswith("{")}


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
