"""Tally of one guard while a plan is judged.

First the plan as a whole: if the plan exceeds a limit of `perPlan`, everything that the plan takes is held, unless
an approval covers it. Then the remaining takes, in the order of the plan, against the hour: a take without room
waits until there is room, and later takes of the same measures wait behind it, so that small changes do not overtake
a large edit for ever. A take that is too large for any hour waits for nothing, and blocks nothing.

An approval covers some takes of a plan: those that follow from the named objects, or all (see `approvals.py`). For
each measure beyond its limit, covered takes pass if they are within the ceilings of approvals, and the remaining
takes must be within the limit by themselves. This holds whatever the hour contains already. What an approval
admitted within the hour counts against its ceilings, so that one approval does not admit a full hour again and
again, in slices.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from reconciler.fleet.amounts import CPU
from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord, GuardCount, Measure, Period
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import ChangeGuard
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.problem import Origin
from reconciler.model.quantity import Quantity
from reconciler.plan.causes import Cause
from reconciler.plan.draft import Draft
from reconciler.plan.guards.approvals import Approval
from reconciler.plan.guards.ledger import FIELDS, HOUR_MS, MEASURES, DisruptionLedger, DisruptionSums, Roll, limit_of
from reconciler.plan.guards.removals import Removal
from reconciler.plan.reasons import OfObject


class Take(msgspec.Struct, frozen=True):
    """Disruptions of one decision that do not count already."""

    at: int  # index of the decision in the plan
    title: str  # title of the change
    taken: tuple[Removal, ...]
    cause: Cause = Cause()


class GuardHeadroom(msgspec.Struct, frozen=True):
    """Whether there is room for a take, with an approval or without; if not, when there will be room, if ever."""

    is_free: bool = True
    approvals: tuple[str, ...] = ()
    until: Instant | None = None
    over: tuple[GuardCount, ...] = ()  # measures beyond their limits


class Books(msgspec.Struct, frozen=True):
    """Data that all guards share."""

    ledger: DisruptionLedger
    roll: Roll  # pools as they are now
    hour_roll: Roll  # pools as they were when the hour began
    now: Instant


class GuardTally:
    """Counts of one guard. Mutable."""

    def __init__(self, books: Books, guard: Declared[ChangeGuard], approvals: Sequence[Approval]) -> None:
        self.guard = guard
        self.books = books
        self._approvals = approvals
        self.window = [each for each in books.ledger.in_the_hour() if self._guards(each)]
        self._hour = DisruptionSums(books.hour_roll, self.window)
        self._in_hour = {books.ledger.key(each): each for each in self.window}
        self.plan = DisruptionSums(books.roll)  # disruptions of the whole plan
        self.counted: dict[str, Removal] = {}
        self._takes: tuple[Take, ...] = ()
        self._admitted: list[DisruptionRecord] = []
        self._by_approval = {
            each.name: DisruptionSums(books.hour_roll, (mark for mark in self.window if each.name in mark.approvals))
            for each in approvals
        }
        self._waiting: dict[Measure, Instant] = {}

    def count(self, takes: Iterable[Take]) -> None:
        """Count all takes of the plan, each disruption once."""
        self._takes = tuple(take for take in takes if self.own(take))
        for each in (each for take in self._takes for each in self.own(take)):
            key = self.books.ledger.key(each.mark)
            if key not in self.counted:
                self.counted[key] = each
                self.plan.add(each.mark)

    def own(self, take: Take) -> list[Removal]:
        """Disruptions of a take that the guard covers."""
        return [each for each in take.taken if self._guards(each.mark)]

    @property
    def hour_with_plan(self) -> DisruptionSums:
        """Disruptions of the hour after the whole plan is carried out."""
        return self._hour_plus(self.counted.values())[1] if self.counted else self._hour

    def judge_plan(self) -> GuardHeadroom:
        """Check the whole plan against `perPlan`. Call before `room`."""
        over = self.plan.over(self.guard.spec.per_plan)
        if not over:
            return GuardHeadroom()
        covering = self._covering(over)
        return GuardHeadroom(covering is not None, covering or (), over=self.counts("plan", self.plan, over))

    def room(self, take: Take) -> GuardHeadroom:
        """Check one take of the plan against `perHour`."""
        limits = self.guard.spec.per_hour
        new, hour = self._hour_plus(self.own(take))
        alone = DisruptionSums(self.books.hour_roll, new)
        added = [measure for measure in MEASURES if alone.amount(measure)]
        over = tuple(measure for measure in hour.over(limits) if measure in added)
        behind = tuple(measure for measure in added if measure in self._waiting)
        wanting = tuple(measure for measure in added if measure in {*over, *behind})
        if not wanting:
            return GuardHeadroom()
        for approval in self._approvals:
            if approval.covers(take.cause) and approval.allows(self._by_approval[approval.name].plus(new), wanting):
                return GuardHeadroom(approvals=(approval.name,))
        if not set(over).isdisjoint(alone.over(limits)):
            return GuardHeadroom(is_free=False, over=self.counts("hour", hour, over))
        # While an earlier take waits, the room after that take is unknown.
        untold = [each for each in over if each not in behind]
        until = max([*(self._waiting[each] for each in behind), *([self._when_free(new, over)] if untold else [])])
        self._waiting |= dict.fromkeys(wanting, until)
        return GuardHeadroom(is_free=False, until=until, over=self.counts("hour", hour, over))

    def admit(self, take: Take, approvals: Iterable[str]) -> None:
        """Admit a take: later takes find less room."""
        new, self._hour = self._hour_plus(self.own(take))
        self._admitted += new
        self._in_hour |= {self.books.ledger.key(each): each for each in new}
        for name in approvals:
            self._by_approval[name] = self._by_approval[name].plus(new)

    def counts(
        self, period: Period, sums: DisruptionSums, measures: Sequence[Measure] = MEASURES
    ) -> tuple[GuardCount, ...]:
        """Limited measures, with amounts and limits."""
        ceiling = self.guard.spec.per_plan if period == "plan" else self.guard.spec.per_hour
        limits = ((measure, limit_of(ceiling, measure)) for measure in measures)
        counts = (sums.count(measure, limit) for measure, limit in limits if limit is not None)
        path = f"spec.per{period.capitalize()}"
        return tuple(
            GuardCount(
                each.measure,
                period,
                each.counted,
                each.allowed,
                self.guard.origin(f"{path}.{FIELDS[each.measure]}"),
                each.pool,
            )
            for each in counts
        )

    def used_by_approval(self, measure: Measure) -> int:
        """The largest amount that any approval admitted within the hour."""
        return max((each.amount(measure) for each in self._by_approval.values()), default=0)

    def parts(self, measure: Measure) -> tuple[tuple[str, int], ...]:
        """Parts of the plan's amount; empty for percentages."""
        found: Counter[str] = Counter()
        for each in self.counted.values():
            amount = DisruptionSums(self.books.roll, [each.mark]).amount(measure)
            found[each.part] += amount if measure != "removed_percent" else 0
        return tuple((part, count) for part, count in found.items() if count)

    def covering(self, take: Take) -> tuple[str, ...]:
        """Names of the approvals that cover the take, whatever their ceilings."""
        return tuple(each.name for each in self._approvals if each.covers(take.cause))

    def _covering(self, over: Sequence[Measure]) -> tuple[str, ...] | None:
        """Approvals under which the plan is within its limits; None if there are none."""
        used: set[str] = set()
        for measure in over:
            left = list(self._takes)
            for approval in self._approvals:
                covered = [take for take in self._takes if approval.covers(take.cause)]
                if covered and approval.allows(self._sums_of(covered), (measure,)):
                    left = [take for take in left if not approval.covers(take.cause)]
                    used.add(approval.name)
            if measure in self._sums_of(left).over(self.guard.spec.per_plan):
                return None
        return tuple(sorted(used))

    def _sums_of(self, takes: Iterable[Take]) -> DisruptionSums:
        """Sums over the takes, each disruption once."""
        marks = {self.books.ledger.key(each.mark): each.mark for take in takes for each in self.own(take)}
        return DisruptionSums(self.books.roll, marks.values())

    def _guards(self, mark: DisruptionRecord) -> bool:
        return bool({"*", mark.pool} & set(self.guard.spec.pool_names))

    def _hour_plus(self, taken: Iterable[Removal]) -> tuple[list[DisruptionRecord], DisruptionSums]:
        """New or increased disruptions, each once, and the hour with them."""
        new: dict[str, DisruptionRecord] = {}
        hour = self._hour.copy()
        for each in taken:
            key, mark = self.books.ledger.key(each.mark), self.books.ledger.merged(each.mark)
            disruption_record = new.get(key) or self._in_hour.get(key)
            if disruption_record is None or mark.goes > disruption_record.goes or mark.gpus > disruption_record.gpus:
                if disruption_record is not None:
                    hour.add(disruption_record, -1)
                hour.add(mark)
                new[key] = mark
        return list(new.values()), hour

    def _when_free(self, new: Sequence[DisruptionRecord], over: Sequence[Measure]) -> Instant:
        """When enough of the window has expired, found by bisection, because windows can be long."""

        def is_free_after(expired: int) -> bool:
            """Whether there is room once the oldest records have expired: all old ones, then the new ones."""
            left = DisruptionSums(self.books.hour_roll, [*self.window[expired:], *self._admitted, *new])
            return set(over).isdisjoint(left.over(self.guard.spec.per_hour))

        expired = bisect_left(range(len(self.window)), True, key=is_free_after)
        last = self.window[expired - 1].at if expired and is_free_after(expired) else self.books.now
        return later(last, HOUR_MS)


# --- clusterMin: the capacity that the whole cluster keeps, whatever removes a node.
#
# The largest clusterMin of all active DrainPolicies applies to every removal: by scaling, by a drain, and by editing or
# deleting a NodePool. A node with a removal taint counts as gone, and so does a node that an earlier planner removes in
# this plan. Planners check clusterMin before they choose nodes; guards/admission.py checks every decision that removes
# a node again, so no planner can forget the check. A node without a resource does not reduce that resource.


class ClusterMinHolds(OfObject, frozen=True):
    template = "{object} would leave {left} {resource} in the cluster, less than clusterMin {least} of {policy}."

    resource: str
    left: str  # a quantity
    least: str  # a quantity
    policy: Ref


REASONS = (ClusterMinHolds,)


class ClusterMinShortage(msgspec.Struct, frozen=True, gc=False):
    """A resource that the cluster would lack."""

    resource: str
    left: str  # a quantity
    least: str  # a quantity
    policy: Ref
    origin: Origin | None


class ClusterMin:
    """Remaining capacity of each limited resource while one plan removes nodes. Mutable."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self._fleet = draft.fleet
        self._limits = dict(sorted(_limits(inputs)))
        self._left = dict.fromkeys(self._limits, 0)
        for node in self._fleet.observed.nodes if self._limits else ():
            if not draft.leaves(node):
                self.give(node)

    @property
    def is_limited(self) -> bool:
        """Whether any policy has a clusterMin."""
        return bool(self._limits)

    def copy(self) -> "ClusterMin":
        """Independent copy for report-only decisions."""
        other = object.__new__(ClusterMin)
        other._fleet, other._limits, other._left = self._fleet, self._limits, dict(self._left)
        return other

    def why_not(self, *nodes: Node) -> ClusterMinShortage | None:
        """The resource that the cluster would lack without these nodes; None if the cluster keeps enough."""
        for resource, limit in self._limits.items():
            taken = sum(_has(self._fleet, node, resource) for node in nodes)
            left = self._left[resource] - taken
            if taken and left < limit.amount:
                return limit.lack(left)
        return None

    def why_kept(self, node: Node) -> ClusterMinShortage | None:
        """The resource that the cluster lacks and that the leaving node has."""
        for resource, limit in self._limits.items():
            if self._left[resource] < limit.amount and _has(self._fleet, node, resource):
                return limit.lack(self._left[resource])
        return None

    def take(self, node: Node) -> None:
        """Count the node as gone."""
        for resource in self._limits:
            self._left[resource] -= _has(self._fleet, node, resource)

    def give(self, node: Node) -> None:
        """Count the node as staying."""
        for resource in self._limits:
            self._left[resource] += _has(self._fleet, node, resource)


class _Limit(msgspec.Struct, frozen=True, gc=False):
    """The highest limit of any policy for one resource."""

    resource: str
    least: Quantity
    policy: Declared[DrainPolicy]

    @property
    def amount(self) -> int:
        """Amount in the units of the fleet: thousandths for cpu, else units."""
        return self.least.milli if self.resource == CPU else -(-self.least.milli // 1_000)

    def lack(self, left: int) -> ClusterMinShortage:
        text = str(Quantity(left if self.resource == CPU else left * 1_000))
        policy = Ref("DrainPolicy", "", self.policy.name)
        return ClusterMinShortage(self.resource, text, str(self.least), policy, self.policy.origin("spec.clusterMin"))


def _limits(inputs: Inputs) -> Iterable[tuple[str, _Limit]]:
    limits: dict[str, _Limit] = {}
    for policy in sorted(inputs.desired.drains, key=lambda each: each.name):
        for resource, least in policy.spec.cluster_min.items() if not policy.spec.suspend else ():
            if resource not in limits or least.milli > limits[resource].least.milli:
                limits[resource] = _Limit(resource, least, policy)
    return limits.items()


def _has(fleet: Fleet, node: Node, resource: str) -> int:
    snapshot = fleet.snapshot
    column, row = snapshot.classes.columns.get(resource), snapshot.rows.row_of.get(node.name)
    return 0 if column is None or row is None else snapshot.stock.allocatable_at(row, column)


def nodes_named(fleet: Fleet, names: Iterable[str]) -> Iterator[Node]:
    """Existing nodes of these names."""
    nodes = (fleet.node(name) for name in sorted(names))
    yield from (node for node in nodes if node is not None)
