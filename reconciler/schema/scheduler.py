"""Configuration of the second scheduler: a stock kube-scheduler that asks the extender about pods with a GpuClaim."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.protocol.certificates import service_names

# The extender answers within milliseconds; a Binding writes a Lease for each GPU.
_TIMEOUT = "20s"


class ExtenderFiles(msgspec.Struct, frozen=True):
    """Files in the scheduler's container: the authority of the extender, and the scheduler's own certificate."""

    authority: str = "/etc/gpu-scheduler/tls/ca.crt"
    certificate: str = "/etc/gpu-scheduler/tls/tls.crt"
    key: str = "/etc/gpu-scheduler/tls/tls.key"


def deployed_configuration(namespace: str = names.OWN_NAMESPACE) -> dict[str, Any]:
    """The configuration of deploy/scheduler: it reaches the extender by its Service, and several replicas elect a
    leader."""
    host = min(service_names(names.EXTENDER_SERVICE, namespace), key=len)
    election = {"leaderElect": True, "resourceName": names.GPU_SCHEDULER, "resourceNamespace": namespace}
    return scheduler_configuration(f"https://{host}") | {"leaderElection": election}


def scheduler_configuration(url: str, files: ExtenderFiles | None = None) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with one extender at `url`.

    The extender binds, so it must not be ignorable: a Binding without a reservation would lend a GPU twice. From 100
    nodes on, kube-scheduler would sample nodes before the extender is asked, and miss the only node with free GPUs.
    """
    files = files or ExtenderFiles()
    extender = {
        "urlPrefix": url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "weight": 10,
        "enableHTTPS": True,
        "tlsConfig": {"caFile": files.authority, "certFile": files.certificate, "keyFile": files.key},
        "httpTimeout": _TIMEOUT,
        "nodeCacheCapable": True,
        "ignorable": False,
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": 1000, "burst": 2000},
        "profiles": [{"schedulerName": names.GPU_SCHEDULER, "percentageOfNodesToScore": 100}],
        "extenders": [extender],
    }
