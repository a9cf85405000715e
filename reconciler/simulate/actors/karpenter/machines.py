"""Owner of Karpenter's view of NodeClaims and Nodes, and of its intentions for them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.fleet.amounts import counted
from reconciler.model import names
from reconciler.model.instant import Instant, instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import condition, condition_of, is_leaving, labels_of, says

NODES = "nodes"  # in limits: the number of nodes
# The base of a budget's percentage, and the nodes that have used it up; no resource has such a name.
EXISTING = "existing nodes"  # initialized and not shut down
DISRUPTED = "disrupted nodes"  # of those: being removed, or not ready


class Machines:
    """Updated with each write; iteration is in insertion order."""

    def __init__(self) -> None:
        self.claims: dict[str, Object] = {}
        self.nodes: dict[str, Object] = {}
        self.unlaunched: dict[str, None] = {}  # claims that are not being deleted
        self.fresh: dict[str, None] = {}  # launched, not initialized
        self.leaving: dict[str, None] = {}  # deleted, not gone
        self.drifted: dict[str, None] = {}  # and not being deleted
        self.marked: dict[str, None] = {}  # to be deleted once their replacements are ready
        self.version = 0  # changes when a claim is deleted, or a node is added, deleted or cordoned
        self._claim_on: dict[str, str] = {}
        self._of_pool: dict[str, dict[str, None]] = {}
        self._on_pool: dict[str, dict[str, str]] = {}  # nodes by pool, including former ones, with their claims
        self._sizes: dict[str, dict[str, int]] = {}
        self._nominated: dict[str, Instant] = {}
        self._parts: dict[str, tuple[str, Mapping[str, int]]] = {}  # of each claim in the totals of its NodePool
        self._totals: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def take_claim(self, name: str, body: Object | None) -> None:
        before = self.claims.pop(name, None)
        for index in (self.unlaunched, self.fresh, self.leaving, self.drifted):
            index.pop(name, None)
        if body is None:
            self._forget(name, before)
            return
        self.claims[name] = body
        status = body.get("status") or {}
        self._of_pool.setdefault(pool_of(body), {})[name] = None
        if node := node_name_of(body):
            self._claim_on[node] = name
            self._on_pool.setdefault(pool_of(body), {})[node] = name
        if before is None or (before.get("status") or {}).get("capacity") is not status.get("capacity"):
            self._sizes[name] = counted(status.get("capacity") or {})
        if is_leaving(body):
            self.version += before is None or not is_leaving(before)
            self.leaving[name] = None
        elif not status.get("providerID"):
            self.unlaunched[name] = None
        elif not says(body, INITIALIZED):
            self.fresh[name] = None
        if says(body, DRIFTED) and name not in self.leaving:
            self.drifted[name] = None
        self._count(name)

    def take_node(self, name: str, body: Object | None) -> None:
        before = self.nodes.get(name)
        if body is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = body
        if before is None or body is None or (before.get("spec") or {}) != (body.get("spec") or {}):
            self.version += 1
        if (claim := self._claim_on.get(name)) is not None:
            self._count(claim)

    def mark(self, name: str) -> None:
        """Marks the claim for deletion after its replacement is ready."""
        self.marked[name] = None
        self._count(name)

    def unmark(self, name: str) -> None:
        self.marked.pop(name, None)
        self._count(name)

    def of_pool(self, pool: str) -> Iterator[Object]:
        return (self.claims[name] for name in self._of_pool.get(pool, ()))

    def without(self, nodes: AbstractSet[str], pool: str) -> list[Object]:
        """The claims of a NodePool except those of these nodes, by node name."""
        there = self._on_pool.get(pool, {})
        return [self.claims[there[node]] for node in sorted(node for node in there if node not in nodes)]

    def drifted_of(self, pool: str) -> list[Object]:
        return [self.claims[name] for name in self.drifted if name in self._of_pool.get(pool, ())]

    def claim_of(self, node: str) -> Object | None:
        name = self._claim_on.get(node)
        return self.claims.get(name) if name is not None else None

    def node_of(self, claim: Object) -> Object | None:
        return self.nodes.get(node_name_of(claim))

    def leaving_claims(self) -> list[Object]:
        return [self.claims[name] for name in (*self.leaving, *self.marked) if name in self.claims]

    def is_leaving(self, name: str) -> bool:
        return name in self.leaving or name in self.marked

    def total(self, pool: str, name: str) -> int:
        """Of the NodePool's machines: a resource or NODES, without those being deleted; EXISTING; or DISRUPTED."""
        return self._totals[pool][name]

    def nominate(self, claim: str, now: Instant) -> None:
        """Pods are expected on the claim's node."""
        self._nominated[claim] = Instant(now + NOMINATED_MS)

    def is_nominated(self, claim: str, now: Instant) -> bool:
        return self._nominated.get(claim, now) > now

    def _forget(self, name: str, before: Object | None) -> None:
        self.marked.pop(name, None)
        self._sizes.pop(name, None)
        self._nominated.pop(name, None)
        if before is None:
            return
        self.version += 1
        self._of_pool.get(pool_of(before), {}).pop(name, None)
        node = node_name_of(before)
        if self._claim_on.get(node) == name:
            del self._claim_on[node]
            self._on_pool.get(pool_of(before), {}).pop(node, None)
        self._count(name)

    def _count(self, name: str) -> None:
        """Updates the totals of the claim's NodePool."""
        pool, amounts = self._parts.pop(name, ("", {}))
        self._totals[pool].subtract(amounts)
        claim = self.claims.get(name)
        if claim is None:
            return
        is_going = self.is_leaving(name)
        is_standing = says(claim, INITIALIZED) and not says(claim, TERMINATING)
        is_disrupted = is_standing and (is_going or not says(self.node_of(claim), "Ready"))
        is_used = not is_going and name not in self.unlaunched
        part = {**self._sizes.get(name, {}), NODES: 1} if is_used else {}
        part |= {EXISTING: int(is_standing), DISRUPTED: int(is_disrupted)}
        self._parts[name] = pool_of(claim), part
        self._totals[pool_of(claim)].update(part)


def pool_of(body: Object) -> str:
    return labels_of(body).get(names.KARPENTER_POOL, "")


def node_name_of(claim: Object) -> str:
    """Empty before the registration."""
    return str((claim.get("status") or {}).get("nodeName", ""))


# --- Conditions of NodeClaims as JSON.

LAUNCHED = "Launched"
REGISTERED = "Registered"
INITIALIZED = "Initialized"
DRIFTED = "Drifted"
TERMINATING = "InstanceTerminating"
DISRUPTION = "DisruptionReason"


def since(body: Object, name: str) -> Instant:
    """Time of the last transition; 0 if absent."""
    text = (condition_of(body, name) or {}).get("lastTransitionTime", "")
    return instant(text) if text else Instant(0)


def new_condition(name: str, now: Instant, status: str = "True", reason: str = "") -> Object:
    """A condition with a transition now; its reason is by default its type."""
    return condition(name, status, now, reason or name)


# --- Delays of the simulated Karpenter and cloud, and Karpenter's own intervals.

# Karpenter's defaults.
BATCH_IDLE_MS = 1_000
BATCH_MOST_MS = 10_000
AGAIN_MS = 10_000  # interval for pending pods and disruption candidates
NOMINATED_MS = 20_000  # a node with expected pods is not disrupted for this time
VALIDATED_AFTER_MS = 15_000  # delay of the validation of a consolidation
LEAST_DRAIN_MS = 5_000
LAUNCH_LIMIT_MS = 5 * 60_000
REGISTRATION_LIMIT_MS = 15 * 60_000
SHORTAGE_REMEMBERED_MS = 3 * 60_000  # how long a stock-out is remembered


class Timing(msgspec.Struct, frozen=True):
    """Delays of cloud and machines, which differ between clusters."""

    launch_ms: int = 3_000
    registration_ms: int = 90_000  # from launch to registration of the Node
    initialization_ms: int = 60_000  # from registration to readiness with devices
    startup_taints_ms: int = 10_000  # until others remove startup taints; reconciler removes its own
    termination_ms: int = 30_000  # from the end of the drain to the removal of the machine
    notice_ms: int = 1_000  # delay of watches
