"""A standing as the status of a kind has it: conditions in Kubernetes' form, and problems."""

from collections.abc import Mapping
from typing import Any

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.plan.status.conditions import ObjectCondition, conditions_of
from reconciler.report.conditions.messages import message_of, problem_line
from reconciler.report.sentences import sentence

LONGEST = 1_024  # characters of a sentence
MOST_PROBLEMS = 100

Body = dict[str, Any]


def body_of(condition: ObjectCondition, generation: int, live: Mapping[str, Any], now: Instant) -> Body:
    """`live` is the status as it is: a condition that does not turn keeps its time."""
    observed = {"observedGeneration": generation} if generation else {}
    turned = {each.get("type"): each for each in live.get("conditions") or ()}
    conditions = []
    for each in conditions_of(condition):
        before = turned.get(each.kind, {})
        status = "True" if each.holds else "False"
        # Kubernetes counts in seconds here.
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
    """Whether it says so already; conditions of other writers are theirs."""
    wanted = {each.get("type"): each for each in live.get("conditions") or ()}
    return (
        all(wanted.get(each["type"]) == each for each in body["conditions"])
        and (live.get("problems") or []) == body["problems"]
        and all(live.get(key) == told for key, told in body.items() if key not in {"conditions", "problems"})
        and live.get("observedGeneration") == body.get("observedGeneration")
        and live.get("bundle") == body.get("bundle")
    )
