"""What owners that nobody has read are made up as, and what their pods say then."""

from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.plan.drain.blockers import custom_controller
from reconciler.simulate.bootstrap.nodes import put_observed
from reconciler.simulate.world import World
from tests.unit.plan.drain.stage import World as Fleet


def begun(**app: Any) -> tuple[Any, Any, World]:
    """The pod and its owner as the simulation begins with them."""
    seen: Observed = Fleet({"nodes": {"a": {"pods": ["web 2"]}}, "apps": {"web": app}}).inputs.observed
    world = World(Instant(0))
    put_observed(world, seen)
    return world.get(Ref("Pod", "team", "web-0")), world.get(Ref("ReplicaSet", "team", "web")), world


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ({"owner": "ray.io/v1/RayCluster"}, "false"),
        ({"owner": "ray.io/v1/RayCluster", "safe": "true"}, "true"),
        ({"owner": "apps/v1/ReplicaSet"}, None),
    ],
)
def test_a_pod_of_an_operator_stays_where_it_is_drained_as_it_would_in_earnest(app: Any, said: str | None) -> None:
    pod, owner, world = begun(**app)
    template = owner["spec"]["template"]
    for metadata in (pod["metadata"], template["metadata"]):
        assert (metadata.get("annotations") or {}).get(names.SAFE_TO_EVICT) == said
    (reference,) = pod["metadata"]["ownerReferences"]
    assert (reference["apiVersion"], reference["kind"]) == ("apps/v1", "ReplicaSet")
    (again,) = world.observe().pods
    assert custom_controller(again) is None
