"""A declarative GitOps reconciler for GPU clusters on Kubernetes."""

__version__ = "0.1.0"
