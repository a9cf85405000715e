"""Elastic pods on the real control plane."""
