"""The subject that a person asks about, and the decisions of a plan about it."""

import msgspec

from reconciler.model.plan.decision import Decision
from reconciler.plan.files.planning_result import PlanningResult


class ExplainedObject(msgspec.Struct, frozen=True):
    """The subject that a person asked about."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


def decisions_about(scene: PlanningResult, *subjects: ExplainedObject) -> tuple[Decision, ...]:
    """In the order of the plan: of objects of these kinds and names, and of pods that leave with others."""
    wanted = {(each.kind.lower(), each.namespace, each.name) for each in subjects}
    return tuple(
        each
        for each in scene.plan.decisions
        if any((ref.kind.lower(), ref.namespace, ref.name) in wanted for ref in each.refs)
    )
