"""The parts of the lab and the command line of each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.lab import capacity
from tests.lab.api import Api
from tests.lab.certificates import Pair
from tests.lab.places import MODULE
from tests.lab.ports import free_ports
from tests.lab.site import Site

Command = list[str | Path]

# Reads stay out of the log (they would be most of it), except those of the identities that tests judge.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/readyz*", "/livez*", "/api*", "/openapi*", "/version"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:gpu-system"], "verbs": ["get", "list", "watch"]},
        {"level": "None", "verbs": ["get", "list", "watch"]},
        # Tokens and secrets never reach a log, not even this one.
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets", "serviceaccounts/token"]}]},
        # The fake kubelet's heartbeats would bury everything else.
        {"level": "None", "users": ["kwok"], "resources": [{"group": "coordination.k8s.io"}]},
        {"level": "Metadata", "users": ["kwok", "system:kube-scheduler"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Request"},
    ],
}


def etcd(site: Site) -> Command:
    pair = site.authority.server("etcd")
    # The peer port serves nobody: a lone member needs one all the same.
    peer = f"https://127.0.0.1:{free_ports(1)[0]}"
    return [
        site.built.binary("kube"),
        "etcd",
        "--name=lab",
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={site.etcd_url}",
        f"--advertise-client-urls={site.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        "--client-cert-auth",
        "--peer-client-cert-auth",
        f"--trusted-ca-file={site.authority.certificate}",
        f"--peer-trusted-ca-file={site.authority.certificate}",
        *_flags("cert-file", "key-file", pair),
        *_flags("peer-cert-file", "peer-key-file", pair),
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(site: Site, signing: Pair) -> Command:
    policy = site.folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(AUDIT_POLICY))
    return [
        site.built.binary("kube"),
        "apiserver",
        f"--etcd-servers={site.etcd_url}",
        f"--etcd-cafile={site.authority.certificate}",
        *_flags("etcd-certfile", "etcd-keyfile", site.authority.client("kube-apiserver")),
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={site.api_port}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--client-ca-file={site.authority.certificate}",
        *_flags("tls-cert-file", "tls-private-key-file", site.authority.server("apiserver")),
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing.certificate}",
        f"--service-account-signing-key-file={signing.key}",
        "--authorization-mode=Node,RBAC",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={site.audit_log}",
        # One file for the life of a lab: its reader need not follow rotation.
        "--audit-log-maxsize=100000",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
    ]


def controllers(site: Site, signing: Pair) -> Command:
    config = site.kubeconfig("controllers", site.api("system:kube-controller-manager"))
    return [
        site.built.binary("kube"),
        "controllers",
        *_kubeconfigs(config),
        *_served(site, "controllers"),
        f"--service-account-private-key-file={signing.key}",
        f"--root-ca-file={site.authority.certificate}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def scheduler(site: Site, name: str, configuration: Mapping[str, Any], account: Api | None = None) -> Command:
    """A scheduler with this configuration; what it needs to reach the API server is filled in."""
    config = site.kubeconfig(name, account or site.api("system:kube-scheduler"))
    whole = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **configuration,
        "clientConnection": {"qps": 1000, "burst": 2000, **configuration.get("clientConnection", {})}
        | {"kubeconfig": str(config)},
    }
    path = site.folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(whole))
    return [
        site.built.binary("kube"),
        "scheduler",
        f"--config={path}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        *_served(site, name),
    ]


def kwok(site: Site) -> Command:
    stages = [*site.built.stock_stages(), *sorted((MODULE / "stages").glob("*.yaml"))]
    path = site.folder / "stages.yaml"
    path.write_text("\n---\n".join(stage.read_text() for stage in stages))
    return [
        site.built.binary("kwok"),
        f"--kubeconfig={site.kubeconfig('kwok', site.api('kwok', 'lab:components'))}",
        f"--config={path}",
        # Karpenter's KWOK provider sets this on its nodes, the lab's fleet on those that shall live.
        f"--manage-nodes-with-annotation-selector={capacity.KWOK_ANNOTATION}=fake",
        "--node-lease-duration-seconds=40",
        "--server-address=",
    ]


def karpenter(site: Site, instance_types: tuple[capacity.InstanceType, ...]) -> Command:
    path = site.folder / "instance-types.json"
    path.write_text(json.dumps([each.as_kwok() for each in instance_types]))
    metrics, health = free_ports(2)
    return [
        site.built.binary("karpenter"),
        "-disable-leader-election",
        # It leaves a node alone for twice that, as pods may still come that it was bought for.
        "-batch-max-duration=5s",
        f"-metrics-port={metrics}",
        f"-health-probe-port={health}",
        f"-instance-types-file-path={path}",
    ]


def karpenter_environment(site: Site) -> dict[str, str]:
    config = site.kubeconfig("karpenter", site.api("karpenter", "lab:components"))
    return {"SYSTEM_NAMESPACE": "kube-system", "KUBECONFIG": str(config)}


def _flags(certificate: str, key: str, pair: Pair) -> Command:
    return [f"--{certificate}={pair.certificate}", f"--{key}={pair.key}"]


def _kubeconfigs(config: Path) -> Command:
    return [f"--{name}={config}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")]


def _served(site: Site, name: str) -> Command:
    pair = site.authority.server(name)
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={free_ports(1)[0]}",
        *_flags("tls-cert-file", "tls-private-key-file", pair),
    ]
