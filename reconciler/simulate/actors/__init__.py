"""Actors of a simulated cluster, each with realistic delays and failures.

Not simulated: Deployments and other creators of ReplicaSets, backoffLimit of Jobs, pods that fail by themselves, and
kubelet evictions.
"""
