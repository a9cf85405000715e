"""A simulated Karpenter: launches nodes for unschedulable pods, and disrupts unneeded nodes."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from reconciler.model import names
from reconciler.model.plan.decision import Ref
from reconciler.plan.karpenter.drift import meets
from reconciler.plan.karpenter.template_hash import HASH_VERSION
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.batch_window import Fixed, Purchasing
from reconciler.simulate.actors.karpenter.cloud import Cloud, MarketOffering, instance_types
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, NodePool
from reconciler.simulate.actors.karpenter.disruption import DisruptionController
from reconciler.simulate.actors.karpenter.lifecycle import BY, Living
from reconciler.simulate.actors.karpenter.machines import DRIFTED, LAUNCHED, Timing, new_condition, pool_of
from reconciler.simulate.actors.karpenter.termination import TerminationController
from reconciler.simulate.objects import (
    Key,
    annotations_of,
    condition_of,
    is_leaving,
    labels_of,
    ref_of,
    says,
    without_condition,
)
from reconciler.simulate.stage import Stage

_NOTHING: Mapping[str, str] = {}


class Karpenter:
    """Launches machines of `market`; `reserved` is subtracted from each machine's capacity."""

    def __init__(
        self, market: Sequence[MarketOffering], timing: Timing | None = None, reserved: Mapping[str, str] = _NOTHING
    ) -> None:
        self.cloud = Cloud(instance_types(market, reserved))
        self._timing = timing or Timing()

    def start(self, stage: Stage) -> None:
        known = Knowledge(stage, self.cloud, self._timing)
        living, leaving, marking = Living(known), TerminationController(known), Marking(known)
        purchasing = Purchasing(known)
        disruption = DisruptionController(known, purchasing)
        fixed = Fixed(known, purchasing)

        def machines_changed(keys: Sequence[Key]) -> None:
            leaving.changed(keys)
            living.changed(keys)
            disruption.commands.changed([name for kind, _, name in keys if kind == "NodeClaim"])

        def then_resized(mark: Callable[[Sequence[Key]], None]) -> Callable[[Sequence[Key]], None]:
            def changed(keys: Sequence[Key]) -> None:
                mark(keys)
                fixed.changed()
                disruption.changed()

            return changed

        notice = self._timing.notice_ms
        stage.on_change("NodePools are seen", ("NodePool",), then_resized(marking.pools_changed), notice)
        stage.on_change("claims are judged", ("NodeClaim",), then_resized(marking.claims_changed), notice)
        stage.on_change("claims and nodes are seen", ("NodeClaim", "Node"), machines_changed)
        stage.on_change("pods are seen", ("Pod", "Node"), purchasing.changed)


# --- Owner of Karpenter's annotations on NodePools and the drift condition of NodeClaims, with notification delay.
#
# A deleted NodePool's NodeClaims are deleted.


class Marking:
    """Updated with changed NodePools and NodeClaims."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._world = known.world
        self._judged: dict[str, tuple[str, str]] = {}  # claim -> uid, and hash of the NodePool

    def pools_changed(self, keys: Sequence[Key]) -> None:
        """Writes their hashes and evaluates all of their claims."""
        for _, _, name in keys:
            body = self._world.get(Ref("NodePool", "", name))
            claims = list(self._known.machines.of_pool(name))
            if body is None:
                for each in claims:
                    self._world.delete(ref_of(each), BY)
                continue
            self._write_hash(name, body)
            self._judge(claims)

    def claims_changed(self, keys: Sequence[Key]) -> None:
        """Evaluates newly launched claims."""
        claims = self._known.machines.claims
        fresh = [claims[name] for _, _, name in keys if name in claims]
        for name in [name for _, _, name in keys if name not in claims]:
            self._judged.pop(name, None)
        self._judge(each for each in fresh if each["metadata"]["name"] not in self._judged)

    def _write_hash(self, name: str, body: Object) -> None:
        pool = self._known.pools.get(name)
        if pool is None:
            return
        written = {names.POOL_HASH: pool.hash, names.POOL_HASH_VERSION: HASH_VERSION}
        if any(annotations_of(body).get(key) != value for key, value in written.items()):
            self._world.edit(ref_of(body), {"metadata": {"annotations": written}}, BY)
            if not says(body, "Ready"):
                self._world.set_condition(body, new_condition("Ready", self._known.now))

    def _judge(self, claims: Iterable[Object]) -> None:
        for claim in claims:
            pool = self._known.pools.get(pool_of(claim))
            if pool is None or not says(claim, LAUNCHED) or is_leaving(claim):
                continue
            metadata = claim["metadata"]
            self._judged[metadata["name"]] = metadata["uid"], pool.hash
            self._mark(claim, _why_drifted(claim, pool))

    def _mark(self, claim: Object, reason: str) -> None:
        if (condition_of(claim, DRIFTED) or {"reason": ""})["reason"] == reason:
            return
        conditions = without_condition(claim, DRIFTED)
        if reason:
            conditions.append(new_condition(DRIFTED, self._known.now, reason=reason))
        self._world.edit(ref_of(claim), {"status": {"conditions": conditions}}, BY)


def _why_drifted(claim: Object, pool: NodePool) -> str:
    """Empty if the claim is not drifted."""
    borne = annotations_of(claim)
    if borne.get(names.POOL_HASH_VERSION) == HASH_VERSION and borne.get(names.POOL_HASH, pool.hash) != pool.hash:
        return "NodePoolDrifted"
    return "" if meets(labels_of(claim), pool.required) else "RequirementsDrifted"
