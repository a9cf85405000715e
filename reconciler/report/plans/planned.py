"""Planned: a plan and all that its report says beside it."""

import msgspec

from reconciler.model.change import PolicyChange
from reconciler.model.cluster.observed import Unread
from reconciler.model.plan.plan import Plan
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation
from reconciler.plan.holds.resting import is_at_rest
from reconciler.plan.impact.scale_down import Departing
from reconciler.report.decision_text import DecisionText
from reconciler.report.plans.plan_shape import Amount
from reconciler.report.setting import ReportHeader


class Cost(msgspec.Struct, frozen=True):
    """Micro dollars an hour: now, once all is done that comes without this change, and once all is done with it. All by
    the same prices: see impact/pricing.py."""

    now: int = 0
    without: int = 0
    with_change: int = 0
    committed: int = 0  # of each: paid whether nodes run or not
    repriced: int = 0  # what the fleet as it is costs more by these prices than by those of the base


class PoolLine(msgspec.Struct, frozen=True):
    """A pool as it stands."""

    pool: str
    nodes: int
    busy_nodes: int
    gpus: int
    gpus_in_use: int
    cost: Cost = Cost()
    unpriced: int = 0  # nodes whose price nobody declared: they are not in the cost
    budgets_read: bool = True  # PodDisruptionBudgets: where not, what they hold up is not known
    remarks: tuple[str, ...] = ()  # further lines: what limits leave room for, say
    declared: bool = True  # False: no policy declares it any more
    observation: Observation | None = None  # why nothing is carried out there


class Planned(msgspec.Struct, frozen=True):
    """Without a base, `changes` are empty, and the plan's own decisions are what changes."""

    setting: ReportHeader
    plan: Plan
    decision_texts: tuple[DecisionText, ...]  # the decisions of the plan, in their order
    base: Plan | None = None  # of the base revision, on the same cluster
    changes: tuple[PolicyChange, ...] = ()
    pools: tuple[PoolLine, ...] = ()
    nodes: Amount = Amount(0, 0, 0)  # of these pools, and of those that are no longer declared and that it touches
    gpus: Amount = Amount(0, 0, 0)  # on these nodes
    unread: tuple[Unread, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # notices that must not be overlooked
    freezes: tuple[Freeze, ...] = ()  # that hold now
    saved_digest: str = ""  # of the file that the plan was saved in, if any
    departing: tuple[Departing, ...] = ()  # nodes that scaling takes away, with this change or without it

    @property
    def acted(self) -> tuple[DecisionText, ...]:
        return tuple(each for each in self.decision_texts if not each.held)

    @property
    def held(self) -> tuple[DecisionText, ...]:
        """What a person or a guard holds."""
        return tuple(each for each in self.decision_texts if each.held_by_someone and not is_at_rest(each.decision))

    @property
    def waiting(self) -> tuple[DecisionText, ...]:
        """Holds that go on by themselves. A marked node that waits for its time is none: the pools tell of it."""
        return tuple(each for each in self.decision_texts if each.waits and not is_at_rest(each.decision))

    @property
    def blocked(self) -> tuple[DecisionText, ...]:
        """Holds for which the command ends with exit code 4."""
        return tuple(each for each in self.decision_texts if each.blocks)

    def pool(self, name: str) -> PoolLine | None:
        return next((each for each in self.pools if each.pool == name), None)
