"""Owner of a simulation's checkers and their violations: the invariant, and the event that violated it."""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.model.desired import Desired
from reconciler.model.plan.memory import Memory
from reconciler.report.simulation.simulated import Broken
from reconciler.simulate.invariants import ceilings, evictions, gpu_claims, ownership, places, scale_down, smart_pods
from reconciler.simulate.invariants.invariant import Checker, InvariantContext, checks
from reconciler.simulate.objects import ObjectWrite, node_of
from reconciler.simulate.results.totals import PoolTotalsTracker
from reconciler.simulate.stage import Stage

# --- Sanity of the simulated cluster: no GPU is allocated twice.


@checks("no node has pods for more GPUs than it has", "Pod")
def overbooked(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """The GPUs of a node are allocated once, whichever component binds pods."""
    node = node_of(written.after)
    if not node or node_of(written.before) == node:
        return
    observed = context.where.nodes.get(node)
    if observed is None:
        yield f"Pod {written.key[2]} is bound to Node/{node}, which does not exist"
    elif (requested := context.where.gpus_on(node)) > observed.gpus:
        yield f"the pods of Node/{node} request {requested} GPUs, and it has {observed.gpus}"


MOST_LISTED = 50

CHECKERS: tuple[Callable[[], Checker], ...] = (
    evictions.busy_nodes,
    evictions.node_claim_ownership,
    evictions.protected_pods,
    ownership.others_nodes,
    ownership.opted_out_nodes,
    ownership.one_owner,
    ownership.FreezeInvariant,
    ownership.Observing,
    ceilings.Ceilings,
    scale_down.Announced,
    scale_down.LeastSize,
    scale_down.idle_marks,
    overbooked,
    smart_pods.OnePerNeed,
    smart_pods.GoneInTime,
    smart_pods.others_gates,
    smart_pods.RoomFirst,
    evictions.OffDrained,
    evictions.made_anew,
    evictions.BudgetsKept,
    places.PlaceFirst,
    evictions.WholeGangs,
    scale_down.WholeBatches,
    scale_down.empty_first,
    scale_down.in_windows,
    scale_down.SlotsKept,
    ceilings.LeastKept,
    evictions.saved_first,
    gpu_claims.lent_once,
    gpu_claims.lent_by_leases,
    gpu_claims.LeasesReleased,
    gpu_claims.NoIdleGpus,
)


class Watching:
    """An Actor, created after the totals, which must be updated before the check."""

    def __init__(
        self,
        where: PoolTotalsTracker,
        desired: Callable[[], Desired],
        presence_ms: Callable[[], int] | None = None,
        memory: Callable[[], Memory] = Memory,
    ) -> None:
        """Without `presence_ms`, a controller always runs; `memory`: the stored memory."""
        self.broken: list[Broken] = []
        self._where = where
        self._desired = desired
        self._presence_ms = presence_ms
        self._memory = memory
        self._of_kind: dict[str, list[Checker]] = {}
        for each in [make() for make in CHECKERS]:
            for kind in each.kinds:
                self._of_kind.setdefault(kind, []).append(each)

    def start(self, stage: Stage) -> None:
        now, presence_ms = lambda: stage.now, self._presence_ms
        self._context = InvariantContext(
            stage.world, self._where, now, self._desired, stage.snapshot, presence_ms or now, self._memory
        )
        stage.world.subscribe(self._judge, *self._of_kind)
        stage.engine.listeners.append(self._name)

    def _judge(self, written: ObjectWrite) -> None:
        """The event is identified after it ends."""
        for each in self._of_kind[written.key[0]]:
            for sentence in each.wrote(written, self._context):
                if len(self.broken) < MOST_LISTED:
                    self.broken.append(Broken(self._context.now(), "", each.rule, sentence))

    def _name(self, event: str) -> None:
        at = len(self.broken) - 1
        while at >= 0 and not self.broken[at].event:
            self.broken[at] = msgspec.structs.replace(self.broken[at], event=event)
            at -= 1
