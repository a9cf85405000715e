"""`apply`: one cycle by a person, with the same loop as the controller, its Lease included."""

from collections.abc import Callable

import msgspec

from reconciler.kube.apply.applying import Applying
from reconciler.kube.client import connect
from reconciler.kube.context import context_name
from reconciler.kube.looked_once import LookedOnce
from reconciler.kube.memory_store import ConfigMapMemory
from reconciler.kube.observe import observe_once
from reconciler.loop import Cycle, InProcess, Parts, decide
from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.planned.cycled import Cycled
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.plan import Plan
from reconciler.plan.kept.saved import SavedPlan, exactly, moved
from reconciler.policy.environments import chosen
from reconciler.ports import Brain, Wished
from reconciler.wiring.cluster import Sight, current_instant
from reconciler.wiring.dry_run import Question
from reconciler.wiring.leading import Tell, leading
from reconciler.wiring.policies import Checkup, check, check_seen


class Acting(msgspec.Struct, frozen=True):
    """Where it is acted, and who is told meanwhile."""

    context: str | None
    tell: Tell
    namespace: str = names.OWN_NAMESPACE


class Once(msgspec.Struct, frozen=True):
    """What came of it; without a cycle where the policies have problems. A saved plan brings its own policies."""

    checkup: Checkup | None = None
    sight: Sight | None = None
    cycled: Cycled | None = None


class Moved(Exception):
    """What a saved plan presumes is not so any more."""

    def __init__(self, sentences: tuple[str, ...]) -> None:
        super().__init__("; ".join(sentences))
        self.sentences = sentences


def apply_once(question: Question, acting: Acting) -> Once:
    """Raises NotChosen, Occupied, Unreachable."""
    checkups: list[Checkup] = []
    if not question.origins.resources:  # problems are told before anything is asked for
        checkups.append(check(question.origins))
        if checkups[0].resolved.problems:
            return Once(checkups[0])

    def wish(observed: Observed) -> Wished:
        if not checkups:
            checkups.append(check_seen(observed))
        resolved = checkups[0].resolved
        if resolved.problems:
            return Wished(None, resolved.problems)
        return Wished(chosen(resolved, question.environment, observed.cluster_uid))

    sight, cycled = _cycle(acting, _Intent(wish, InProcess(), question.prune))
    if checkups[0].resolved.problems:
        return Once(checkups[0])
    return Once(checkups[0], sight, cycled)


def apply_saved(saved: SavedPlan, acting: Acting) -> Once:
    """Exactly what was saved. Raises Moved, Occupied, Unreachable."""
    sight, cycled = _cycle(acting, _Intent(lambda _: Wished(saved.desired), _Exactly(saved), saved.prune))
    return Once(None, sight, cycled)


class _Intent(msgspec.Struct, frozen=True):
    """What is wished for, once it is known for which cluster, and who plans it."""

    wish: Callable[[Observed], Wished]
    brain: Brain
    prune: tuple[str, ...] = ()


def _cycle(acting: Acting, intent: _Intent) -> tuple[Sight, Cycled]:
    client = connect(acting.context)
    try:
        with leading(client, acting.namespace, acting.tell) as fence:
            observed = observe_once(client, acting.namespace)  # now, so that what the last leader wrote is in it
            parts = Parts(
                policies=_Given(intent.wish(observed)),
                cluster=LookedOnce(observed, Applying(client, acting.namespace)),
                memory=ConfigMapMemory(client, acting.namespace),
                brain=intent.brain,
                clock=_Now(),
                prune=intent.prune,
            )
            cycled = Cycle(parts).once(fence)
    finally:
        client.close()
    return Sight(observed, context_name(acting.context), cycled.at), cycled


class _Exactly:
    """A Brain that has one plan, or none."""

    def __init__(self, saved: SavedPlan) -> None:
        self._saved = saved

    def plan(self, inputs: Inputs) -> Plan:
        """Raises Moved."""
        scene = decide(inputs)
        if sentences := moved(self._saved, scene):
            raise Moved(sentences)
        return exactly(self._saved, scene)


class _Given:
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
