"""Resizes the agent's own pod through the API server, with the rights of the pod's ServiceAccount."""

import http.client
import json
import os
import ssl
from pathlib import Path
from typing import Any

from reconciler.fleet.amounts import CPU
from reconciler.model.plan.pressure import Amounts
from reconciler.protocol.asks import PodName

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TIMEOUT_SECONDS = 10.0
_LARGEST = 4 * 2**20


class OwnPod:
    """The pod as the API server has it."""

    def __init__(self, pod: PodName, folder: Path = FOLDER) -> None:
        self._pod, self._folder = pod, folder

    def resize(self, amounts: Amounts) -> None:
        """Give the first container these amounts: its requests, and its limits where they equal the requests, so that
        the QoS class of the pod stays. Raises OSError.
        """
        found = self._request("GET", "", None)
        first = found["spec"]["containers"][0]
        resources = first.get("resources") or {}
        requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
        wished = {name: _text(name, amount) for name, amount in amounts.items()}
        equal = {name: text for name, text in wished.items() if name in limits and limits[name] == requests.get(name)}
        changed = {"name": first["name"], "resources": {"requests": requests | wished, "limits": limits | equal}}
        if changed["resources"] == {"requests": requests, "limits": limits}:
            return
        self._request("PATCH", "/resize", {"spec": {"containers": [changed]}})

    def _request(self, verb: str, subresource: str, body: Any) -> Any:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
        context = ssl.create_default_context(cafile=str(self._folder / "ca.crt"))
        connection = http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=context)
        headers = {"Authorization": f"Bearer {(self._folder / 'token').read_text().strip()}"}
        if body is not None:
            headers["Content-Type"] = "application/strategic-merge-patch+json"
        path = f"/api/v1/namespaces/{self._pod.namespace}/pods/{self._pod.name}{subresource}"
        try:
            connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read(_LARGEST)
        finally:
            connection.close()
        if answer.status != http.HTTPStatus.OK:
            raise OSError(f"{verb} {path}: {answer.status} {text[:200].decode(errors='replace')}")
        return json.loads(text)


def _text(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)
