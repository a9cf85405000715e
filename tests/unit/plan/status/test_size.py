"""A provisioner is told the size of its pool, why that is so, and what keeps it from its target."""

import msgspec

from reconciler.model.plan.decision import Reason, Ref
from reconciler.model.plan.evaluation import Limit, Marked, ScalingReport, SizeEvaluation, Use
from reconciler.model.plan.plan import Plan
from reconciler.plan.scaling.reasons import PoolUnready, TargetSize
from reconciler.plan.scaling.size import SizeReason
from reconciler.report.conditions import statuses
from tests.unit.plan.status.stage import HERE, LATER, NOW, READY, RESOURCES, after, conditions, inputs, plan, told, wish
from tests.unit.policy.custom_resources.stage import rendered


def sized(*limits: Limit) -> Plan:
    """A plan that has evaluated the provisioner of the text."""
    use = Use(nodes=120, busy_nodes=80, gpus_used=640, gpus_total=960, gpus_per_node=8)
    in_use = SizeReason(percent=80, in_use_tenths=667, full_enough=100)
    why = Reason(TargetSize(Ref("NodeProvisioner", "", "a100"), "a100", 120, 100, in_use), HERE)
    marked = (Marked("n", NOW),)
    evaluated = SizeEvaluation("a100", "a100", use, 100, why, surplus=20, marked=marked, limits=limits)
    return msgspec.structs.replace(plan(), reports=(ScalingReport((evaluated,)),))


def test_a_provisioner_is_told_the_size_of_its_pool_and_why() -> None:
    status = told(statuses(inputs(wish()), sized(), RESOURCES))["NodeProvisioner/a100"]
    assert {
        key: status[key] for key in status if key not in {"bundle", "conditions", "observedGeneration", "problems"}
    } == {
        "currentSize": 120,
        "targetSize": 100,
        "tainted": 1,
        "busy": 80,
        "gpusUsed": 640,
        "gpusTotal": 960,
        "reason": "NodeProvisioner/a100 keeps 100 of 120 nodes of a100: 66.7 % of the GPUs are in use; "
        "for the minimum of 80 %, the pool may have at most 100 nodes.",
    }
    assert conditions(status) == READY | {"ScaleUpLimited": "False", "ScaleDownHeld": "False"}


def test_what_keeps_a_provisioner_from_its_target_is_a_condition() -> None:
    brake = Limit("ScaleDownHeld", Reason(PoolUnready("a100", size=10, unready=5), HERE))
    status = told(statuses(inputs(wish()), sized(brake), RESOURCES))["NodeProvisioner/a100"]
    found = {each["type"]: each for each in status["conditions"]}
    assert found["ScaleDownHeld"]["status"] == "True"
    assert found["ScaleDownHeld"]["reason"] == "PoolUnready"
    assert "5 of 10 nodes of a100 are not ready" in found["ScaleDownHeld"]["message"]


def test_a_size_that_is_told_already_is_not_told_again_and_a_new_one_is() -> None:
    desired = wish()
    first = statuses(inputs(desired), sized(), RESOURCES)
    objects = after(rendered(desired), first)
    assert statuses(inputs(desired, LATER, objects), sized(), RESOURCES) == ()
    (size,) = sized().report(ScalingReport).sizes
    other = msgspec.structs.replace(plan(), reports=(ScalingReport((msgspec.structs.replace(size, target=90),)),))
    (again,) = statuses(inputs(desired, LATER, objects), other, RESOURCES)
    assert again.subject.title == "NodeProvisioner/a100"
