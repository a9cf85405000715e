"""Why a pod may not be placed on a node whose pool has a PressurePolicy."""

from reconciler.fleet.obstacles import FleetObstacle


class TooLittleReservable(FleetObstacle, frozen=True):
    template = "{resource}: what pods and the system have reserved leaves too little"

    resource: str


class RequestAbsent(FleetObstacle, frozen=True):
    template = "the container {container} has no request and no limit of {resource}, which a PressurePolicy needs"

    container: str
    resource: str


class ElasticBoundsUnreadable(FleetObstacle, frozen=True):
    template = "the annotation gpu.scheduling/elastic can't be read: write it like cpu=1..4,memory=1Gi..8Gi"


class LeaderBinds(FleetObstacle, frozen=True):
    template = "only the leader binds pods to nodes with a PressurePolicy, and this replica does not lead"
