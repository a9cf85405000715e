"""The one place where real parts meet ports: what the commands call."""

from reconciler.wiring.cluster import ClusterPlace, Sight, observed_cluster
from reconciler.wiring.dry_run import DryRun, NoRepository, Question, dry_run, inputs_of
from reconciler.wiring.policies import Checkup, Origins, check, check_bundle, read, watch

__all__ = [
    "Checkup",
    "ClusterPlace",
    "DryRun",
    "NoRepository",
    "Origins",
    "Question",
    "Sight",
    "check",
    "check_bundle",
    "dry_run",
    "inputs_of",
    "observed_cluster",
    "read",
    "watch",
]
