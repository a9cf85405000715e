"""Connects implementations to ports for the commands. The only package that does."""

from reconciler.controller.cluster import ClusterPlace, ClusterView, autoscaler_flags, current_instant, observed_cluster
from reconciler.controller.dry_run import DryRun, NoRepository, Question, checked, dry_run, inputs_of
from reconciler.controller.policies import Checkup, Origins, check, check_bundle, last_changes, read, watch
from reconciler.controller.user_writes import Freezing, approve, freeze
from reconciler.policy.resolve import chosen

__all__ = [
    "Checkup",
    "ClusterPlace",
    "ClusterView",
    "DryRun",
    "Freezing",
    "NoRepository",
    "Origins",
    "Question",
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
