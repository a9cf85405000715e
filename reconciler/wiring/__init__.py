"""The one place where real parts meet ports: what the commands call."""

from reconciler.policy.environments import chosen
from reconciler.wiring.autoscaler import autoscaler_flags
from reconciler.wiring.by_hand import Freezing, approve, freeze
from reconciler.wiring.cluster import ClusterPlace, Sight, current_instant, observed_cluster
from reconciler.wiring.dry_run import DryRun, NoRepository, Question, checked, dry_run, inputs_of
from reconciler.wiring.policies import Checkup, Origins, check, check_bundle, last_changes, read, watch

__all__ = [
    "Checkup",
    "ClusterPlace",
    "DryRun",
    "Freezing",
    "NoRepository",
    "Origins",
    "Question",
    "Sight",
    "approve",
    "autoscaler_flags",
    "check",
    "check_bundle",
    "checked",
    "chosen",
    "current_instant",
    "dry_run",
    "freeze",
    "inputs_of",
    "last_changes",
    "observed_cluster",
    "read",
    "watch",
]
