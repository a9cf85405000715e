"""The admission webhook on the lab: deploy/webhook, of which the Service leads to a port of this machine."""

import socket
import threading
import time
from pathlib import Path
from typing import Any, Self

import yaml

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Api, Manifest
from tests.lab.identities import NAMESPACE
from tests.lab.places import REPOSITORY

WEBHOOK = REPOSITORY / "deploy" / "webhook"
CONFIGURATIONS = "mutatingwebhookconfigurations"


def shipped(file: str, folder: Path = WEBHOOK) -> list[Manifest]:
    """Objects of a file of deploy/webhook, or of another folder."""
    return [each for each in yaml.safe_load_all((folder / file).read_text()) if each]


def install(admin: Api, port: int) -> None:
    """As shipped, but for the address: the lab has no network for pods. The certificate has the name of the Service."""
    for manifest in [*shipped("rbac.yaml"), *shipped("webhook.yaml")]:
        if manifest["kind"] == "Service":
            manifest["spec"] = {"type": "ExternalName", "externalName": "localhost"}
        for webhook in manifest.get("webhooks", ()):
            webhook["clientConfig"]["service"]["port"] = port
        admin.apply(manifest)


def remove(admin: Api) -> None:
    admin.delete(CONFIGURATIONS, names.WEBHOOK_CONFIGURATION)
    admin.delete("services", names.WEBHOOK_SERVICE, NAMESPACE)
    admin.delete("secrets", names.WEBHOOK_CERTIFICATES, NAMESPACE)
    for kind in ("clusterrolebindings", "clusterroles"):
        admin.delete(kind, "reconciler-webhook")
    for kind in ("rolebindings", "roles"):
        admin.delete(kind, "reconciler-webhook", NAMESPACE)


def wait_until_in_force(admin: Api, namespace: str) -> None:
    """The API server takes note of the new configuration a moment after it is published, and the replica of its
    policies: from then on, a pod whose claim does not exist is refused."""
    admin.wait_for(CONFIGURATIONS, names.WEBHOOK_CONFIGURATION, is_published)
    probe = fleet.Pod("probe", namespace, annotations={names.CLAIM: "absent"}).manifest()
    deadline = time.monotonic() + 60
    while (answer := admin.request("POST", admin.path("pods", namespace=namespace), probe)).code != 403:
        assert time.monotonic() < deadline, answer
        time.sleep(0.1)


def is_published(configuration: Manifest | None) -> bool:
    """Whether the controller has written the caBundle."""
    return any(each["clientConfig"].get("caBundle") for each in (configuration or {}).get("webhooks", ()))


class Silent:
    """A server that accepts connections, never answers, and counts; while in a `with` block."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self._held: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def accepted(self) -> int:
        return len(self._held)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._socket, *self._held):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                self._held.append(self._socket.accept()[0])
            except OSError:
                return
