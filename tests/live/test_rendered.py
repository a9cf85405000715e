"""What our templates yield, and what we refuse of it, a real API server with Karpenter's definitions judges alike."""

import json

import pytest

from reconciler.controller.policies import Checkup, Origins, check
from reconciler.policy.manifests.kubernetes_schema import Structural
from reconciler.sources.input_file import karpenter_schema
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY

POOLS = "/apis/karpenter.sh/v1/nodepools?dryRun=All&fieldValidation=Strict"
RULES = {"RC411", "RC412", "RC413"}


def checkup(*path: str) -> Checkup:
    return check(Origins((REPOSITORY.joinpath(*path),)))


def test_every_node_pool_of_the_example_policies_is_taken(cluster: Lab) -> None:
    found = checkup("policies")
    assert found.notices == (), "without Karpenter's schema this compares nothing"
    taken = 0
    for wish in found.resolved.wishes:
        for manifest in (each for each in wish.manifests if each.kind == "NodePool"):
            assert cluster.admin.request("POST", POOLS, json.loads(manifest.body)).code == 201
            taken += 1
    assert taken == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"expireAfter": "forever"}, "expireAfter"),
        ({"expiresAfter": "720h"}, "expiresAfter"),
        ({"requirements": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}, "restricted"),
        ({"requirements": [{"key": "a", "operator": "In", "values": []}]}, "must have a value"),
        ({"nodeClassRef": {"group": "", "kind": "K", "name": "n"}}, "may not be empty"),
    ],
)
def test_what_our_check_refuses_of_a_node_pool_the_api_server_refuses(
    cluster: Lab, change: dict[str, object], told: str
) -> None:
    wish = checkup("policies").resolved.wish("prod")
    assert wish
    manifest = json.loads(wish.manifests[0].body)
    manifest["spec"]["template"]["spec"] |= change
    schema = karpenter_schema()
    ours = Structural(schema).violations({"spec": manifest["spec"]}) if schema else []
    theirs = cluster.admin.request("POST", POOLS, manifest)
    assert ours
    assert {each.code for each in ours} <= RULES
    assert theirs.code in {400, 422}
    assert told in json.dumps(theirs.body)
