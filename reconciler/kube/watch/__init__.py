"""Observes the cluster: discovery, lists, watches, and the store of observed objects."""
