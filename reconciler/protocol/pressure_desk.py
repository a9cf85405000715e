"""The pressure desk: answers the asks of agents from one ledger a node.

Theory of operation. Every replica keeps the ledgers as observed, so that a new leader starts with what is there. Only
the leader answers asks. At the beginning of a term all elastic pods are silent: an earlier leader may have permitted
more than their pods have (see fleet/pressure/ledger.py). Pods that come later begin with what they have.

A permit for less than the pod has frees nothing until the pod is observed with less. A permit for more is booked at
once, before anybody resizes the pod.

Owner: one thread, which also applies the observed changes.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.pressure.bounds import node_bounds
from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.fleet.pressure.obstacles import LeaderBinds, TooLittleReservable
from reconciler.fleet.pressure.pods import Placement, counts, ledger_pod
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Obstacle
from reconciler.model.plan.pressure import Amounts, ElasticPod, LedgerPod, NodePods, PressureState
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.protocol.asks import Ask, AskAnswer, PodName, Refusal, wire_amounts
from reconciler.protocol.permits import VALID_MS, Permit, PermitKeys
from reconciler.protocol.pressure_state import AgentState, LedgerDump, NodePressure, node_figures

RETRY_SECONDS = 5
NO_LEADER = Refusal(503, "this replica does not lead: ask again, another replica may answer", RETRY_SECONDS)

Units = Mapping[str, int]


class _Told(msgspec.Struct, frozen=True, gc=False):
    """The compute units that an agent may know."""

    last: Units
    before: Units  # with which its last ask was made


class Destination(msgspec.Struct, frozen=True):
    """Where room is reserved for a pod that leaves its node."""

    node: str
    title: str  # of the pod
    amounts: Amounts


class PressureDesk:
    """Methods that change the desk are called in the order of the observed changes."""

    def __init__(self) -> None:
        self.keys = PermitKeys()
        self.is_read = False  # whether nodes and pods have been read
        self._epoch: int | None = None  # of the term in which this replica leads
        self._policies: dict[str, Declared[PressurePolicy]] = {}  # by pool; "*": of all other pools
        self._nodes: dict[str, Node] = {}
        self._ledgers: dict[str, NodeLedger] = {}  # of nodes with a policy in force
        self._pods: dict[str, Pod] = {}  # those that count, by uid
        self._uids_on: dict[str, set[str]] = {}  # by node
        self._uids: dict[tuple[str, str], str] = {}  # by namespace and name
        self._told: dict[str, _Told] = {}  # by uid
        self._loads: dict[str, int] = {}  # thousandths, by uid
        self._changes = 0
        self._migrations: dict[str, Destination] = {}  # by uid
        self._planned: dict[str, tuple[NodeLedger, int, NodePods]] = {}  # by node, with the changes that are contained
        self._lacking: dict[str, Obstacle] = {}  # by resource; nodes share one

    # --- Observed changes

    def set_policies(self, policies: Iterable[Declared[PressurePolicy]]) -> None:
        """The declared policies; also when the watermark, `system` or the compute unit changes."""
        self._policies = {pool: each for each in policies for pool in each.spec.pool_names}
        for node in self._nodes.values():
            self._define(node)

    def put_node(self, node: Node) -> None:
        """A new or changed node."""
        self._nodes[node.name] = node
        self._define(node)

    def drop_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._ledgers.pop(name, None)

    def put_pod(self, pod: Pod) -> None:
        """A new or changed pod."""
        uid = pod.metadata.uid
        before = self._pods.get(uid)
        if before is not None and (not counts(pod) or before.node != pod.node):
            self._forget(before)
        if counts(pod):
            self._pods[uid] = pod
            self._uids_on.setdefault(pod.node, set()).add(uid)
            self._uids[pod.metadata.namespace, pod.metadata.name] = uid
            ledger = self._ledgers.get(pod.node)
            if ledger is not None:
                ledger.put(_seen_again(ledger.get(uid), ledger_pod(pod, is_silent=False)))

    def drop_pod(self, pod: Pod) -> None:
        if (before := self._pods.get(pod.metadata.uid)) is not None:
            self._forget(before)

    def _forget(self, pod: Pod) -> None:
        uid, name = pod.metadata.uid, (pod.metadata.namespace, pod.metadata.name)
        del self._pods[uid]
        self._uids_on[pod.node].discard(uid)
        if self._uids.get(name) == uid:  # the name may be that of a newer pod
            del self._uids[name]
        self._told.pop(uid, None)
        self._loads.pop(uid, None)
        if (ledger := self._ledgers.get(pod.node)) is not None:
            ledger.drop(uid)

    def _define(self, node: Node) -> None:
        policy = self._policy_of(node)
        if policy is None:
            self._ledgers.pop(node.name, None)
            return
        bounds, ledger = node_bounds(node, policy.spec), self._ledgers.get(node.name)
        if ledger is None:
            ledger = self._ledgers[node.name] = NodeLedger(bounds)
            for uid in self._uids_on.get(node.name, ()):
                ledger.put(ledger_pod(self._pods[uid], is_silent=True))
        elif ledger.bounds != bounds:
            ledger.set_bounds(bounds)

    def _policy_of(self, node: Node) -> Declared[PressurePolicy] | None:
        return self._policies.get(node.pool) or (self._policies.get("*") if node.pool else None)

    # --- Leadership

    def begin_term(self, epoch: int) -> None:
        """This replica leads now, and knows nothing of the permits of earlier leaders."""
        self._epoch = epoch
        self._told.clear()
        for ledger in self._ledgers.values():
            for pod in list(ledger.elastic_pods):
                ledger.put(ledger_pod(self._pods[pod.uid], is_silent=True))

    def end_term(self) -> None:
        self._epoch = None

    # --- Asks

    def ask(self, ask: Ask, now: Instant, uid: str = "") -> AskAnswer | Refusal:
        """A permit, or why nothing was changed. `uid`: of the pod, if the caller's identity names it."""
        if self._epoch is None:
            return NO_LEADER
        found = self._asking(ask, uid)
        if isinstance(found, Refusal):
            return found
        ledger, pod, policy = found
        node = self._pods[pod.uid].node
        units = {name: each.compute_unit for name, each in ledger.bounds.items()}
        known = self._known_units(ask, pod)
        refusal = _outside(ask, pod) or _off_unit(ask, known)
        if refusal is not None:
            return refusal
        proved = self.keys.read(ask.token, pod.uid, node, now) if pod.is_silent and ask.token else None
        granted = ledger.grant(pod, ask.resources, proved.resources if proved is not None else None)
        self._changes += (granted.permitted, granted.lacks) != (pod.permitted, pod.lacks) or pod.is_silent
        self._loads[pod.uid] = ask.load_milli
        self._told[pod.uid] = _Told(units, known)
        permit = Permit(pod.uid, node, granted.permitted, self._epoch, Instant(now + VALID_MS))
        is_leaving = granted.is_migrating and policy.spec.migration != "None"
        return AskAnswer(
            permit=wire_amounts({name: granted.permitted[name] for name in ask.resources}),
            compute_unit=wire_amounts(units),
            permit_token=self.keys.sign(permit),
            migrate={} if is_leaving else None,
        )

    def _asking(self, ask: Ask, uid: str) -> tuple[NodeLedger, ElasticPod, Declared[PressurePolicy]] | Refusal:
        known = self._uids.get((ask.pod.namespace, ask.pod.name))
        pod = self._pods.get(known or "")
        if pod is None or known is None:
            return Refusal(404, f"{ask.pod} is not on a node, or another scheduler placed it")
        if uid and uid != known:
            return Refusal(409, f"{ask.pod} is another pod of the same name by now")
        if pod.metadata.leaving:
            return Refusal(409, f"{ask.pod} is being deleted")
        node = self._nodes.get(pod.node)
        policy = self._policy_of(node) if node is not None else None
        ledger = self._ledgers.get(pod.node)
        if ledger is None or policy is None:
            return Refusal(404, f"no PressurePolicy names the pool of Node/{pod.node}, on which {ask.pod} runs")
        if policy.spec.suspend:
            return Refusal(503, f"PressurePolicy/{policy.name} is suspended: nothing is permitted", RETRY_SECONDS)
        entry = ledger.get(known)
        if not isinstance(entry, ElasticPod):
            return Refusal(404, f"{ask.pod} has no readable annotation with elastic bounds")
        return ledger, entry, policy

    def _known_units(self, ask: Ask, pod: ElasticPod) -> Units:
        """The compute units with which the agent asks: the last ones that the agent was told. An agent that did not
        receive the last answer still has those before, and says so. With the first ask of a term, the agent has those
        of an earlier controller. With its first ask ever, the agent knows none.
        """
        told, stated = self._told.get(pod.uid), ask.compute_unit
        if told is None:
            return stated or {}
        has_earlier = bool(stated) and bool(told.before) and not _agrees(stated, told.last)
        return told.before if has_earlier and _agrees(stated, told.before) else told.last

    # --- Placement of pods

    @property
    def is_leading(self) -> bool:
        return self._epoch is not None

    @property
    def is_idle(self) -> bool:
        """Whether no node has bounds."""
        return not self._ledgers

    def refusals(self, placement: Placement, node_names: Iterable[str]) -> dict[str, Obstacle]:
        """Why the pod may not be placed on nodes, by node; without nodes on which it may."""
        obstacles: dict[str, Obstacle] = {}
        for name in node_names:
            ledger = self._ledgers.get(name)
            if ledger is None:
                continue
            if placement.obstacle is not None:
                obstacles[name] = placement.obstacle
            elif resource := ledger.lacking(placement.requests, is_elastic=placement.is_elastic):
                obstacles[name] = self._lacking.setdefault(resource, TooLittleReservable(resource))
        return obstacles

    def stays_below_watermark(self, placement: Placement, node: str) -> bool:
        """Whether the pod does not put the node under pressure."""
        ledger = self._ledgers.get(node)
        if ledger is None:
            return True
        return ledger.stays_below_watermark(placement.requests, is_elastic=placement.is_elastic)

    def reserve(self, pod: Pod, node: str) -> Obstacle | None:
        """Book the pod on the node before its Binding is sent; or why not. The same pod again is booked once."""
        ledger, uid = self._ledgers.get(node), pod.metadata.uid
        if ledger is None or ledger.get(uid) is not None:
            return None
        if not self.is_leading:
            return LeaderBinds()
        obstacle = self.refusals(Placement.of(pod), (node,)).get(node)
        if obstacle is None:
            ledger.put(ledger_pod(pod, is_silent=False))
        return obstacle

    def end_reservation(self, uid: str, node: str) -> None:
        """The Binding definitely failed."""
        ledger, pod = self._ledgers.get(node), self._pods.get(uid)
        if ledger is not None and (pod is None or pod.node != node):
            ledger.drop(uid)

    # --- What others see

    def ledger(self, node: str) -> NodeLedger | None:
        """The ledger of a node; None if no policy names its pool."""
        return self._ledgers.get(node)

    @property
    def changes(self) -> int:
        """Grants so far that changed a permit or what a pod lacks."""
        return self._changes

    @property
    def ledgers(self) -> Iterator[tuple[str, NodeLedger]]:
        """All ledgers, by the name of the node."""
        return iter(sorted(self._ledgers.items()))

    @property
    def pool_ledgers(self) -> Iterator[tuple[str, NodeLedger]]:
        """All ledgers, each with the pool of its node."""
        return ((self._nodes[name].pool, ledger) for name, ledger in self._ledgers.items())

    def node_of(self, pod: PodName) -> str:
        """The node of a pod that counts; empty if there is no such pod."""
        found = self._pods.get(self._uids.get((pod.namespace, pod.name), ""))
        return found.node if found is not None else ""

    def planning_state(self) -> PressureState | None:
        """All ledgers as a planner reads them; None while this replica does not lead. Ledgers that have not changed are
        the same objects as before. Without the room of migrations, which the planner reserves itself.
        """
        if self._epoch is None:
            return None
        arriving = {_arriving(uid) for uid in self._migrations}
        for name, ledger in self._ledgers.items():
            known = self._planned.get(name)
            if known is None or known[0] is not ledger or known[1] != ledger.changes:
                pods = NodePods(name, ledger.bounds, tuple([each for each in ledger.pods if each.uid not in arriving]))
                self._planned[name] = ledger, ledger.changes, pods
        for name in self._planned.keys() - self._ledgers.keys():
            del self._planned[name]
        return PressureState(
            tuple(self._planned[name][2] for name in sorted(self._planned)), dict(sorted(self._loads.items()))
        )

    def set_migrations(self, migrations: Mapping[str, Destination]) -> None:
        """The migrations that are planned and carried out, by uid: their pods do not grow, and their room at the
        destination is reserved.
        """
        for uid in sorted(self._migrations.keys() | migrations.keys()):
            before, after = self._migrations.get(uid), migrations.get(uid)
            if before is not None and before != after and (there := self._ledgers.get(before.node)) is not None:
                there.drop(_arriving(uid))
            pod = self._pods.get(uid)
            if pod is not None and (source := self._ledgers.get(pod.node)) is not None:
                source.migrate(uid, is_migrating=after is not None)
            if after is not None and (there := self._ledgers.get(after.node)) is not None:
                amounts = after.amounts
                there.put(ElasticPod(_arriving(uid), after.title, amounts, amounts, amounts, amounts))
        self._migrations = dict(migrations)

    def state(self) -> LedgerDump:
        """All ledgers as data."""
        return LedgerDump(self._epoch, tuple(self._state_of(name, ledger) for name, ledger in self.ledgers))

    def _state_of(self, name: str, ledger: NodeLedger) -> NodePressure:
        pods, node = tuple(ledger.pods), self._nodes[name]
        policy = self._policy_of(node)
        agents = {
            each.uid: AgentState(self._loads.get(each.uid, 0), dict(sorted(told.last.items())))
            for each in pods
            if (told := self._told.get(each.uid)) is not None
        }
        bounds = dict(sorted(ledger.bounds.items()))
        policy_name = policy.name if policy is not None else ""
        return NodePressure(name, node.pool, policy_name, bounds, node_figures(ledger), pods, agents)

    def load_milli(self, uid: str) -> int | None:
        """The load that the agent of a pod reported last, in thousandths."""
        return self._loads.get(uid)


def _arriving(uid: str) -> str:
    """Under which the room of a migrating pod is booked at its destination."""
    return f"{uid}/arriving"


def _seen_again(before: LedgerPod | None, after: LedgerPod) -> LedgerPod:
    """A pod as observed now, with what the ledger knows of its permits."""
    if not isinstance(before, ElasticPod) or not isinstance(after, ElasticPod):
        return after
    if before.is_silent:
        return msgspec.structs.replace(after, is_silent=True, is_migrating=before.is_migrating)
    return msgspec.structs.replace(
        after, permitted=before.permitted, lacks=before.lacks, is_migrating=before.is_migrating
    )


def _outside(ask: Ask, pod: ElasticPod) -> Refusal | None:
    for name, asked in sorted(ask.resources.items()):
        wire = next(iter(wire_amounts({name: asked})))
        if name not in pod.has:
            return Refusal(400, f"resources.{wire} is no elastic resource of {ask.pod}")
        least, most = pod.least[name], pod.most[name]
        if not least <= asked <= most:
            return Refusal(400, f"resources.{wire} is {asked}: {ask.pod} declares {least} to {most}")
    return None


def _off_unit(ask: Ask, units: Units) -> Refusal | None:
    for name, asked in sorted(ask.resources.items()):
        unit = units.get(name, 1)
        if unit < 1 or asked % unit:
            wire = next(iter(wire_amounts({name: asked})))
            sentence = f"resources.{wire} is {asked}, which is no multiple of the compute unit {unit}"
            return Refusal(400, sentence, compute_unit=wire_amounts(units))
    return None


def _agrees(stated: Amounts | None, units: Units) -> bool:
    return stated is not None and all(stated.get(name) == unit for name, unit in units.items() if name in stated)
