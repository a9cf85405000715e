"""The scheduler extender of the simulated controller: answers about pods with a GpuClaim from a Desk, and binds them.

The desk is part of the controller's process and ends with the process; the next process reads the cluster again. While
no process runs, nobody answers. The desk is made when kube-scheduler first asks about a pod with a claim, so that
scenarios without claims pay nothing.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.fleet.amounts import claim_of
from reconciler.fleet.devices.node_room import PodRequest
from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Obstacle, Reason, pod_ref
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.gpu.reasons import PLANNER, PodBound
from reconciler.protocol.desk import Desk
from reconciler.protocol.preconditions import Object
from reconciler.report.extender_answers import refusals
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.observer import SimulatedObserver
from reconciler.simulate.stage import Stage
from reconciler.simulate.world import ProcessKilled, World

Pools = Callable[[], Sequence[Declared[GpuPool]]]

_MIX_MS = 10_000  # as in the controller


class SimulatedExtender:
    """An Actor and a Fence. Owner of the desk of the running process."""

    def __init__(self, pools: Pools) -> None:
        """`pools`: those of the policies in force."""
        self.on_kill: Callable[[], None] = lambda: None  # the process was killed during a Binding
        self.watch_delay_ms = 0
        self._pools = pools
        self._pools_read: Sequence[Declared[GpuPool]] | None = None
        self._is_running = True
        self._feed: DeskFeed | None = None
        self._mix_due = Instant(0)

    def start(self, stage: Stage) -> None:
        self._stage = stage

    def end_process(self) -> None:
        """The desk and its reservations are gone."""
        self._is_running = False
        self._forget()

    def begin_process(self) -> None:
        self._is_running = True
        self._forget()

    def _forget(self) -> None:
        if self._feed is not None:
            self._feed.stop()
        self._feed, self._pools_read, self._mix_due = None, None, Instant(0)

    def holds(self) -> bool:
        return self._is_running

    def best_node(self, pod: Pod, node_names: Sequence[str]) -> str:
        """The node that the extender's filter leaves, as in the controller: the first of the best; empty if none."""
        answers = self._desk().answers(claim_of(pod), node_names, pod.metadata.uid, PodRequest.of(pod))
        ranks = [
            (each.rank, place, name) for place, (name, each) in enumerate(answers.items()) if each.rank is not None
        ]
        return min(ranks)[2] if ranks else ""

    def why_not(self, pod: Pod, node_names: Sequence[str]) -> Counter[str]:
        """Why the nodes cannot serve the pod, as the scheduler reports it: number of nodes by sentence."""
        answers = self._desk().answers(claim_of(pod), node_names, pod.metadata.uid, PodRequest.of(pod))
        answer = refusals({name: each.obstacle for name, each in answers.items() if each.obstacle is not None})
        return Counter([*answer.failed_nodes.values(), *answer.failed_and_unresolvable_nodes.values()])

    def serves_without(self, pod: Pod, node: str, victims: Sequence[str]) -> bool:
        """Whether the node could serve the pod if the pods with these uids were gone."""
        return self._desk().serves_without(claim_of(pod), node, victims)

    def awaits_release(self, pod: Pod) -> bool:
        """Whether only Leases of ended pods keep the pod from its nominated node: then nobody else is preempted."""
        desk, claim, nominated = self._desk(), claim_of(pod), pod.status.nominated_node_name
        return desk.awaits_release(claim, frozenset(), nominated) and not desk.serves_without(claim, nominated, ())

    def bind(self, pod: Pod, node: str) -> bool:
        """Whether the pod is bound; otherwise the scheduler asks again later."""
        desk = self._desk()
        reservation = desk.reserve(pod, node)
        if isinstance(reservation, Obstacle):
            return False
        decision = Decision(PLANNER, pod_ref(pod), reservation.bind, Reason(PodBound(pod_ref(pod), node)))
        try:
            (outcome,) = self._stage.world.apply((decision,), self)
        except ProcessKilled:
            self.on_kill()
            return False
        if outcome.result not in {"done", "unknown"}:
            desk.end_reservation(reservation)
        return outcome.result == "done"

    def _desk(self) -> Desk:
        if self._feed is None:
            self._feed = DeskFeed(self._stage.world)
        desk, pools = self._feed.desk, self._pools()
        if pools is not self._pools_read:
            desk.set_pools(pools)
            self._pools_read = pools
        self._feed.take(self.watch_delay_ms)
        if self._stage.now >= self._mix_due:
            desk.look_at_mix()
            self._mix_due = Instant(self._stage.now + _MIX_MS)
        return desk


# --- What the desk sees of the world.

_KINDS = ("GpuClaim", "GpuNodeStatus", "Lease", "Node", "Pod")
_MOST_LATE = 1_000  # changes that are kept without a question


class DeskFeed:
    """Owner of a desk, and of changes that the desk does not see yet."""

    def __init__(self, world: World) -> None:
        self.desk = Desk()
        self._world = world
        self._delay_ms = 0
        self._late: deque[tuple[Instant, Key, Object | None]] = deque()
        self._observer = SimulatedObserver("", world.known, world.own_namespace)
        self._put: Mapping[type[Any], Callable[[Any], None]] = {
            Node: self.desk.put_node,
            Pod: self.desk.put_pod,
            Lease: self.desk.put_lease,
            Unstructured: self.desk.put_policy,
        }
        self._drop: Mapping[type[Any], Callable[[Any], None]] = {
            Node: lambda node: self.desk.drop_node(node.name),
            Pod: self.desk.drop_pod,
            Lease: self.desk.drop_lease,
            Unstructured: self.desk.drop_policy,
        }
        for kind in _KINDS:
            for body in world.of(kind):
                self._heed(key_of(body), body)
        self.desk.is_read = True
        world.subscribe(self._note, *_KINDS)

    def stop(self) -> None:
        self._world.unsubscribe(self._note)

    def take(self, delay_ms: int) -> None:
        """Passes on all changes that are at least this old."""
        self._delay_ms = delay_ms
        until = self._world.now - delay_ms
        while self._late and self._late[0][0] <= until:
            _, key, body = self._late.popleft()
            self._heed(key, body)

    def _note(self, written: ObjectWrite) -> None:
        self._late.append((self._world.now, written.key, written.after))
        if len(self._late) > _MOST_LATE:
            self.take(self._delay_ms)

    def _heed(self, key: Key, body: Object | None) -> None:
        self._world.read_object(key)  # decoded once for all observers
        before = self._observer.get(key)
        self._observer.take(key, body)
        after = self._observer.get(key)
        if before is not None and (after is None or after.metadata.uid != before.metadata.uid):
            self._drop[type(before)](before)
        if after is not None:
            self._put[type(after)](after)


def asks_extender(pod: Pod) -> bool:
    """Whether kube-scheduler asks the extender about the pod: only the second scheduler is configured to."""
    return bool(pod.metadata.annotations.claim) and pod.spec.scheduler_name == names.GPU_SCHEDULER
