"""What deploy/core, deploy/webhook and deploy/scheduler say is understood by a real API server, each field of it."""

import json
from urllib.parse import urlencode

from tests.lab.lab import Lab
from tests.stages.second_scheduler import FOLDER, generated
from tests.unit.deploy.test_deploy import objects

STRICT = urlencode({"fieldManager": "deployer", "dryRun": "All", "fieldValidation": "Strict", "force": "true"})


def test_every_object_is_taken_as_it_is(cluster: Lab) -> None:
    found = [*objects(FOLDER), generated()]
    assert {each["kind"] for each in found} >= {"Namespace", "ServiceAccount", "ClusterRole", "StatefulSet", "Service"}
    for each in found:
        metadata = each["metadata"]
        plural = f"{each['kind']}@{each['apiVersion']}"
        path = cluster.admin.path(plural, metadata["name"], metadata.get("namespace", ""))
        answer = cluster.admin.request("PATCH", f"{path}?{STRICT}", each, "application/apply-patch+yaml")
        assert answer.code in {200, 201}, json.dumps(answer.body)
