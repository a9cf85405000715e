"""Owner of the lives of NodeClaims until their deletion: bought, joined, ready, and at last expired."""

from collections.abc import Sequence

from reconciler.model import names
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.action import Ref
from reconciler.plan.karpenter.durations import nanoseconds_unless_never
from reconciler.plan.karpenter.requirements import demands
from reconciler.plan.karpenter.template import EXPIRES_AFTER, NodePoolRequirement
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.conditions import INITIALIZED, REGISTERED, new_condition, says, with_condition
from reconciler.simulate.actors.karpenter.registration import INITIALIZED_LABEL, launched, node_of
from reconciler.simulate.actors.karpenter.timing import LAUNCH_LIMIT_MS, REGISTRATION_LIMIT_MS
from reconciler.simulate.objects import Key

BY = "karpenter"


class Living:
    """Told of claims and nodes that changed; each step comes after its time."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._world = known.world
        self._engine = known.stage.engine
        self._requested: dict[str, tuple[str, set[str]]] = {}  # claim -> its uid, and steps that are on their way

    def changed(self, keys: Sequence[Key]) -> None:
        """Claims, or nodes."""
        for kind, _, name in keys:
            claim = self._known.machines.claims.get(name) if kind == "NodeClaim" else None
            if kind == "NodeClaim" and claim is None:
                self._requested.pop(name, None)
            claim = self._known.machines.claim_of(name) if kind == "Node" else claim
            if claim is not None and not claim["metadata"].get("deletionTimestamp"):
                self._go_on(claim)

    def _go_on(self, claim: Object) -> None:
        timing = self._known.timing
        self._expire_in_time(claim)
        if not (claim.get("status") or {}).get("providerID"):
            self._after(claim, "launch", timing.launch_ms)
            self._after(claim, "give up launching", LAUNCH_LIMIT_MS)
            self._after(claim, "give up waiting for", REGISTRATION_LIMIT_MS)
        elif not says(claim, REGISTERED):
            is_there = self._known.machines.node_of(claim) is not None
            self._after(claim, "join", 0 if is_there else timing.registration_ms)
        elif not says(claim, INITIALIZED):
            self._after(claim, "clean", timing.startup_taints_ms)
            self._after(claim, "ready", timing.initialization_ms)
            self._initialize(claim)

    def _after(self, claim: Object, step: str, delay_ms: int) -> None:
        self._at(claim, step, Instant(self._engine.now + delay_ms))

    def _at(self, claim: Object, step: str, when: Instant) -> None:
        """Each step once in the life of a claim."""
        metadata = claim["metadata"]
        uid, requested = self._requested.get(metadata["name"], ("", set[str]()))
        if uid != metadata["uid"]:
            requested = set()
            self._requested[metadata["name"]] = metadata["uid"], requested
        if step not in requested:
            requested.add(step)
            self._engine.at(when, f"{step} {metadata['name']}", lambda: self._step(metadata, step))

    def _step(self, metadata: Object, step: str) -> None:
        claim = self._known.machines.claims.get(metadata["name"])
        if claim is None or claim["metadata"]["uid"] != metadata["uid"] or claim["metadata"].get("deletionTimestamp"):
            return
        match step:
            case "launch":
                self._launch(claim)
            case "join":
                self._join(claim)
            case "clean":
                self._clean(claim)
            case "ready":
                self._mark_ready(claim)
            case "expire":
                self._world.delete(_ref(claim), BY)
            case "give up launching" if not (claim.get("status") or {}).get("providerID"):
                self._world.delete(_ref(claim), BY)
            case "give up waiting for" if not says(claim, REGISTERED):
                self._world.delete(_ref(claim), BY)

    def _launch(self, claim: Object) -> None:
        written = (claim.get("spec") or {}).get("requirements") or ()
        lines = [
            NodePoolRequirement(each["key"], each["operator"], tuple(each.get("values") or ())) for each in written
        ]
        cloud, chance = self._known.cloud, self._engine.stream("what is bought")
        alloweds = demands(lines)
        offering = cloud.buy(alloweds, self._engine.now, chance) if names.INSTANCE_TYPE in alloweds else None
        if offering is None:
            self._world.remove(_ref(claim), BY)
            return
        machine = cloud.types[offering.instance_type]
        self._world.edit(_ref(claim), launched(claim, machine, offering, self._engine.now), BY)

    def _join(self, claim: Object) -> None:
        now = self._engine.now
        node = self._known.machines.node_of(claim)
        if node is None:
            node = node_of(claim, now)
            self._world.put(node)
        conditions = with_condition(claim, new_condition(REGISTERED, now))
        status = {"nodeName": node["metadata"]["name"], "conditions": conditions}
        self._world.edit(_ref(claim), {"status": status}, BY)

    def _clean(self, claim: Object) -> None:
        """Others take their startup taints off; what is ours we take off ourselves."""
        node = self._known.machines.node_of(claim)
        startup = {each["key"] for each in (claim.get("spec") or {}).get("startupTaints") or ()}
        passing = {key for key in startup if not key.startswith(names.OURS)}
        if node is not None and passing:
            left = [each for each in node["spec"].get("taints") or () if each["key"] not in passing]
            self._world.edit(_node_ref(node), {"spec": {"taints": left}}, "startup")

    def _mark_ready(self, claim: Object) -> None:
        node, now = self._known.machines.node_of(claim), self._engine.now
        if node is None or node["metadata"]["name"] in self._known.stage.silent_nodes:
            return
        taints = [each for each in node["spec"].get("taints") or () if each["key"] != "node.kubernetes.io/not-ready"]
        amounts = {key: claim["status"][key] for key in ("capacity", "allocatable")}
        conditions = with_condition(node, new_condition("Ready", now, reason="KubeletReady"))
        self._world.edit(_node_ref(node), {"spec": {"taints": taints}, "status": amounts | {"conditions": conditions}})

    def _initialize(self, claim: Object) -> None:
        """As soon as it is ready, its startup taints are off, and what was asked for is there."""
        node = self._known.machines.node_of(claim)
        if node is None or not says(node, "Ready"):
            return
        spec = claim.get("spec") or {}
        startup = {each["key"] for each in spec.get("startupTaints") or ()}
        asked = (spec.get("resources") or {}).get("requests") or {}
        there = node["status"].get("allocatable") or {}
        if any(each["key"] in startup for each in node["spec"].get("taints") or ()):
            return
        if any(there.get(name, "0") == "0" for name in asked):
            return
        self._world.edit(_node_ref(node), {"metadata": {"labels": {INITIALIZED_LABEL: "true"}}}, BY)
        conditions = with_condition(claim, new_condition(INITIALIZED, self._engine.now))
        self._world.edit(_ref(claim), {"status": {"conditions": conditions}}, BY)

    def _expire_in_time(self, claim: Object) -> None:
        written = (claim.get("spec") or {}).get("expireAfter") or EXPIRES_AFTER
        length = nanoseconds_unless_never(written)
        if length is not None:
            created = instant(claim["metadata"]["creationTimestamp"])
            self._at(claim, "expire", Instant(created + length // 1_000_000))


def _ref(claim: Object) -> Ref:
    return Ref("NodeClaim", "", claim["metadata"]["name"])


def _node_ref(node: Object) -> Ref:
    return Ref("Node", "", node["metadata"]["name"])
