"""Claims are read as they are, and decisions of the webhook depend on the last good policies."""

from typing import Any

import pytest

from reconciler.controller.extender import SchedulerExtender
from reconciler.controller.run import why_silent
from reconciler.controller.webhook import CLAIM_SECONDS, ClaimLookup, SharedPolicies
from reconciler.kube.binding import PodBinder
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.volumes import DeviceClass, DeviceClassSpec
from reconciler.model.desired import Desired
from reconciler.ports import Wished
from reconciler.protocol.admission.decision import Grounds
from reconciler.protocol.desk import Desk
from tests.unit.controller.webhook_server import WebhookServer

DESIRED = Desired("a", "base")
SPEC = {"devices": {"count": 2}}


class Fixed:
    """A Policies."""

    def __init__(self, desired: Desired | None = DESIRED) -> None:
        self.desired = desired

    def wish(self, cluster_uid: str) -> Wished:
        return Wished(self.desired)


class Stopwatch:
    """A monotonic clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lookup(
    server: WebhookServer, observed: Observed | None = None, watch: Stopwatch | None = None, is_read: bool = True
) -> ClaimLookup:
    policies = SharedPolicies(Fixed(), lambda: observed or Observed())
    if is_read:
        policies.wish("uid")
    return ClaimLookup(server, policies, watch or Stopwatch())


def test_a_claim_counts_as_soon_as_it_is_there_and_is_read_once_for_many_pods() -> None:
    server, watch = WebhookServer(), Stopwatch()
    found = lookup(server, watch=watch)
    assert found.grounds("team-a", "train") == Grounds(None, ())
    server.claims["team-a/train"] = {"spec": SPEC}
    assert [found.grounds("team-a", "train") for _ in range(5)] == [Grounds(SPEC, ())] * 5
    assert len(server.reads) == 2
    server.claims["team-a/train"] = {"spec": {"suspend": True}}
    watch.now += CLAIM_SECONDS
    assert found.grounds("team-a", "train") == Grounds({"suspend": True}, ())


@pytest.mark.parametrize(
    "claim", [{}, {"spec": None}, {"spec": []}, [], "x", {"spec": {"devices": None}}, {"spec": {"devices": [1]}}]
)
def test_a_claim_of_any_form_is_read(claim: Any) -> None:
    server = WebhookServer()
    server.claims["team-a/train"] = claim
    assert isinstance(lookup(server).grounds("team-a", "train"), Grounds)


def test_what_is_not_read_yet_is_told() -> None:
    server = WebhookServer()
    assert "policies" in str(lookup(server, is_read=False).grounds("team-a", "train"))
    unread = Observed(unread=(Unread("deviceclasses.resource.k8s.io", "the API server refuses"),))
    assert "deviceclasses" in str(lookup(server, unread).grounds("team-a", "train"))
    server.refused = {"/apis/gpu.scheduling": 403}
    assert "403" in str(lookup(server).grounds("team-a", "train"))
    server.is_away = True
    assert "cannot be reached" in str(lookup(server).grounds("team-a", "train"))
    assert isinstance(lookup(WebhookServer()).grounds("../..", "train"), str)


def test_the_first_device_class_that_maps_gpus_is_told() -> None:
    classes = [("b", "nvidia.com/gpu"), ("a", "nvidia.com/gpu"), ("0", "example.com/gpu"), ("1", "")]
    observed = Observed(
        device_classes=tuple(
            DeviceClass(Metadata(name=name), DeviceClassSpec(extended_resource_name=resource))
            for name, resource in classes
        )
    )
    found = lookup(WebhookServer(), observed).grounds("team-a", "train")
    assert isinstance(found, Grounds)
    assert found.device_class == "a"


@pytest.mark.parametrize("desired", [DESIRED, None])
def test_a_replica_is_ready_to_answer_once_the_policies_were_read_valid_or_not(desired: Desired | None) -> None:
    desk = Desk()
    desk.is_read = True
    extender = SchedulerExtender(desk, PodBinder(WebhookServer()))
    policies = SharedPolicies(Fixed(desired), Observed, lambda found: desk.set_pools(found.pools))
    assert why_silent(policies, extender) == why_silent(policies, None) == "the policies have not been read yet"
    policies.wish("uid")
    assert why_silent(policies, extender) == why_silent(policies, None) == ""


def test_an_extender_that_cannot_answer_yet_is_silent_though_the_policies_were_read() -> None:
    extender = SchedulerExtender(Desk(), PodBinder(WebhookServer()))
    policies = SharedPolicies(Fixed(), Observed)
    policies.wish("uid")
    assert why_silent(policies, extender)
    assert not why_silent(policies, None)


def test_policies_that_are_refused_leave_the_last_good_ones() -> None:
    fixed = Fixed()
    pools: list[object] = []
    policies = SharedPolicies(fixed, Observed, lambda found: pools.append(found.pools))
    policies.wish("uid")
    fixed.desired = None
    policies.wish("uid")
    assert pools == [DESIRED.pools]
    assert policies.last_seen is not None
    assert policies.last_seen.desired is DESIRED
