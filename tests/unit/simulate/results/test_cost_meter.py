"""What machines cost over time: by the policies in force, or by the same prices for all that is compared."""

from typing import Any

import msgspec

from reconciler.model.desired import Declared, Desired
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.results.totals import CostMeter
from tests.unit.plan.karpenter.stage import gpu_pool

DEARER = {"types": {"p4d.24xlarge": {"on-demand": "30"}}}
OTHER = {"types": {"p4de.24xlarge": {"on-demand": "27.45"}}}


def policies(words: dict[str, Any]) -> Desired:
    return Desired("r", "prod", pools=(Declared("GpuPool", "p", gpu_pool(words), ()),))


def purse(desired: Desired, *priced_by: Desired) -> CostMeter:
    """Of two nodes on demand."""
    found = CostMeter(desired, (), priced_by)
    labels = {
        "karpenter.sh/nodepool": "p",
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
        "karpenter.sh/capacity-type": "on-demand",
    }
    for name in ("a", "b"):
        metadata = {"name": name, "uid": name, "labels": labels}
        body = {"kind": "Node", "metadata": metadata, "spec": {"providerID": name}, "status": {}}
        found.note(ObjectWrite(("Node", "", name), None, msgspec.json.decode(msgspec.json.encode(body))))
    return found


def test_the_policies_in_force_say_what_is_paid() -> None:
    found = purse(policies({}))
    assert found.total_per_hour == 43_920_000
    found.follow(policies(DEARER))
    assert found.total_per_hour == 60_000_000


def test_what_is_compared_is_paid_by_the_same_prices() -> None:
    head, base = policies(OTHER), policies({})
    before, after = purse(base, head, base), purse(head, head, base)
    assert (before.total_per_hour, after.total_per_hour) == (43_920_000, 43_920_000)
    assert not after.is_unpriced
    dearer = policies(DEARER)
    assert purse(base, dearer, base).total_per_hour == purse(dearer, dearer, base).total_per_hour == 60_000_000


def test_policies_that_come_into_force_later_change_no_price_of_what_is_compared() -> None:
    head, base = policies(DEARER), policies({})
    found = purse(base, head, base)
    found.follow(base)
    assert found.total_per_hour == 60_000_000
