"""Rules between the objects of one environment. Each rule sees the whole Desired and reports all violations."""

from collections.abc import Callable, Iterable

from reconciler.model.problem import Problem
from reconciler.policy.rules.conflicts import (
    RuleContext,
    capacity_types_in_karpenters_order,
    one_drain_policy_a_pool,
    one_order_for_the_same_pods,
    one_pressure_policy_a_pool,
    one_provisioner_a_pool,
    pools_without_taints_have_no_weight,
    ranks_fit_into_weights,
    references_lead_somewhere,
    room_for_the_largest_size,
    scale_down_delays_are_kept,
    thresholds_below_targets,
)
from reconciler.policy.rules.hardware import (
    drained_pools_have_more_than_one_gpu,
    instance_types_are_spelled_right,
    instance_types_carry_the_gpus,
    instance_types_say_what_they_have,
)

CROSS_RULES: tuple[Callable[[RuleContext], Iterable[Problem]], ...] = (
    references_lead_somewhere,
    one_provisioner_a_pool,
    one_order_for_the_same_pods,
    one_drain_policy_a_pool,
    one_pressure_policy_a_pool,
    thresholds_below_targets,
    room_for_the_largest_size,
    instance_types_carry_the_gpus,
    ranks_fit_into_weights,
    instance_types_are_spelled_right,
    instance_types_say_what_they_have,
    drained_pools_have_more_than_one_gpu,
    capacity_types_in_karpenters_order,
    pools_without_taints_have_no_weight,
    scale_down_delays_are_kept,
)
