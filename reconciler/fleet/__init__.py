"""The what-if cluster, pure."""
