"""From the NodePools that a cluster has to policies and templates that say the same."""
