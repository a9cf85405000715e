"""One node and what is intended for it, and the fate that follows: an ordered table, first match wins."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Cause, Fate, Hindrance, Homeless
from reconciler.plan.karpenter.budgets import allowed_at_once
from reconciler.plan.karpenter.outlook import NodeOutlook

# Karpenter does not begin with a node whose pods would not all find a place.
FITS_NOWHERE = Hindrance("pods that would fit nowhere else", "no_place")
_ANNOTATED = Hindrance(names.DO_NOT_DISRUPT, "annotation")

Intent = Literal["drifts", "deleted", "undrifted"]


class Rules(msgspec.Struct, frozen=True):
    """What a NodePool's spec says about its drifted nodes."""

    node_pool: str
    spec: Mapping[str, Any]
    nodes: int  # what a percentage is of
    now: Instant

    @property
    def keeps_its_size(self) -> bool:
        """Whether even an empty node is replaced."""
        return self.spec.get("replicas") is not None

    def wave(self, gone: int = 0) -> int | None:
        """How many nodes at once, when some have gone already; None: no budget limits it."""
        return allowed_at_once(self.spec, self.nodes - gone, "Drifted", self.now)

    @property
    def budget(self) -> Hindrance:
        return Hindrance(f"disruption budget of NodePool/{self.node_pool}", "node_budget")

    @property
    def limits(self) -> Hindrance:
        return Hindrance(f"limits of NodePool/{self.node_pool}", "limits")


class Due(msgspec.Struct, frozen=True, gc=False):
    """A node, what is intended for it, and by which rules."""

    ahead: NodeOutlook
    intent: Intent
    cause: Cause
    rules: Rules
    budgets_are_shut: bool  # they let no node go at all
    homeless: tuple[Homeless, ...] = ()  # pods of it that would fit nowhere
    room: int | None = None  # for how many replacements at once there is room; None: nothing limits them

    @property
    def held_by(self) -> tuple[Hindrance, ...]:
        """What holds it up; a node that is leaving already is past its budgets and its own annotation."""
        hindrances = set(self.ahead.held_by)
        if self.intent == "undrifted":
            return ()
        if self.intent == "drifts" and not self.ahead.leaving:
            hindrances |= {_ANNOTATED} if self.ahead.kept else set()
            hindrances |= {self.rules.budget} if self.budgets_are_shut else set()
            hindrances |= {self.rules.limits} if self._has_no_room else set()
            hindrances |= {FITS_NOWHERE} if self.homeless else set()
        return tuple(sorted(hindrances))

    @property
    def has_no_end(self) -> bool:
        kept_back = self.ahead.kept or self.budgets_are_shut or self._has_no_room or bool(self.homeless)
        return self.ahead.stalls or (kept_back and not self.ahead.leaving)

    @property
    def needs_another(self) -> bool:
        """Whether a replacement is launched before it goes."""
        return self.ahead.pods > 0 or self.rules.keeps_its_size

    @property
    def _has_no_room(self) -> bool:
        return self.room == 0 and self.needs_another

    @property
    def fate(self) -> Fate:
        return next(fate for fate, applies in FATES if applies(self))


FATES: tuple[tuple[Fate, Callable[[Due], bool]], ...] = (
    ("undrifted", lambda due: due.intent == "undrifted"),
    ("deleted", lambda due: due.intent == "deleted"),
    ("blocked", lambda due: due.has_no_end),
    ("replaced", lambda due: due.needs_another),
    ("removed", lambda _: True),
)
