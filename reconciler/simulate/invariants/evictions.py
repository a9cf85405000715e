"""Evictions: only from drained nodes, only recreated pods, within budgets, and whole gangs."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import LONGEST_GRACE_SECONDS, Pod, is_stuck
from reconciler.model.instant import Instant, moment, timestamp
from reconciler.model.quantity import Duration
from reconciler.plan.drain.codes.blockers import ANNOTATION_BLOCKERS
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import (
    LONG_AGO,
    InvariantContext,
    checks,
    deleted_by_us,
    goes,
    is_ours,
    removal_taints,
)
from reconciler.simulate.invariants.pressure import leaves_because_of_pressure
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    annotations_of,
    is_finished,
    is_leaving,
    key_of,
    labels_of,
    node_of,
    phase_of,
    says,
    selects,
)

_COUNTED_WITHIN_MS = 1_000  # pod changes within this time may not be in the budgets' status yet
_TOGETHER_MS = 60_000
_REST_MS = 900_000  # time limit for evicting the rest of a gang
_MAKERS = {
    "DaemonSet": "apps/v1",
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
    "StatefulSet": "apps/v1",
}
Gang = tuple[str, str]  # namespace and gangRef


def evicted_by_us(written: ObjectWrite) -> Object | None:
    """The pod that reconciler evicted with this write; its own smart pods do not count."""
    pod = deleted_by_us(written) if written.key[0] == "Pod" else None
    if pod is None or labels_of(pod).get(names.COMPONENT) == names.SMART_SCHEDULER:
        return None
    return pod if node_of(pod) and not is_finished(pod) else None


class OffDrained:
    """Only drains evict pods, and elastic pods leave nodes under pressure. With a pod of a gang, all others
    are evicted, at the latest the rest of it.

    A returned node may not be observed yet.
    """

    rule = "pods are evicted only from nodes that are being drained, or are under pressure"
    kinds = ("Node", "Pod")

    def __init__(self) -> None:
        self._gangs: dict[Gang, Instant] = {}  # when one of its pods last left a drained node
        self._given_back: dict[str, Instant] = {}  # node -> time of its last return

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.key[0] == "Node":
            if names.DRAINING in removal_taints(written.before) - removal_taints(written.after):
                self._given_back[written.key[2]] = context.now()
        elif (pod := evicted_by_us(written)) is not None:
            name = node_of(pod)
            was_drained = not context.lasts_since(self._given_back.get(name, LONG_AGO))
            is_drained = was_drained or _is_drained(name, context) or self._goes_with_others(pod, context)
            if not is_drained and not leaves_because_of_pressure(pod, context):
                yield f"{'/'.join(written.key)} is evicted from Node/{name}, which is not being drained"

    def _goes_with_others(self, pod: Object, context: InvariantContext) -> bool:
        gang = gang_of(pod, context)
        if gang is None:
            return False
        nodes = {node_of(each) for each in of_gang(gang, context)}
        if any(_is_drained(name, context) for name in nodes):
            self._gangs[gang] = context.now()
        return gang in self._gangs and context.now() - self._gangs[gang] < _REST_MS


def _is_drained(node: str, context: InvariantContext) -> bool:
    return names.DRAINING in removal_taints(context.node(node))


@checks("only pods that a controller recreates are evicted", "Pod")
def made_anew(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    """A pod whose controller may not recreate it is only evicted if it is annotated as safe to evict."""
    if (pod := evicted_by_us(written)) is None:
        return
    owner = next((each for each in pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    own = _MAKERS.get(owner["kind"]) if owner is not None else None
    # Older recordings of clusters have no API versions of owners.
    is_known = owner is not None and own is not None and owner.get("apiVersion", own) == own
    is_allowed = "true" in {annotations_of(pod).get(key) for key in (names.SAFE_TO_EVICT, names.DAEMONSET_POD)}
    if not is_known and not is_allowed:
        of = f"of {owner['kind']}/{owner['name']}" if owner is not None else "of no controller"
        yield f"{'/'.join(written.key)} is evicted, and is {of}"


class BudgetsKept:
    """Recounts from pods and their owners, independently of the budget's status."""

    rule = "evictions of reconciler violate no PodDisruptionBudget"
    kinds = ("Pod",)

    def __init__(self) -> None:
        self._lost: list[tuple[Instant, Key]] = []  # pods that recently became unhealthy through others

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now = context.now()
        if (pod := evicted_by_us(written)) is not None:
            yield from self._judged(written, pod, context)
        elif written.before and _is_healthy(written.before) and not (written.after and _is_healthy(written.after)):
            self._lost = [each for each in self._lost if now - each[0] < _COUNTED_WITHIN_MS]
            self._lost.append((now, written.key))

    def _judged(self, written: ObjectWrite, pod: Object, context: InvariantContext) -> Iterator[str]:
        if phase_of(pod) == "Pending":
            return
        title = "/".join(written.key)
        budgets = [each for each in context.world.of("PodDisruptionBudget") if selects(each, pod)]
        if len(budgets) > 1:
            yield f"{title} is evicted, and has {len(budgets)} budgets"
        for budget in budgets:
            is_free = (budget["spec"] or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
            if is_free and not _is_healthy(pod):
                continue
            lately = {key for at, key in self._lost if context.now() - at < _COUNTED_WITHIN_MS}
            healthy, desired = sum(map(_is_healthy, _meant(budget, context))) + len(lately), _desired(budget, context)
            if healthy < desired:
                name = budget["metadata"]["name"]
                yield f"{title} is evicted, {healthy} pods of PodDisruptionBudget/{name} stay healthy of {desired}"


def _is_healthy(pod: Object) -> bool:
    return not is_leaving(pod) and not is_finished(pod) and says(pod, "Ready")


def _meant(budget: Object, context: InvariantContext) -> list[Object]:
    return [each for each in context.world.of("Pod") if not is_finished(each) and selects(budget, each)]


def _desired(budget: Object, context: InvariantContext) -> int:
    """Desired healthy pods; percentages refer to the replicas of the pods' owners."""
    spec, pods = budget["spec"], _meant(budget, context)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if isinstance(least, int):
        return least
    owners = {(each["kind"], each["name"]) for pod in pods for each in pod["metadata"].get("ownerReferences") or ()}
    bodies = [context.world.at((kind, budget["metadata"]["namespace"], name)) for kind, name in sorted(owners)]
    expected = sum(int((each["spec"] or {}).get("replicas", 1)) for each in bodies if each is not None)
    if least is not None:
        return _share(least, expected)
    return max(0, expected - (most if isinstance(most, int) else _share(most, expected)))


def _share(percent: str | None, of: int) -> int:
    """Rounded up."""
    return -(-int((percent or "0%").rstrip("%")) * of // 100)


class WholeGangs:
    """Pods whose GpuClaims share a gangRef: once one is evicted, all others are evicted within a minute."""

    rule = "gangs are evicted completely"
    kinds = ("Pod",)

    def __init__(self) -> None:
        self._moved: dict[Gang, tuple[int, frozenset[str]]] = {}  # presence then, uids of others

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if (pod := evicted_by_us(written)) is not None and (gang := gang_of(pod, context)):
            uid = pod["metadata"]["uid"]
            others = frozenset(each["metadata"]["uid"] for each in members(gang, context)) - {uid}
            self._moved.setdefault(gang, (context.presence_ms(), others))
        for found, (since_ms, others) in [*self._moved.items()]:
            if context.presence_ms() - since_ms >= _TOGETHER_MS:
                del self._moved[found]
                left = sorted(key_of(each) for each in members(found, context) if each["metadata"]["uid"] in others)
                if left:
                    yield f"a pod of gang {'/'.join(found)} was evicted, but {'/'.join(left[0])} stays"


def gang_of(pod: Object, context: InvariantContext) -> Gang | None:
    namespace, claim = pod["metadata"]["namespace"], annotations_of(pod).get(names.CLAIM)
    body = context.world.at(("GpuClaim", namespace, claim)) if claim else None
    gang = (body.get("spec") or {}).get("gangRef") if body else None
    return (namespace, gang) if gang else None


def members(gang: Gang, context: InvariantContext) -> Iterator[Object]:
    """Members on nodes that are not being deleted."""
    return (each for each in of_gang(gang, context) if not is_leaving(each))


def of_gang(gang: Gang, context: InvariantContext) -> Iterator[Object]:
    for key, observed_pod in context.where.pods.items():
        body = context.world.at(key) if observed_pod.is_placed else None
        if body is not None and gang_of(body, context) == gang:
            yield body


# --- A pod that requests a checkpoint before eviction gets the time for it.

_LONGEST_MS = 86_400_000


@checks("reconciler evicts a pod with a checkpoint annotation only after its checkpoint or its time", "Pod")
def saved_first(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """The pod was notified of its eviction time, which has passed, or it has written its checkpoint since."""
    pod = deleted_by_us(written)
    asked = annotations_of(pod).get(names.CHECKPOINT)
    if pod is None or not asked or phase_of(pod) != "Running" or _is_daemon(pod) or not _may_wait(pod, context):
        return
    if why := _too_early(annotations_of(pod), context.now(), _length_ms(asked)):
        yield f"Pod/{written.key[1]}/{written.key[2]} is evicted although {why}"


def _may_wait(pod: Object, context: InvariantContext) -> bool:
    """Whether the policy allows any time, and the pod has been observable for a minute."""
    policy = context.policy_on(node_of(pod))
    started = moment((pod.get("status") or {}).get("startTime", ""))
    is_known = started is None or context.lasts_since(started)
    return is_known and (policy is None or policy.spec.max_graceful_termination_seconds > 0)


def _is_daemon(pod: Object) -> bool:
    if annotations_of(pod).get(names.DAEMONSET_POD) == "true":
        return True
    return any(each.get("kind") == "DaemonSet" for each in pod["metadata"].get("ownerReferences") or ())


def _too_early(annotations: dict[str, str], now: Instant, length_ms: int) -> str:
    evict_at, saved = (moment(annotations.get(key, "")) for key in (names.EVICT_AT, names.CHECKPOINTED_AT))
    if evict_at is None:
        return "it was not notified to write a checkpoint"
    # It may get less time than requested, and was notified at the latest now; whole seconds are enough for both.
    told_since = min(evict_at - length_ms, now) - 1_000
    is_right = evict_at <= now or (saved is not None and saved >= told_since)
    return "" if is_right else f"it has until {timestamp(evict_at)} to write its checkpoint"


def _length_ms(requested: str) -> int:
    """An unreadable duration may be treated as any length."""
    try:
        return Duration.parse(requested).milliseconds
    except ValueError:
        return _LONGEST_MS


# --- Running workloads are not removed: invariants for deletions and evictions.


@checks("reconciler deletes no node with a workload pod", "Node")
def busy_nodes(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """Except pods stuck in Terminating."""
    if (node := deleted_by_us(written)) is not None and (found := waited_for(node, context)):
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"Node/{written.key[2]} is deleted with {'/'.join(found[0])}{more} on it"


def waited_for(node: Object, context: InvariantContext) -> list[Key]:
    """Workload pods on a node, except pods stuck in Terminating."""
    counting = [each for each in context.where.pods_on(node["metadata"]["name"]) if context.where.pods[each].counts]
    if not counting:
        return []
    seen, now = msgspec.convert(node, Node), context.now()
    policy = context.policy(seen.pool)
    longest = policy.spec.max_graceful_termination_seconds if policy is not None else LONGEST_GRACE_SECONDS
    pods = ((key, context.world.at(key)) for key in counting)
    return [key for key, body in pods if body is None or not is_stuck(msgspec.convert(body, Pod), seen, now, longest)]


@checks("reconciler neither creates nor deletes NodeClaims", "NodeClaim")
def node_claim_ownership(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    if is_ours(written) and (written.before is None or goes(written)):
        yield f"NodeClaim/{written.key[2]} is {'created' if written.before is None else 'deleted'}"


@checks("reconciler respects annotations against disruption of pods", "Pod")
def protected_pods(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    if (pod := deleted_by_us(written)) is not None and (why := _why_protected(pod)):
        yield f"{'/'.join(written.key)} is removed although {why}"


def _why_protected(pod: Object) -> str:
    # reconciler's own pods are no workload
    if is_finished(pod) or not node_of(pod) or names.COMPONENT in labels_of(pod):
        return ""
    annotations = annotations_of(pod)
    protecting = ((names.DO_NOT_DISRUPT, "true"), *((each.key, each.value) for each in ANNOTATION_BLOCKERS))
    found = next((f"{key}={value}" for key, value in protecting if annotations.get(key) == value), "")
    return f"the pod has {found}" if found else ""
