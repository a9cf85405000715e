"""Karpenter's provisioning: which nodes to launch for unschedulable pods."""
