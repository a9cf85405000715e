"""Demand of unschedulable pods: which provisioner serves the pods, and with which nodes."""
