"""Gauges of claims and lent GPUs, from the report of a plan."""

from reconciler.model.plan.inputs import CycleResult
from reconciler.serve.metrics import Metrics
from tests.unit.plan.gpu.claim_stage import ClaimWorld
from tests.unit.plan.scaling.stage import NOW

CASE = {
    "nodes": {"a": {"board": "8xA600", "unhealthy": [7]}},
    "claims": {"one": 2, "big": 8},
    "pods": {"train": {"at": "a", "has": [0, 1]}, "next": {"claim": "big"}, "last": {"claim": "big"}},
}


def publish(metrics: Metrics, world: ClaimWorld) -> str:
    metrics.publish(CycleResult(NOW, world.inputs, world.planned()))
    return metrics.text().decode()


def test_waiting_pods_count_by_reason_and_gpus_by_pool() -> None:
    text = publish(Metrics(), ClaimWorld(CASE))
    assert 'reconciler_claim_pods_waiting{reason="GpusLacking"} 2.0' in text
    assert 'reconciler_claim_gpus{pool="a100",state="lent"} 2.0' in text
    assert 'reconciler_claim_gpus{pool="a100",state="free"} 5.0' in text


def test_a_reason_without_pods_becomes_zero_and_what_is_unread_keeps_its_values() -> None:
    metrics = Metrics()
    publish(metrics, ClaimWorld(CASE))
    text = publish(metrics, ClaimWorld({**CASE, "unread": ["pods"]}))
    assert 'reconciler_claim_pods_waiting{reason="GpusLacking"} 2.0' in text
    text = publish(metrics, ClaimWorld({**CASE, "pods": {}}))
    assert 'reconciler_claim_pods_waiting{reason="GpusLacking"} 0.0' in text
    assert 'reconciler_claim_gpus{pool="a100",state="free"} 7.0' in text
