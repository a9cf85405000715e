"""Agents: processes that run beside workloads, and not in the controller."""
