"""deploy/scheduler on the lab: its objects, and the kube-scheduler that its Deployment would start, here as a process.

The process has the shipped configuration, the token of the shipped account, and files with the Secret that the replica
wrote. Only addresses and paths differ: the Service of the extender leads to a port of this machine.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from reconciler.model import names
from reconciler.schema.scheduler import ExtenderFiles
from tests.lab import identities
from tests.lab.api import Api, Manifest
from tests.lab.identities import NAMESPACE
from tests.lab.places import REPOSITORY
from tests.stages.claims import ClaimSite
from tests.stages.controlled import taken_away
from tests.stages.replica import Replica
from tests.stages.webhook import shipped

FOLDER = REPOSITORY / "deploy" / "scheduler"
CONFIGURATION = FOLDER / "configuration.yaml"
_SECRETS = (names.SCHEDULER_CERTIFICATES, names.WEBHOOK_CERTIFICATES)


def objects() -> list[Manifest]:
    """Those of deploy/scheduler itself, as kustomize builds them, and the rights of the webhook, which it needs."""
    files = [
        each for each in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"] if "/" not in each
    ]
    return [*shipped("rbac.yaml"), *(each for file in files for each in shipped(file, FOLDER)), generated()]


def generated() -> Manifest:
    """The ConfigMap with the configuration."""
    (generator,) = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["configMapGenerator"]
    metadata = {"name": generator["name"], "namespace": generator["namespace"]}
    data = {file: (FOLDER / file).read_text() for file in generator["files"]}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def install(admin: Api) -> None:
    for each in objects():
        admin.apply(each)


def remove(admin: Api) -> None:
    taken_away(admin, objects())
    for name in _SECRETS:
        admin.delete("secrets", name, NAMESPACE)
    admin.delete("leases", names.GPU_SCHEDULER, NAMESPACE)


def extender_name() -> str:
    """The name by which the scheduler reaches the extender."""
    (extender,) = yaml.safe_load(CONFIGURATION.read_text())["extenders"]
    return str(urlsplit(extender["urlPrefix"]).hostname)


def mounted(admin: Api, folder: Path) -> ExtenderFiles:
    """The Secret of the scheduler as files, once a replica has written it."""
    secret = admin.wait_for("secrets", names.SCHEDULER_CERTIFICATES, lambda found: found is not None, NAMESPACE)
    folder.mkdir()
    for name, content in secret["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    return ExtenderFiles(*(str(folder / name) for name in ("ca.crt", "tls.crt", "tls.key")))


def configuration(port: int, files: ExtenderFiles) -> dict[str, Any]:
    """As shipped, but for addresses and paths."""
    found: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
    (extender,) = found["extenders"]
    extender["urlPrefix"] = f"https://localhost:{port}"
    tls = {"caFile": files.authority, "certFile": files.certificate, "keyFile": files.key}
    assert extender["tlsConfig"].keys() == tls.keys()
    extender["tlsConfig"] = {**tls, "serverName": extender_name()}
    return found


@contextmanager
def deployed(claims: ClaimSite, folder: Path, *arguments: str) -> Iterator[tuple[Replica, ExtenderFiles]]:
    """A leading replica that makes the certificates, and the scheduler of deploy/scheduler, which is installed."""
    with claims.site.replica(f"--extender=127.0.0.1:{claims.port}", *arguments) as replica:
        replica.wait_until_leading()
        files = mounted(claims.admin, folder)
        claims.until(lambda: replica.get("/readyz")[0] == 200)
        account = identities.second_scheduler(claims.admin)
        claims.lab.add_scheduler(names.GPU_SCHEDULER, configuration(claims.port, files), account)
        try:
            yield replica, files
        finally:
            claims.lab.stop_part(names.GPU_SCHEDULER)
