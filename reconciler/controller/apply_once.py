"""`apply`: one cycle by a person, with the same loop as the controller, its Lease included."""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from reconciler.controller.cluster import ClusterView, current_instant
from reconciler.controller.dry_run import Question
from reconciler.controller.policies import Checkup, check, check_custom_resources, saved_problems
from reconciler.kube.api_server import Writer
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import connect, context_name
from reconciler.kube.cluster import LookedOnce
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import observe_once
from reconciler.loop import Cycle, InProcess, LoopDependencies, decide
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check as check_plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.files.saved_plan import SavedPlan, exactly, moved
from reconciler.policy.resolve import chosen
from reconciler.ports import Declined, Fence, PlanService, Wished
from reconciler.report.decision_text import difference_words

# --- Leadership for as long as a command acts: where a controller runs, a command does not act beside it.

_AT_ONCE_SECONDS = 1.0
_LONGEST_SECONDS = 25.0  # more than the longest lease, and some for an API server in trouble

Tell = Callable[[str], None]


class Occupied(Exception):
    """Someone else leads, or it can't be known; the sentence says who, and what to do."""


@contextmanager
def leading(server: Writer, namespace: str, tell: Tell) -> Iterator[Fence]:
    """The fence to act with; given back at the end. Raises Occupied."""
    leader = Leader(server, Candidacy(f"{socket.gethostname()}_{uuid.uuid4()}", namespace))
    leader.start()
    try:
        term = leader.wait_for_term(_AT_ONCE_SECONDS)
        if term is None and not leader.trouble:
            tell(f"{leader.holder} has the Lease: waiting to see whether it still runs")
            term = leader.wait_for_term(_LONGEST_SECONDS)
        if term is None:
            raise Occupied(_why(leader, namespace))
        yield term
    finally:
        leader.release()


def _why(leader: Leader, namespace: str) -> str:
    if leader.trouble:
        needs = f"it takes the namespace {namespace}, and the rights that `reconciler rbac --write` prints"
        return f"whether a controller runs here can't be known: {leader.trouble}; {needs}"
    return (
        f"a controller runs here, and acts on its own policies: {leader.holder} leads in the namespace {namespace}. "
        "Commit what it should do, or scale it to zero first"
    )


ANSWER_WITHIN_MS = 600_000  # a plan that is older is not what the cluster needs any more

Confirm = Callable[[PlanningResult], bool]


class Acting(msgspec.Struct, frozen=True):
    """Where it is acted, who is told meanwhile, and who agrees to a plan before it is carried out."""

    context: str | None
    tell: Tell
    namespace: str = names.OWN_NAMESPACE
    confirm: Confirm | None = None  # None: nobody is asked


class Once(msgspec.Struct, frozen=True):
    """What came of it; without a cycle where the policies have problems. A saved plan brings its own policies."""

    checkup: Checkup | None = None
    cluster_view: ClusterView | None = None
    cycled: CycleResult | None = None


class NotConfirmed(Declined):
    """A person was asked, and did not agree; the sentence says why nothing was done."""


class NotAllowed(Exception):
    """A saved plan wishes for what no template may yield; each sentence says what."""

    def __init__(self, sentences: tuple[str, ...]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


class PlanOutdated(Declined):
    """What a saved plan presumes is not so any more."""

    def __init__(self, sentences: tuple[str, ...]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def apply_once(question: Question, acting: Acting) -> Once:
    """Raises NotChosen, NotConfirmed, Occupied, Unreachable."""
    checkups: list[Checkup] = []
    if not question.origins.resources:  # problems are told before anything is asked for
        checkups.append(check(question.origins, question.environment))
        if checkups[0].resolved.problems:
            return Once(checkups[0])

    def wish(observed: Observed) -> Wished:
        if not checkups:
            checkups.append(check_custom_resources(observed))
        resolved = checkups[0].resolved
        if resolved.problems:
            return Wished(None, resolved.problems)
        return Wished(chosen(resolved, question.environment, observed.cluster_uid))

    brain = _Confirmed(acting.confirm) if acting.confirm else InProcess()
    cluster_view, cycled = _cycle(acting, _Intent(wish, brain, question.prune))
    if checkups[0].resolved.problems:
        return Once(checkups[0])
    return Once(checkups[0], cluster_view, cycled)


def apply_saved(saved: SavedPlan, acting: Acting) -> Once:
    """Exactly what was saved. Raises NotAllowed, NotConfirmed, Moved, Occupied, Unreachable."""
    if problems := saved_problems(saved.desired):
        raise NotAllowed(tuple(each.sentence for each in problems))
    brain = _Exactly(saved, acting.confirm)
    cluster_view, cycled = _cycle(acting, _Intent(lambda _: Wished(saved.desired), brain, saved.prune))
    return Once(None, cluster_view, cycled)


class _Intent(msgspec.Struct, frozen=True):
    """What is wished for, once it is known for which cluster, and who plans it."""

    wish: Callable[[Observed], Wished]
    brain: PlanService
    prune: tuple[str, ...] = ()


def _cycle(acting: Acting, intent: _Intent) -> tuple[ClusterView, CycleResult]:
    client = connect(acting.context)
    try:
        with leading(client, acting.namespace, acting.tell) as fence:
            observed = observe_once(client, acting.namespace)  # now, so that what the last leader wrote is in it
            parts = LoopDependencies(
                policies=_FixedPolicies(intent.wish(observed)),
                cluster=LookedOnce(observed, Executor(client)),
                memory=ConfigMapMemory(client, acting.namespace),
                brain=intent.brain,
                clock=_Now(),
                prune=intent.prune,
            )
            cycled = Cycle(parts).once(fence)
    finally:
        client.close()
    return ClusterView(observed, context_name(acting.context), cycled.at), cycled


class _Confirmed:
    """A Brain whose plan a person has agreed to: exactly the plan that was shown is carried out."""

    def __init__(self, confirm: Confirm) -> None:
        self._confirm = confirm

    def plan(self, inputs: Inputs) -> Plan:
        """Raises NotConfirmed."""
        scene = decide(inputs)
        _ask(self._confirm, scene)
        return scene.plan


class _Exactly:
    """A Brain that has one plan, or none; a person has agreed to it where one is asked."""

    def __init__(self, saved: SavedPlan, confirm: Confirm | None = None) -> None:
        self._saved = saved
        self._confirm = confirm

    def plan(self, inputs: Inputs) -> Plan:
        """Raises Moved, NotConfirmed, BrokenInvariant."""
        scene = decide(inputs)
        if differences := moved(self._saved, scene):
            raise PlanOutdated(tuple(map(difference_words, differences)))
        plan = exactly(self._saved, scene)
        check_plan(inputs, scene.fleet, plan)
        if self._confirm is not None:
            _ask(self._confirm, msgspec.structs.replace(scene, plan=plan))
        return plan


def _ask(confirm: Confirm, scene: PlanningResult) -> None:
    """Raises NotConfirmed."""
    asked_at = current_instant()
    if not confirm(scene):
        raise NotConfirmed("the plan was not confirmed")
    if current_instant() - asked_at > ANSWER_WITHIN_MS:
        raise NotConfirmed("the answer came after more than 10 minutes; run it again, and look at the new plan")


class _FixedPolicies:
    """A Policies that says one thing."""

    def __init__(self, wished: Wished) -> None:
        self._wished = wished

    def wish(self, cluster_uid: str) -> Wished:
        return self._wished


class _Now:
    """A Clock of one cycle, which waits for nothing."""

    def now(self) -> Instant:
        return current_instant()

    def wait(self, until: Instant | None) -> None:
        return
