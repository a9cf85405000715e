"""The observed cluster state: Kubernetes objects, with only the fields that reconciler uses."""
