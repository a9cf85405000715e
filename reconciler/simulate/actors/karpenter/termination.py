"""Owner of nodes that are being drained and terminated: Karpenter's finalizers on NodeClaims and Nodes."""

from collections.abc import Sequence

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import pod_ref
from reconciler.plan.karpenter.budgets import nanoseconds
from reconciler.plan.karpenter.node_fate import outlasts_the_drain
from reconciler.plan.nodes.eviction import FOREVER, stays_until
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.lifecycle import BY, ENDS_AT, FINALIZER
from reconciler.simulate.actors.karpenter.machines import LEAST_DRAIN_MS, TERMINATING, new_condition, node_name_of
from reconciler.simulate.objects import Key, ObjectWrite, annotations_of, is_leaving, node_of, ref_of, says, taints_of
from reconciler.simulate.stage import Batch
from reconciler.simulate.world import World


class TerminationController:
    """Updated with changed claims, nodes and pods."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._world = known.world
        self._engine = known.stage.engine
        self._drains: dict[str, TerminationDrain] = {}
        self._touched = Batch(self._engine, "pods leave", self._look_at_touched)
        known.world.subscribe(self._note, "Pod")

    def changed(self, keys: Sequence[Key]) -> None:
        """Called with claims or nodes."""
        for kind, _, name in keys:
            machines = self._known.machines
            if kind == "NodeClaim" and (claim := machines.claims.get(name)) is not None:
                self._claim(claim)
            elif kind == "Node" and (node := machines.nodes.get(name)) is not None:
                self._node(node)
            elif kind == "Node":
                self._drains.pop(name, None)
                if (claim := machines.claim_of(name)) is not None:
                    self._claim(claim)

    def _claim(self, claim: Object) -> None:
        if not is_leaving(claim):
            return
        node = self._known.machines.node_of(claim)
        if node is None:
            if not says(claim, TERMINATING):
                is_dead = node_name_of(claim) in self._known.stage.dead_nodes
                is_machine = bool((claim.get("status") or {}).get("providerID")) and not is_dead
                self._shut_down(claim, self._known.timing.termination_ms if is_machine else 0)
            return
        if not is_leaving(node):
            self._world.delete(ref_of(node), BY)

    def _node(self, node: Object) -> None:
        name = node["metadata"]["name"]
        if not is_leaving(node) or FINALIZER not in (node["metadata"].get("finalizers") or ()):
            return
        claim = self._known.machines.claim_of(name)
        if claim is not None and not is_leaving(claim):
            self._world.delete(ref_of(claim), BY)
            claim = self._world.get(ref_of(claim))
        if claim is not None:
            self._limit(claim)
        if name in self._known.stage.dead_nodes:
            self._gone(name)
        elif name not in self._drains:
            self._drains[name] = TerminationDrain(self._engine.now)
            set_disrupted(self._world, node)
            self._drain(name)

    def _drain(self, node: str) -> None:
        """One drain attempt; the next follows after an interval, or when a pod leaves."""
        state = self._drains.get(node)
        if state is None or state.is_over:
            return
        if node in self._known.stage.dead_nodes:
            self._gone(node)
            return
        again_at = drain(self._known, node, self._ends_at(node), state)
        if again_at is None:
            again_at = Instant(state.began + LEAST_DRAIN_MS)
            if again_at <= self._engine.now:
                state.is_over = True
                self._engine.after(self._known.timing.termination_ms, f"gone {node}", lambda: self._gone(node))
                return
        if again_at != FOREVER and not (state.next_look and self._engine.now < state.next_look <= again_at):
            state.next_look = again_at
            self._engine.at(again_at, f"drain {node}", lambda: self._look_again(node, again_at))

    def _look_again(self, node: str, when: Instant) -> None:
        state = self._drains.get(node)
        if state is not None and state.next_look == when:
            state.next_look = None
            self._drain(node)

    def _gone(self, node: str) -> None:
        """The machine is terminated, or was dead already."""
        self._drains.pop(node, None)
        found = self._known.machines.nodes.get(node)
        claim = self._known.machines.claim_of(node)
        if found is not None and is_leaving(found):
            self._without_finalizer(found)
        if claim is not None and is_leaving(claim):
            self._without_finalizer(claim)

    def _shut_down(self, claim: Object, delay_ms: int) -> None:
        self._world.set_condition(claim, new_condition(TERMINATING, self._engine.now), BY)

        def claim_gone() -> None:
            found = self._world.get(ref_of(claim))
            if found is not None and found["metadata"]["uid"] == claim["metadata"]["uid"]:
                self._without_finalizer(found)

        self._engine.after(delay_ms, f"gone {claim['metadata']['name']}", claim_gone)

    def _without_finalizer(self, body: Object) -> None:
        left = [each for each in body["metadata"].get("finalizers") or () if each != FINALIZER]
        self._world.edit(ref_of(body), {"metadata": {"finalizers": left}}, BY)

    def _limit(self, claim: Object) -> None:
        """The end of terminationGracePeriod."""
        written = (claim.get("spec") or {}).get("terminationGracePeriod")
        if not written or ENDS_AT in annotations_of(claim):
            return
        ends_at = Instant(instant(claim["metadata"]["deletionTimestamp"]) + nanoseconds(written) // 1_000_000)
        self._world.edit(ref_of(claim), {"metadata": {"annotations": {ENDS_AT: timestamp(ends_at)}}}, BY)

    def _ends_at(self, node: str) -> Instant | None:
        written = annotations_of(self._known.machines.claim_of(node)).get(ENDS_AT)
        return instant(written) if written else None

    def _note(self, written: ObjectWrite) -> None:
        """A changed pod on a draining node triggers another attempt."""
        node = node_of(written.before or written.after)
        if node in self._drains:
            self._touched.note(("Node", "", node))

    def _look_at_touched(self, touched: Sequence[Key]) -> None:
        for _, _, node in touched:
            self._drain(node)


# --- Drain of a node: the order of evictions, and the pods waited for.

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_DEFAULT_GRACE_SECONDS = 30
_STUCK_MS = 60_000  # after its grace period plus this, a pod is no longer waited for
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 10_000


class TerminationDrain:
    """Owner of one node's drain state."""

    def __init__(self, began: Instant) -> None:
        self.began = began
        self.wait_ms = _FIRST_WAIT_MS  # backoff after a refused eviction
        self.next_look: Instant | None = None
        self.is_over = False


def drain(known: Knowledge, node: str, ends_at: Instant | None, state: TerminationDrain) -> Instant | None:
    """Evicts the next group; returns the time of the next attempt, or None when the node is drained."""
    now = known.now
    waiting = [pod for pod in known.pods.on(node) if _is_waited_for(pod, now)]
    again = [_delete_in_time(known, pod, ends_at) for pod in waiting if ends_at is not None]
    group = min((_group(pod) for pod in waiting), default=0)
    first = [pod for pod in waiting if _group(pod) == group and not pod.metadata.leaving]
    if _evict(known, first):
        again.append(Instant(now + state.wait_ms))
        state.wait_ms = min(2 * state.wait_ms, _LONGEST_WAIT_MS)
    again += [until for pod in first if now < (until := stays_until(pod)) < FOREVER]
    again += [
        Instant(instant(pod.metadata.deletion_timestamp) + _STUCK_MS + 1) for pod in waiting if pod.metadata.leaving
    ]
    return min((each for each in again if each > now), default=FOREVER) if waiting else None


def _evict(known: Knowledge, pods: Sequence[Pod]) -> bool:
    """Returns whether an eviction must be retried."""
    is_refused = False
    for pod in pods:
        if stays_until(pod) <= known.now:
            is_refused |= known.world.evict(pod_ref(pod), BY).result != "done"
    return is_refused


def _delete_in_time(known: Knowledge, pod: Pod, ends_at: Instant) -> Instant:
    """Deletes the pod early enough for its full grace period, or what is left; returns that time."""
    requested = pod.spec.termination_grace_period_seconds
    grace_ms = 1000 * (_DEFAULT_GRACE_SECONDS if requested is None else requested)
    due = Instant(ends_at - grace_ms)
    if due <= known.now and not pod.metadata.leaving:
        known.world.delete(pod_ref(pod), BY, max(1, (ends_at - known.now) // 1000))
    return due


def _is_waited_for(pod: Pod, now: Instant) -> bool:
    if pod.is_finished or outlasts_the_drain(pod) or pod.metadata.annotations.mirror_pod:
        return False
    return not (pod.metadata.leaving and now > instant(pod.metadata.deletion_timestamp) + _STUCK_MS)


def _group(pod: Pod) -> int:
    """Critical pods go last."""
    return 2 * (pod.spec.priority_class_name in _CRITICAL) + pod.is_daemon_or_mirror


# --- Karpenter's disruption taint.

_TAINT = {"key": names.DISRUPTED, "effect": "NoSchedule"}


def set_disrupted(world: World, node: Object, wanted: bool = True) -> None:
    taints = taints_of(node)
    others = [each for each in taints if each["key"] != names.DISRUPTED]
    if wanted != (len(others) < len(taints)):
        world.edit(ref_of(node), {"spec": {"taints": [*others, _TAINT] if wanted else others}}, BY)
