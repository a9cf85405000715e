"""Who may touch a node, and whom a pod's eviction waits for: shared by all planners."""
