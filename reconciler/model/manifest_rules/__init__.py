"""Allowed content of manifests. Checked for rendered manifests, for plans, and before each write."""
