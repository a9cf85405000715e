"""The desk reads all claims again only if the request of a claim changed: statuses change with each pod."""

from collections.abc import Iterable

import msgspec
import pytest

from reconciler.fleet.amounts import GpuRequests, read_gpu_requests
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.protocol.desk import Desk
from reconciler.protocol.node_groups import NodeAnswer
from tests.unit.plan.gpu.claim_stage import ClaimWorld

KEY = ("team", "one")


def test_a_status_of_a_claim_costs_nothing_and_a_request_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    world, desk = ClaimWorld({"nodes": {"a": {"board": "4xA600"}}, "claims": {"one": 2}}), Desk()
    reads: list[GpuRequests] = []

    def counted(claims: Iterable[Unstructured]) -> GpuRequests:
        reads.append(read_gpu_requests(claims))
        return reads[-1]

    monkeypatch.setattr("reconciler.protocol.desk.read_gpu_requests", counted)
    desk.set_pools(world.inputs.desired.pools)
    desk.put_node(world.inputs.observed.nodes[0])
    for policy in world.inputs.observed.policies:
        desk.put_policy(policy)
    assert answer(desk).obstacle is None
    before = len(reads)
    claim = next(each for each in world.inputs.observed.policies if each.kind == "GpuClaim")
    desk.put_policy(msgspec.structs.replace(claim, rest={**claim.rest, "status": {"pods": 1}}))
    assert answer(desk).obstacle is None
    assert len(reads) == before
    desk.put_policy(msgspec.structs.replace(claim, rest={"spec": {"devices": {"count": 5}}}))
    assert answer(desk).obstacle is not None
    assert len(reads) == before + 1


def answer(desk: Desk) -> NodeAnswer:
    return desk.answers(KEY, ["a"])["a"]
