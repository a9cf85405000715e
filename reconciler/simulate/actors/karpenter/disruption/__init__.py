"""Karpenter's voluntary disruption: drift, emptiness, and consolidation."""
