"""Tests on the lab of what acts on a cluster, and of what comes off it again."""
