"""Rules between the objects of one environment. Each rule sees the whole Desired and reports all violations."""

from collections.abc import Callable, Iterable

from reconciler.model.problem import Problem
from reconciler.policy.rules import conflicts, hardware

Rule = Callable[[conflicts.RuleContext], Iterable[Problem]]

REFERENCE_RULES: tuple[Rule, ...] = (conflicts.references_lead_somewhere, conflicts.other_references_lead_somewhere)
CROSS_RULES: tuple[Rule, ...] = (
    *REFERENCE_RULES,
    conflicts.one_provisioner_a_pool,
    conflicts.one_order_for_the_same_pods,
    conflicts.one_drain_policy_a_pool,
    conflicts.one_pressure_policy_a_pool,
    conflicts.thresholds_below_targets,
    conflicts.room_for_the_largest_size,
    hardware.instance_types_carry_the_gpus,
    conflicts.ranks_fit_into_weights,
    hardware.instance_types_are_spelled_right,
    hardware.instance_types_say_what_they_have,
    hardware.drained_pools_have_more_than_one_gpu,
    conflicts.capacity_types_in_karpenters_order,
    conflicts.pools_without_taints_have_no_weight,
    conflicts.scale_down_delays_are_kept,
)
