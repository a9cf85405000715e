"""Decisions that tell each policy how it stands; none where it is told so already."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.bundle_objects import bundle_digest
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.action import Apply, Ref, Status
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.plan.reason import Reason
from reconciler.plan.status.conditions import ObjectCondition, Scenery
from reconciler.plan.status.conditions import received as judged_next
from reconciler.plan.status.context import StatusContext
from reconciler.plan.status.of_kind import standing_in
from reconciler.plan.status.reasons import PLANNER, ProblemCount, StatusTold
from reconciler.report.conditions.body import LONGEST, MOST_PROBLEMS, body_of, is_same
from reconciler.report.conditions.messages import message_of, placed_line

NAME = names.STATUS_CONFIG_MAP
LONGEST_DIGEST = 128  # characters
MOST_BYTES = 800_000  # of 1 MiB that a ConfigMap may hold, with what else stands in it


def statuses(inputs: Inputs, plan: Plan | None, context: StatusContext) -> tuple[Decision, ...]:
    """One a custom resource that is to be told something new; or one for all policies, where they are not in the
    cluster."""
    scenery = Scenery(inputs, plan, context)
    return tuple(_of_objects(scenery)) if context.are_resources else tuple(_of_all(scenery))


def received(observed: Observed, now: Instant) -> tuple[Decision, ...]:
    """Objects whose status speaks of another bundle than they came with are Reconciling, before the bundle is judged:
    their status would pass for a status of the new bundle."""
    scenery = Scenery(Inputs(Desired("", ""), observed, now), None, StatusContext(are_resources=True))
    return tuple(
        decision
        for each in _policies(scenery)
        if _is_new(each) and (decision := _write_status(each, judged_next(scenery, each.kind, each.name), now))
    )


def _of_objects(scenery: Scenery) -> Iterator[Decision]:
    for each in _policies(scenery):
        condition = standing_in(scenery, each.kind, each.name)
        if _is_new(each) and not condition.is_reconciling:
            condition = judged_next(scenery, each.kind, each.name)
        if decision := _write_status(each, condition, scenery.inputs.now):
            yield decision


def _policies(scenery: Scenery) -> list[Unstructured]:
    return [each for _, each in sorted(scenery.resources.items())]


def _is_new(resource: Unstructured) -> bool:
    """Whether it came with a bundle, and its status speaks of another bundle or of none."""
    digest, status = _digest_of(resource), _status_of(resource)
    return digest is not None and bool(status.get("conditions")) and status.get("bundle") != digest


def _digest_of(resource: Unstructured) -> str | None:
    """As far as a status has room for it: anybody may write an annotation."""
    digest = bundle_digest(resource)
    return None if digest is None else digest[:LONGEST_DIGEST]


def _write_status(resource: Unstructured, condition: ObjectCondition, now: Instant) -> Decision | None:
    """None where its status says so already."""
    digest, before = _digest_of(resource), _status_of(resource)
    body = body_of(condition, resource.metadata.generation, before, now)
    if digest is not None:
        body["bundle"] = digest
    if is_same(body, before):
        return None
    subject = Ref(resource.kind, "", resource.name, resource.metadata.uid)
    reason = Reason(StatusTold(subject, message_of(condition.why)))
    return Decision(PLANNER, subject, Status(body=_json(body)), reason)


def _status_of(resource: Unstructured) -> dict[str, Any]:
    return resource.status


def _of_all(scenery: Scenery) -> Iterator[Decision]:
    """The ConfigMap, each policy a line of it."""
    context, desired = scenery.context, scenery.inputs.desired
    before = _published_statuses(context)
    lines: dict[str, str] = {"revision": desired.revision, "environment": desired.environment}
    problems = [placed_line(each)[:LONGEST] for each in context.problems[:MOST_PROBLEMS]]
    if problems:
        lines["problems"] = "\n".join(problems)
    standings = [(f"{each.kind}.{each.name}", standing_in(scenery, each.kind, each.name)) for each in desired.declared]
    lines |= _fitting(
        (key, _json(body_of(condition, 0, before.get(key, {}), scenery.inputs.now)))
        # what waits for somebody comes first
        for key, condition in sorted(standings, key=lambda each: each[1].is_ready)
    )
    subject = Ref("ConfigMap", context.namespace, NAME)
    metadata = {"name": NAME, "namespace": context.namespace}
    manifest = _json({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": lines})
    if manifest != context.before:
        reason = Reason(StatusTold(subject, ProblemCount(len(problems))))
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


def _published_statuses(context: StatusContext) -> dict[str, dict[str, Any]]:
    """The statuses in the ConfigMap as it was written last, which is by us."""
    if not context.before:
        return {}
    lines: dict[str, str] = msgspec.json.decode(context.before)["data"]
    return {key: msgspec.json.decode(line) for key, line in lines.items() if "." in key and line.startswith("{")}


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
