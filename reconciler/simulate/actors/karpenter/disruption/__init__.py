"""Which nodes Karpenter takes away of its own accord: drifted ones, empty ones, and those that others could replace."""
