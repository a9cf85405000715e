"""Delays that are shorter than what scaling keeps to."""

from collections.abc import Iterator

from reconciler.model.policy.node_provisioner import LEAST_DELAY_MS
from reconciler.model.problem import Problem
from reconciler.policy.rules.context import RuleContext


def scale_down_delays_are_kept(wish: RuleContext) -> Iterator[Problem]:
    """A node goes no sooner than a minute after it was marked, so that pods on their way to it arrive before."""
    for each in wish.desired.provisioners:
        if each.spec.scale_down_delay.milliseconds < LEAST_DELAY_MS:
            least = f"{LEAST_DELAY_MS // 1_000}s"
            text = f"scaleDownDelay {each.spec.scale_down_delay} is less than {least}, and counts as {least}"
            yield wish.warning(each, "spec.scaleDownDelay", ("RC316", text, f"write {least} or more"))
