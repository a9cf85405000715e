"""An imagined Karpenter: it buys nodes for pods that no node takes, and takes away nodes that it no longer wants."""

from collections.abc import Mapping, Sequence

from reconciler.simulate.actors.karpenter.cloud import Cloud, Stockout
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.disruption.disruption import DisruptionController
from reconciler.simulate.actors.karpenter.instance_types import instance_types
from reconciler.simulate.actors.karpenter.lifecycle import Living
from reconciler.simulate.actors.karpenter.node_pool_status import Marking
from reconciler.simulate.actors.karpenter.provisioning.batch_window import Purchasing
from reconciler.simulate.actors.karpenter.provisioning.fixed import Fixed
from reconciler.simulate.actors.karpenter.termination import TerminationController
from reconciler.simulate.actors.karpenter.timing import Timing
from reconciler.simulate.market import MarketOffering
from reconciler.simulate.objects import Key
from reconciler.simulate.stage import Stage

_NOTHING: Mapping[str, str] = {}


class Karpenter:
    """Buys of `market`; `reserved` of each machine is kept for the machine itself."""

    def __init__(
        self, market: Sequence[MarketOffering], timing: Timing | None = None, reserved: Mapping[str, str] = _NOTHING
    ) -> None:
        self._cloud = Cloud(instance_types(market, reserved))
        self._timing = timing or Timing()

    def start(self, stage: Stage) -> None:
        """It finds what is there, and goes on from that."""
        known = Knowledge(stage, self._cloud, self._timing)
        living, leaving, marking = Living(known), TerminationController(known), Marking(known)
        purchasing = Purchasing(known)
        disruption = DisruptionController(known, purchasing)
        fixed = Fixed(known, purchasing)

        def machines_changed(keys: Sequence[Key]) -> None:
            leaving.changed(keys)
            living.changed(keys)
            disruption.commands.changed([name for kind, _, name in keys if kind == "NodeClaim"])

        def claims_changed(keys: Sequence[Key]) -> None:
            marking.claims_changed(keys)
            fixed.changed()
            disruption.changed()

        def pools_changed(keys: Sequence[Key]) -> None:
            marking.pools_changed(keys)
            fixed.changed()
            disruption.changed()

        notice = self._timing.notice_ms
        stage.on_change("NodePools are seen", ("NodePool",), pools_changed, notice)
        stage.on_change("claims are judged", ("NodeClaim",), claims_changed, notice)
        stage.on_change("claims and nodes are seen", ("NodeClaim", "Node"), machines_changed)
        stage.on_change("pods are seen", ("Pod", "Node"), purchasing.changed)

    def hold_back(self, out: Stockout) -> None:
        """It can't be had from now on."""
        self._cloud.hold_back(out)

    def restock(self, out: Stockout) -> None:
        """What was held back in these words can be had again."""
        self._cloud.restock(out)

    def withhold(self, out: Stockout) -> None:
        """It is not offered from now on: nothing is asked for that would need it."""
        self._cloud.withhold(out)

    def offer(self, out: Stockout) -> None:
        """What was withheld in these words is offered again."""
        self._cloud.offer(out)

    def lacks(self, out: Stockout) -> bool:
        """Whether it can't be had for another reason, or once more for the same."""
        return self._cloud.holds_back(out)

    def withholds(self, out: Stockout) -> bool:
        """Whether it is not offered for another reason, or once more for the same."""
        return self._cloud.withholds(out)
