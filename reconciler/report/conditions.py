"""Published status of each policy: on the custom resource, or in a ConfigMap."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.bundle_objects import bundle_digest
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Apply, Decision, Reason, Ref, Status
from reconciler.model.plan.evaluation import LimitKind, SizeEvaluation
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Problem
from reconciler.plan.capacity.words import short_words
from reconciler.plan.status import reasons
from reconciler.plan.status.conditions import ObjectCondition, Scenery, StatusContext, conditions_of, standing_in
from reconciler.plan.status.conditions import received as judged_next
from reconciler.plan.status.reasons import PLANNER, Message, ProblemCount, StatusTold, WaitingForBundle, Why
from reconciler.report.sentences import sentence

# --- Status of a kind: conditions in the form of Kubernetes, and problems.

LONGEST = 1_024  # characters of a message
MOST_PROBLEMS = 100

Body = dict[str, Any]


def body_of(condition: ObjectCondition, generation: int, live: Mapping[str, Any], now: Instant) -> Body:
    """The condition as JSON. `live` is the current status: an unchanged condition keeps its transition time."""
    observed = {"observedGeneration": generation} if generation else {}
    turned = {each.get("type"): each for each in live.get("conditions") or ()}
    conditions = []
    for each in conditions_of(condition):
        before = turned.get(each.kind, {})
        status = "True" if each.holds else "False"
        # Kubernetes uses whole seconds here.
        at = before.get("lastTransitionTime") if before.get("status") == status else None
        conditions.append(
            {
                "type": each.kind,
                "status": status,
                **observed,
                "lastTransitionTime": at or timestamp(Instant(now - now % 1_000)),
                "reason": each.why.code,
                "message": message_of(each.why)[:LONGEST],
            }
        )
    problems = [problem_line(each)[:LONGEST] for each in condition.problems[:MOST_PROBLEMS]]
    size = _size_of(condition.size) if condition.size is not None else {}
    return {**observed, "conditions": conditions, "problems": problems, **size}


def _size_of(evaluated: SizeEvaluation) -> Body:
    return {
        "currentSize": evaluated.size,
        "targetSize": evaluated.target,
        "tainted": evaluated.tainted,
        "busy": evaluated.use.busy_nodes,
        "gpusUsed": evaluated.use.gpus_used,
        "gpusTotal": evaluated.use.gpus_total,
        "reason": sentence(evaluated.reason)[:LONGEST],
    }


def is_same(body: Body, live: Mapping[str, Any]) -> bool:
    """Whether the live status already has this content; conditions of other writers are ignored."""
    wanted = {each.get("type"): each for each in live.get("conditions") or ()}
    return (
        all(wanted.get(each["type"]) == each for each in body["conditions"])
        and (live.get("problems") or []) == body["problems"]
        and all(live.get(key) == told for key, told in body.items() if key not in {"conditions", "problems"})
        and live.get("observedGeneration") == body.get("observedGeneration")
        and live.get("bundle") == body.get("bundle")
    )


# --- Messages of conditions, by kind of message.

_IN_FORCE = "the last valid policies stay in force"
_NOT_LIMITED: Mapping[LimitKind, str] = {
    "ScaleUpLimited": "scale-up is not limited",
    "ScaleDownHeld": "scale-down of empty nodes is not held",
}


def message_of(why: Why) -> str:
    return sentence(why) if isinstance(why, Reason) else WORDS[type(why)](why)


def problem_line(problem: Problem) -> str:
    """A problem with its remedy. The object itself gives the location."""
    return f"{problem.code}: {problem.sentence}" + (f"; {problem.remedy}" if problem.remedy else "")


def placed_line(problem: Problem) -> str:
    """A problem with its location, for lists of problems of all policies."""
    place = ":".join([problem.file, *(str(number) for number in (problem.line, problem.column) if number > 0)])
    return f"{place}: {problem_line(problem)}"


def _invalid(why: reasons.Invalid) -> str:
    more = len(why.problems) - 1
    return problem_line(why.problems[0]) + (f" (and {more} more)" if more else "")


def _waiting(why: WaitingForBundle) -> str:
    more = f" and {why.others} more" if why.others else ""
    waiting = why.bundle.title if why.bundle else "this revision of the policies"
    culprit = f"{why.culprit.kind}/{why.culprit.name}"
    return f"{waiting} is not applied until {culprit}{more} is corrected: {problem_line(why.problem)}; {_IN_FORCE}"


WORDS: Mapping[type[Message], Callable[[Any], str]] = {
    reasons.Invalid: _invalid,
    reasons.BundleIncomplete: lambda it: f"{it.bundle.progress}: apply all of them in one sync wave; {_IN_FORCE}",
    reasons.WaitingForBundle: _waiting,
    reasons.PoliciesRefused: lambda it: f"{it.problem.file}: {problem_line(it.problem)}; {_IN_FORCE}",
    reasons.NotInBundle: lambda _: (
        "the object is not part of the active bundle: delete the object, or apply its bundle"
    ),
    reasons.BundleReceived: lambda it: (
        f"{it.bundle.title if it.bundle else 'a bundle'} was received and will be checked next"
    ),
    reasons.Suspended: lambda _: "suspended by spec.suspend",
    reasons.Observed: lambda it: (
        f"mode Observe: nothing is written; suppressed actions for its rendered objects: {it.suppressed or 'none'}"
    ),
    reasons.Followed: lambda _: "the policy is in force",
    reasons.NotLimited: lambda it: _NOT_LIMITED[it.kind],
    reasons.NothingRefused: lambda _: "every launch option is available",
    reasons.MachinesRefused: lambda it: (
        f"these launch options failed: {short_words(it.shortages)}; waiting pods use other options"
    ),
}


# --- Decisions that write policy statuses; none if the status is up to date.

NAME = names.STATUS_CONFIG_MAP
LONGEST_DIGEST = 128  # characters
MOST_BYTES = 800_000  # of 1 MiB per ConfigMap, which also holds metadata


def statuses(inputs: Inputs, plan: Plan | None, context: StatusContext) -> tuple[Decision, ...]:
    """One decision per custom resource whose status changes; otherwise one for all policies."""
    scenery = Scenery(inputs, plan, context)
    return tuple(_of_objects(scenery)) if context.are_resources else tuple(_of_all(scenery))


def received(observed: Observed, now: Instant) -> tuple[Decision, ...]:
    """Sets objects whose status describes another bundle to Reconciling before the bundle is checked. Otherwise their
    old status would pass for the status of the new bundle."""
    scenery = Scenery(Inputs(Desired("", ""), observed, now), None, StatusContext(are_resources=True))
    return tuple(
        decision
        for _, each in sorted(scenery.resources.items())
        if _is_new(each) and (decision := _write_status(each, judged_next(scenery, each.kind, each.name), now))
    )


def _of_objects(scenery: Scenery) -> Iterator[Decision]:
    for _, each in sorted(scenery.resources.items()):
        condition = standing_in(scenery, each.kind, each.name)
        if _is_new(each) and not condition.is_reconciling:
            condition = judged_next(scenery, each.kind, each.name)
        if decision := _write_status(each, condition, scenery.inputs.now):
            yield decision


def _is_new(resource: Unstructured) -> bool:
    """Whether the object belongs to a bundle, and its status describes another bundle or none."""
    digest, status = _digest_of(resource), resource.status
    return digest is not None and bool(status.get("conditions")) and status.get("bundle") != digest


def _digest_of(resource: Unstructured) -> str | None:
    """The digest, cut to the length limit of the status: the annotation may have been written by anybody."""
    digest = bundle_digest(resource)
    return None if digest is None else digest[:LONGEST_DIGEST]


def _write_status(resource: Unstructured, condition: ObjectCondition, now: Instant) -> Decision | None:
    """None if the status is up to date."""
    digest, before = _digest_of(resource), resource.status
    body = body_of(condition, resource.metadata.generation, before, now)
    if digest is not None:
        body["bundle"] = digest
    if is_same(body, before):
        return None
    subject = Ref(resource.kind, "", resource.name, resource.metadata.uid)
    reason = Reason(StatusTold(subject, message_of(condition.why)))
    return Decision(PLANNER, subject, Status(body=_json(body)), reason)


def _of_all(scenery: Scenery) -> Iterator[Decision]:
    """The ConfigMap, with one line per policy."""
    context, desired = scenery.context, scenery.inputs.desired
    before = _published_statuses(context)
    lines: dict[str, str] = {"revision": desired.revision, "environment": desired.environment}
    problems = [placed_line(each)[:LONGEST] for each in context.problems[:MOST_PROBLEMS]]
    if problems:
        lines["problems"] = "\n".join(problems)
    standings = [(f"{each.kind}.{each.name}", standing_in(scenery, each.kind, each.name)) for each in desired.declared]
    lines |= _fitting(
        (key, _json(body_of(condition, 0, before.get(key, {}), scenery.inputs.now)))
        # policies that need attention come first
        for key, condition in sorted(standings, key=lambda each: each[1].is_ready)
    )
    subject = Ref("ConfigMap", context.namespace, NAME)
    metadata = {"name": NAME, "namespace": context.namespace}
    manifest = _json({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": lines})
    if manifest != context.before:
        reason = Reason(StatusTold(subject, ProblemCount(len(problems))))
        # Only we own this ConfigMap: edits by people are overwritten.
        yield Decision(PLANNER, subject, Apply(manifest=manifest, force=True), reason)


def _fitting(lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """As many lines as fit into a ConfigMap, and the number of omitted policies."""
    found: dict[str, str] = {}
    size_bytes = left = 0
    for key, line in lines:
        size_bytes += len(key) + len(line.encode())
        if size_bytes > MOST_BYTES:
            left += 1
        else:
            found[key] = line
    return found | ({"omitted": f"{left} more policies omitted because of the size limit"} if left else {})


def _published_statuses(context: StatusContext) -> dict[str, dict[str, Any]]:
    """Statuses in the ConfigMap as last written by us."""
    if not context.before:
        return {}
    lines: dict[str, str] = msgspec.json.decode(context.before)["data"]
    return {key: msgspec.json.decode(line) for key, line in lines.items() if "." in key and line.startswith("{")}


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
