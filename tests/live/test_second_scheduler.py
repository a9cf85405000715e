"""A second scheduler runs beside the first with its own configuration."""

from tests.lab import fleet
from tests.lab.lab import Lab

FULLEST_FIRST = {
    "profiles": [
        {
            "schedulerName": "fullest-first",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "nvidia.com/gpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        }
    ]
}


def test_each_scheduler_binds_the_pods_that_name_it(cluster: Lab) -> None:
    cluster.start("scheduler", "kwok")
    cluster.add_scheduler("fullest-first", FULLEST_FIRST)
    cluster.load(fleet.nodes(3))
    for number in range(3):
        cluster.admin.wait_for("nodes", f"gpu-{number}", fleet.is_ready)
    cluster.admin.create(fleet.Pod("first", gpus=2).on("gpu-1").manifest())
    cluster.admin.wait_for("pods", "first", fleet.is_running, "default")
    audit = cluster.audit()
    cluster.admin.create(fleet.Pod("packed", gpus=2).with_spec(schedulerName="fullest-first").manifest())
    cluster.admin.create(fleet.Pod("ordinary", gpus=1).manifest())
    packed = cluster.admin.wait_for("pods", "packed", fleet.is_running, "default")
    cluster.admin.wait_for("pods", "ordinary", fleet.is_running, "default")
    assert packed["spec"]["nodeName"] == "gpu-1"
    bindings = [each.object for each in audit.writes("system:kube-scheduler") if each.object.endswith("/binding")]
    assert sorted(bindings) == ["pods/default/ordinary/binding", "pods/default/packed/binding"]
    cluster.stop_part("fullest-first")
