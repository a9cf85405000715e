"""What every smart pod must say beside what it asks for."""

from typing import Any

POD: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}
CONTAINER: dict[str, Any] = {
    "name": "gpu-trigger",
    "image": "registry.k8s.io/pause:3.9",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
