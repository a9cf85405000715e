"""A saved plan: exact actions, and the data to detect changes of their preconditions.

The file contains the policies, so that it can be applied without them; the actions and the nodes that they remove;
and nothing else of the cluster. Actions held by a guard are not included. The file is canonical: the same plan gives
the same bytes, and a digest covers all of them: actions with payload, policies, manifests, cluster and times. It is
not signed, and anyone who modifies the file can update the digest: therefore a person who applies the file names the
digest that was reviewed. The rights to apply come from the cluster.

Validity is checked against a new plan from the same policies: each action must be decided again in the same way, and
must not remove additional nodes or GPUs in use. Writes to an object without effect on the plan, such as NodePool
status updates by Karpenter, do not matter.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Action, Apply, Decision, Evict, Hold, Preconditions, Reason, Ref
from reconciler.model.plan.guard_verdict import DisruptionRecord
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import why_not_its_own
from reconciler.plan.files.dump import ENCODER, BadFile, PlanningResult, canonical, digest_of_bytes, is_whole
from reconciler.plan.files.valid_names import of_decision, of_desired
from reconciler.plan.guards.limits import Proposed, judge
from reconciler.plan.guards.removals import GuardContext, taken
from reconciler.plan.planner import digest_of, unread_of_use
from reconciler.plan.reason_catalog import decoded
from reconciler.plan.reasons import OfPaths

# --- Differences that prevent a saved plan from being applied.


class OtherCluster(msgspec.Struct, frozen=True):
    """The plan is for another cluster."""

    saved: str  # uid; empty: unknown
    found: str


class Expired(msgspec.Struct, frozen=True):
    """The validity of the plan has ended."""

    at: Instant


class UnreadNow(msgspec.Struct, frozen=True):
    """Objects of a kind could not be read."""

    kind: str
    why: str


class _OfSubject(msgspec.Struct, frozen=True):
    subject: Ref


class NothingToDo(_OfSubject, frozen=True):
    """There is no decision about the subject any more."""


class OtherObject(_OfSubject, frozen=True):
    """Another object, with another uid, has the name of the subject."""


class HeldNow(_OfSubject, frozen=True):
    """The action is held now."""

    reason: Reason


class OtherAction(_OfSubject, frozen=True):
    """A different action is decided now."""

    reason: Reason


class OtherFields(_OfSubject, frozen=True):
    """The subject differs from the policies in other fields now."""

    before: tuple[str, ...]
    now: tuple[str, ...]


class TakesMore(_OfSubject, frozen=True):
    """The action removes more nodes now."""

    nodes: tuple[str, ...]


class BusierNow(_OfSubject, frozen=True):
    """More GPUs are in use on nodes that the action removes."""

    nodes: tuple[str, ...]


Difference = (
    OtherCluster
    | Expired
    | UnreadNow
    | NothingToDo
    | OtherObject
    | HeldNow
    | OtherAction
    | OtherFields
    | TakesMore
    | BusierNow
)

_NAME = "reconciler-plan"
FORMAT = f"{_NAME}/2"
_AGAIN = "create a new plan, review it, and apply it"


class BadPlan(BadFile):
    """The content is not a valid saved plan."""


class SavedAction(msgspec.Struct, frozen=True):
    """One action, and the nodes that it removes."""

    decision: Decision
    takes: tuple[DisruptionRecord, ...] = ()


class SavedPlan(msgspec.Struct, frozen=True):
    """Content of the file."""

    desired: Desired
    cluster_uid: str
    made_at: Instant
    expires_at: Instant
    digest: str  # of the saved plan
    steps: tuple[SavedAction, ...]
    prune: tuple[str, ...] = ()


class WrittenPlan(msgspec.Struct, frozen=True):
    """The file, and its data for reports."""

    content: bytes
    digest: str  # of the complete content: named by whoever applies the file
    actions: int
    expires_at: Instant


class _SavedPlanFile(msgspec.Struct):
    format: str
    digest: str = ""
    plan: msgspec.Raw = msgspec.Raw(b"null")


def saved_of(scene: PlanningResult, expires_at: Instant) -> SavedPlan:
    """The parts of a plan to save."""
    inputs = canonical(scene.inputs)
    return SavedPlan(
        desired=inputs.desired,
        cluster_uid=inputs.observed.cluster_uid,
        made_at=inputs.now,
        expires_at=expires_at,
        digest=scene.plan.digest,
        steps=tuple(_steps(scene)),
        prune=inputs.prune,
    )


def write(scene: PlanningResult, expires_at: Instant) -> WrittenPlan:
    """The file content."""
    saved = saved_of(scene, expires_at)
    content = ENCODER.encode(saved)
    digest = digest_of_bytes(content)
    file = b'{"digest":"%s","format":"%s","plan":%s}\n' % (digest.encode(), FORMAT.encode(), content)
    return WrittenPlan(file, digest, len(saved.steps), expires_at)


def digest_of_saved(saved: SavedPlan) -> str:
    """Computed from the content, never copied from the file."""
    return digest_of_bytes(ENCODER.encode(saved))


def read(content: bytes) -> SavedPlan:
    """Parses a saved plan. Raises BadPlan."""
    try:
        file = msgspec.json.decode(content, type=_SavedPlanFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadPlan(f"not a saved plan: {fault}", "create one with reconciler plan --out") from fault
    name, _, version = file.format.partition("/")
    if name != _NAME:
        raise BadPlan(f'not a saved plan: its format is "{file.format}"', "create one with reconciler plan --out")
    if file.format != FORMAT:
        text = f"the saved plan has format {version}; this version of reconciler reads {FORMAT.partition('/')[2]}"
        raise BadPlan(text, "create a new plan and apply it")
    if not is_whole(file.digest, file.plan):
        text = "the content does not match its digest: the file was modified or is damaged"
        raise BadPlan(text, _AGAIN)
    try:
        saved = decoded(file.plan, SavedPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise BadPlan(f"this version of reconciler cannot read the plan: {fault}", _AGAIN) from fault
    if digest_of_saved(saved) != file.digest:  # the digest also covers fields that decoding would ignore
        raise BadPlan("the plan contains data unknown to this version of reconciler", _AGAIN)
    if why := _why_invalid(saved):
        raise BadPlan(f"invalid plan: {why}", _AGAIN)
    return saved


def moved(saved: SavedPlan, scene: PlanningResult) -> tuple[Difference, ...]:
    """Why the plan may not be applied any more; empty if it may. `scene` is the new plan from the same policies."""
    inputs = scene.inputs
    if inputs.observed.cluster_uid != saved.cluster_uid:
        return (OtherCluster(saved.cluster_uid, inputs.observed.cluster_uid),)
    return (*_outdated(saved, inputs), *(each for step in saved.steps for each in _step_moved(step, scene)))


def exactly(saved: SavedPlan, scene: PlanningResult) -> Plan:
    """Exactly the saved actions, with their updates of the memory. Only if nothing has changed."""
    wanted = {step.decision.subject for step in saved.steps}
    kept = tuple(each for each in scene.plan.decisions if each.subject in wanted and not isinstance(each.act, Hold))
    judged = judge(scene.inputs, scene.fleet, Proposed(kept, scene.plan.consequences))
    memory = msgspec.structs.replace(scene.plan.memory, marks=judged.marks)
    digest = digest_of(judged.decisions, memory, None)
    return msgspec.structs.replace(
        scene.plan, digest=digest, decisions=judged.decisions, memory=memory, wake_at=None, guarded=judged.guarded
    )


def _why_invalid(saved: SavedPlan) -> str:
    """Content that the planner would never write."""
    for step in saved.steps:
        decision = step.decision
        if isinstance(decision.act, Hold) or decision.would:
            return f"the decision about {decision.subject.title!a} is not an action"
        if why := next(of_decision(decision), ""):
            return why
        if isinstance(decision.act, Apply) and (why := why_not_its_own(decision.subject, decision.act.manifest)):
            return why
    return next(of_desired(saved.desired), "")


def _steps(scene: PlanningResult) -> Iterator[SavedAction]:
    for each in scene.plan.decisions:
        if not isinstance(each.act, Hold) and not each.would:
            yield SavedAction(each, _takes(scene, each))


def _takes(scene: PlanningResult, decision: Decision) -> tuple[DisruptionRecord, ...]:
    stage = GuardContext(scene.fleet, scene.inputs, scene.plan.consequences)
    return tuple(sorted(each.mark for each in taken(stage, decision)))


def _outdated(saved: SavedPlan, inputs: Inputs) -> Iterator[Difference]:
    if inputs.now >= saved.expires_at:
        yield Expired(saved.expires_at)
    for each in unread_of_use(inputs.observed):
        yield UnreadNow(each.kind, each.why)


def _step_moved(step: SavedAction, scene: PlanningResult) -> Iterator[Difference]:
    before = step.decision
    subject = before.subject
    now = _decided_now(scene, before)
    if now is None:
        yield NothingToDo(subject)
        return
    if now.subject.uid != subject.uid:
        yield OtherObject(subject)
    elif isinstance(now.act, Hold):
        yield HeldNow(subject, now.reason)
    elif (
        isinstance(before.act, Hold)
        or _without_preconditions(now.act) != _without_preconditions(before.act)
        or now.would
    ):
        yield OtherAction(subject, now.reason)
    elif (paths := _paths(now)) != (paths_before := _paths(before)):
        yield OtherFields(subject, paths_before, paths)
    else:
        yield from _takes_more(subject, step.takes, _takes(scene, now))


def _paths(decision: Decision) -> tuple[str, ...]:
    """Fields that the decision edits."""
    facts = decision.reason.facts
    return facts.paths if isinstance(facts, OfPaths) else ()


def _decided_now(scene: PlanningResult, before: Decision) -> Decision | None:
    """The present decision about the same subject, whatever its uid; actions take precedence over holds."""
    place = (before.subject.kind, before.subject.namespace, before.subject.name)
    decisions = [
        each for each in scene.plan.decisions if (each.subject.kind, each.subject.namespace, each.subject.name) == place
    ]
    return min(decisions, key=lambda each: isinstance(each.act, Hold), default=None)


def _without_preconditions(act: Action) -> Action:
    """The action without resourceVersions and pod destinations."""
    act = act.api_request if isinstance(act, Evict) else act
    return msgspec.structs.replace(act, presumes=Preconditions(absent=act.presumes.absent))


def _takes_more(
    subject: Ref, before: tuple[DisruptionRecord, ...], now: tuple[DisruptionRecord, ...]
) -> Iterator[Difference]:
    known = {(each.kind, each.name, each.uid): each for each in before}
    new = [each.name for each in now if (each.kind, each.name, each.uid) not in known]
    busier = [
        each.name
        for each in now
        if (old := known.get((each.kind, each.name, each.uid))) and (each.gpus, each.goes) > (old.gpus, old.goes)
    ]
    if new:
        yield TakesMore(subject, tuple(new))
    if busier:
        yield BusierNow(subject, tuple(busier))
