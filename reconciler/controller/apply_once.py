"""`apply`: runs one cycle with the same loop as the controller, including its Lease."""

import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from reconciler.controller.cluster import ClusterView, current_instant
from reconciler.controller.policies import Checkup, Question, check, check_custom_resources, saved_problems
from reconciler.kube.api_server import Writer
from reconciler.kube.apply.execute import Executor
from reconciler.kube.client import connect, context_name
from reconciler.kube.cluster import LiveCluster
from reconciler.kube.leader import Candidacy, Leader
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import observe_once
from reconciler.loop.cycle import Cycle, LoopDependencies, decide
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

# --- Leadership while a command acts: no command acts while a controller runs.

_AT_ONCE_SECONDS = 1.0
_LONGEST_SECONDS = 25.0  # the longest lease, and a margin for slow API servers

Tell = Callable[[str], None]


class Occupied(Exception):
    """Another replica leads, or leadership is unknown; the message names the leader and a remedy."""


@contextmanager
def leading(server: Writer, namespace: str, tell: Tell) -> Iterator[Fence]:
    """Acquires leadership, yields its fence, and releases the Lease at the end. Raises Occupied."""
    leader = Leader(server, Candidacy(f"{socket.gethostname()}_{uuid.uuid4()}", namespace))
    leader.start()
    try:
        term = leader.wait_for_term(_AT_ONCE_SECONDS)
        if term is None and not leader.trouble:
            tell(f"{leader.holder} holds the Lease: waiting to see whether it is still running")
            term = leader.wait_for_term(_LONGEST_SECONDS)
        if term is None:
            raise Occupied(_why(leader, namespace))
        yield term
    finally:
        leader.release()


def _why(leader: Leader, namespace: str) -> str:
    if leader.trouble:
        needs = f"the command needs the namespace {namespace}, and the rights printed by `reconciler rbac --write`"
        return f"cannot determine whether a controller runs here: {leader.trouble}; {needs}"
    return (
        f"a controller runs here with its own policies: {leader.holder} leads in the namespace {namespace}. "
        "Commit the change instead, or scale the controller to zero first"
    )


ANSWER_WITHIN_MS = 600_000  # an older plan may no longer fit the cluster

Confirm = Callable[[PlanningResult], bool]


class Acting(msgspec.Struct, frozen=True):
    """Target of an apply, the receiver of progress notes, and the confirmation of the plan."""

    context: str | None
    tell: Tell
    namespace: str = names.OWN_NAMESPACE
    confirm: Confirm | None = None  # None: no confirmation


class Once(msgspec.Struct, frozen=True):
    """Result of an apply; without a cycle if the policies have problems. A saved plan contains its own policies."""

    checkup: Checkup | None = None
    cluster_view: ClusterView | None = None
    cycled: CycleResult | None = None


class NotConfirmed(Declined):
    """A person did not confirm the plan; the message says why."""


class NotAllowed(Exception):
    """A saved plan contains objects that templates must not render; one argument per object: a sentence."""


class PlanOutdated(Declined):
    """Preconditions of a saved plan no longer hold; one argument per precondition: a sentence."""


def apply_once(question: Question, acting: Acting) -> Once:
    """Raises NotChosen, NotConfirmed, Occupied, Unreachable."""
    checkups: list[Checkup] = []
    if not question.origins.resources:  # problems are reported before the cluster is read
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

    cluster_view, cycled = _cycle(acting, wish, _Confirmed(acting.confirm), question.prune)
    if checkups[0].resolved.problems:
        return Once(checkups[0])
    return Once(checkups[0], cluster_view, cycled)


def apply_saved(saved: SavedPlan, acting: Acting) -> Once:
    """Applies exactly the saved plan. Raises NotAllowed, NotConfirmed, Moved, Occupied, Unreachable."""
    if problems := saved_problems(saved.desired):
        raise NotAllowed(*(each.sentence for each in problems))
    brain = _Confirmed(acting.confirm, saved)
    cluster_view, cycled = _cycle(acting, lambda _: Wished(saved.desired), brain, saved.prune)
    return Once(None, cluster_view, cycled)


def _cycle(
    acting: Acting, wish: Callable[[Observed], Wished], brain: PlanService, prune: tuple[str, ...]
) -> tuple[ClusterView, CycleResult]:
    """One cycle with the desired state, which is available once the cluster is known."""
    client = connect(acting.context)
    try:
        with leading(client, acting.namespace, acting.tell) as fence:
            observed = observe_once(client, acting.namespace)  # now, to include the last writes of the previous leader
            parts = LoopDependencies(
                policies=_FixedPolicies(wish(observed)),
                cluster=LiveCluster(lambda: observed, Executor(client)),
                memory=ConfigMapMemory(client, acting.namespace),
                brain=brain,
                clock=_Now(),
                prune=prune,
            )
            cycled = Cycle(parts).once(fence)
    finally:
        client.close()
    return ClusterView(observed, context_name(acting.context), cycled.at), cycled


class _Confirmed:
    """A Brain whose plan a person confirms if required. A saved plan is carried out exactly, or not at all."""

    def __init__(self, confirm: Confirm | None, saved: SavedPlan | None = None) -> None:
        self._confirm = confirm
        self._saved = saved

    def plan(self, inputs: Inputs) -> Plan:
        """Raises PlanOutdated, NotConfirmed, BrokenInvariant."""
        scene = decide(inputs)
        if self._saved is not None:
            if differences := moved(self._saved, scene):
                raise PlanOutdated(*map(difference_words, differences))
            plan = exactly(self._saved, scene)
            check_plan(inputs, scene.fleet, plan)
            scene = msgspec.structs.replace(scene, plan=plan)
        if self._confirm is not None:
            _ask(self._confirm, scene)
        return scene.plan


def _ask(confirm: Confirm, scene: PlanningResult) -> None:
    """Raises NotConfirmed."""
    asked_at = current_instant()
    if not confirm(scene):
        raise NotConfirmed("the plan was not confirmed")
    if current_instant() - asked_at > ANSWER_WITHIN_MS:
        raise NotConfirmed("the answer came after more than 10 minutes; run the command again, and review the new plan")


class _FixedPolicies:
    """A Policies with a fixed result."""

    def __init__(self, wished: Wished) -> None:
        self._wished = wished

    def wish(self, cluster_uid: str) -> Wished:
        return self._wished


class _Now:
    """A Clock for one cycle; never waits."""

    def now(self) -> Instant:
        return current_instant()

    def wait(self, until: Instant | None) -> None:
        return
