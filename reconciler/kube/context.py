"""What people call the cluster: the name of the kubeconfig's context."""

from kubernetes.config import list_kube_config_contexts

IN_POD = "of this pod"


def context_name(context: str | None) -> str:
    """The one that was named, or the current one; in a pod there is none."""
    if context:
        return context
    try:
        _, current = list_kube_config_contexts()  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whether it can be used is told when it is; a name must not stand in the way
        return IN_POD
    return str(current.get("name", IN_POD))
