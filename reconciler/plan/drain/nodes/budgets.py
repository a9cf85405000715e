"""Owner of the PodDisruptionBudgets as they were seen last, and of what was looked up of them until one changes."""

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.plan.nodes.eviction import PodBudgets


class BudgetsSeen:
    """`what_if.part(BudgetsSeen)` is the one of a what-if, of whose pods they are asked."""

    def __init__(self, _: Snapshot) -> None:
        self._pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
        self._budgets = PodBudgets()

    def of(self, pod_disruption_budgets: tuple[PodDisruptionBudget, ...]) -> PodBudgets:
        """Read anew when one of them is another object."""
        if pod_disruption_budgets is not self._pod_disruption_budgets:
            self._pod_disruption_budgets, self._budgets = pod_disruption_budgets, PodBudgets(pod_disruption_budgets)
        return self._budgets
