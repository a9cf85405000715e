"""A DrainPolicy from the flags of a Cluster Autoscaler."""
