"""The engine: turns Inputs into a Plan. The planners run in order over one draft, and the same inputs give the same
bytes. An exception in one planner does not stop the others (see containment.py).
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Decision, Hold
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.containment import Troubles, contained
from reconciler.plan.draft import Draft, Planner, Verdict
from reconciler.plan.features import FEATURES
from reconciler.plan.guards.admission import Admission, one_action_each
from reconciler.plan.guards.limits import GuardedDecisions, Proposed, judge
from reconciler.plan.guards.observing import imagined_after
from reconciler.plan.guards.set_aside import SetAsides
from reconciler.plan.holds.standstill import with_standstill_holds
from reconciler.plan.windows import next_change

# Titles of the kinds that the planners read. A plan is as good without any other kind. Leases are not included: scaling
# reports by itself the small part that is held without them.
LOOKED_AT = frozenset(each.title for each in RESOURCE_KINDS if any(each.field in feature.needs for feature in FEATURES))

PLANNERS: tuple[Planner, ...] = tuple(feature.plan for feature in FEATURES)


def plan(inputs: Inputs, fleet: Fleet, planners: tuple[Planner, ...] | None = None) -> Plan:
    """The plan for the inputs. `fleet` must be built from the same Observed as the inputs."""
    draft, troubles = Draft(fleet, inputs.desired), Troubles(inputs)
    admission = Admission(inputs, draft, troubles)
    decisions = list(SetAsides(inputs, fleet).holds())
    consequences: list[Consequence] = []
    verdicts: list[Verdict] = []
    for planner in PLANNERS if planners is None else planners:
        contained_verdict = contained(planner, inputs, draft)
        verdicts.append(contained_verdict.verdict)
        decisions += troubles.add(contained_verdict.troubles)
        passed, follows = admission.passed(contained_verdict.verdict)
        decisions += passed
        consequences += follows
    standstills = troubles.attempt("taints", lambda: with_standstill_holds(inputs, fleet, decisions))
    proposed = Proposed(tuple(decisions) if standstills is None else standstills, tuple(consequences))
    settled = _settled(inputs, fleet, proposed, (verdicts, troubles))
    moments = [each.wake_at for each in verdicts if each.wake_at is not None]
    moments += _looks_again(settled.decisions, inputs.now)
    moment = troubles.attempt("schedules", lambda: next_change(inputs))
    wake_at: Instant | None = min([*moments, moment] if moment is not None else moments, default=None)
    digest = digest_of(settled.decisions, settled.memory, wake_at)
    return Plan(
        digest,
        settled.decisions,
        tuple(consequences),
        settled.memory,
        next((each.hints for each in verdicts if each.hints is not None), inputs.hints),
        wake_at,
        guarded=settled.guarded,
        troubles=tuple(troubles.all),
        reports=tuple(report for each in verdicts for report in each.reports),
    )


class _Settled(msgspec.Struct, frozen=True):
    """The final decisions, and the memory after the plan."""

    decisions: tuple[Decision, ...]
    memory: Memory
    guarded: tuple[GuardVerdict, ...] = ()


def _settled(inputs: Inputs, fleet: Fleet, proposed: Proposed, made: tuple[Sequence[Verdict], Troubles]) -> _Settled:
    """Decisions after the guards, and the memory. If a shared step raises, all decisions are held and the memory stays
    the same, because the holds of that step, or the records that an action needs, are unknown.
    """
    verdicts, troubles = made
    judged = troubles.attempt("guards", lambda: judge(inputs, fleet, proposed))
    if judged is None:
        return _Settled(troubles.hold("guards", proposed.decisions), inputs.memory)
    settled = troubles.attempt("memory", lambda: _remembering(inputs, fleet, judged, verdicts))
    return settled or _Settled(troubles.hold("memory", judged.decisions), inputs.memory, judged.guarded)


def _remembering(inputs: Inputs, fleet: Fleet, judged: GuardedDecisions, verdicts: Sequence[Verdict]) -> _Settled:
    memory = together(inputs.memory, verdicts)
    decided = one_action_each(judged.decisions)
    imagined = imagined_after(inputs, fleet, decided)
    memory = msgspec.structs.replace(memory, marks=judged.marks, imagined=imagined)
    for settle in (feature.settle for feature in FEATURES if feature.settle is not None):
        memory = settle(inputs, fleet, decided, memory)
    return _Settled(decided, memory, judged.guarded)


def together(before: Memory, verdicts: Sequence[Verdict]) -> Memory:
    """The memory, with the changes of each planner applied."""
    memory = before
    for after in (each.memory for each in verdicts if each.memory is not None):
        changed = {
            name: value for name in before.__struct_fields__ if (value := getattr(after, name)) != getattr(before, name)
        }
        memory = msgspec.structs.replace(memory, **changed)
    return memory


def unread_of_use(observed: Observed) -> tuple[Unread, ...]:
    """Kinds that the planners read and that could not be read."""
    return tuple(each for each in observed.unread if each.kind in LOOKED_AT)


def _looks_again(decisions: tuple[Decision, ...], now: Instant) -> list[Instant]:
    """Times at which held decisions may go on."""
    held = (each.act.until for each in decisions if isinstance(each.act, Hold))
    return [each for each in held if each is not None and each > now]


def digest_of(decisions: tuple[Decision, ...], memory: Memory, wake_at: Instant | None) -> str:
    """Digest that identifies a plan with the same decisions, memory and wake time."""
    encoded = msgspec.json.encode((decisions, memory, wake_at), order="sorted")
    return f"sha256:{sha256(encoded).hexdigest()}"
