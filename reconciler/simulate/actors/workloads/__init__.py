"""The controllers that make pods: of ReplicaSets, StatefulSets, Jobs and DaemonSets."""

from reconciler.simulate.actors.workloads.workloads import Workloads

__all__ = ["Workloads"]
