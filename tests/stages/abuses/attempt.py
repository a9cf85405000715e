"""One attempt, as a request that is tried without effect, and what stopped it."""

from dataclasses import dataclass
from typing import Any

from tests.lab.api import Answer, Api, Manifest

MERGE, APPLY, JSON = "application/merge-patch+json", "application/apply-patch+yaml", "application/json"
STRATEGIC, STEPS = "application/strategic-merge-patch+json", "application/json-patch+json"
RBAC, POLICY, SECURITY, SERVER = "RBAC", "admission policy", "Pod Security", "API server"
NOTHING = ""  # the attempt succeeds


@dataclass(frozen=True)
class Attempt:
    """`stopped_by`: what is to stop it; several where either may come first. NOTHING: the account may do it."""

    title: str
    method: str
    path: str
    body: Any = None
    kind: str = JSON
    stopped_by: tuple[str, ...] = (RBAC,)

    def tried(self, api: Api) -> str:
        """What stopped it. Nothing of it is carried out."""
        path, body = self.path, self.body
        if self.method == "PUT":  # of what stands there now
            version = api.must("GET", path)["metadata"]["resourceVersion"]
            body = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
        if self.method != "GET":
            path += ("&" if "?" in path else "?") + "dryRun=All"
        return stopped_by(api.request(self.method, path, body, self.kind))


def stopped_by(answer: Answer) -> str:
    """By the words of the API server."""
    message = str(answer.body.get("message", ""))
    if answer.code < 300:
        return NOTHING
    if "ValidatingAdmissionPolicy" in message:
        return POLICY
    if "violates PodSecurity" in message:
        return SECURITY
    if answer.code == 403 and "cannot" in message:
        return RBAC
    return f"{SERVER}: {answer.code} {message}"


def patched(title: str, path: str, patch: Manifest, *stopped: str) -> Attempt:
    return Attempt(title, "PATCH", path, patch, MERGE, stopped or (RBAC,))


def made(title: str, path: str, body: Manifest, *stopped: str) -> Attempt:
    return Attempt(title, "POST", path, body, JSON, stopped or (RBAC,))


def deleted(title: str, path: str, *stopped: str) -> Attempt:
    return Attempt(title, "DELETE", path, None, JSON, stopped or (RBAC,))


def read(title: str, path: str, *stopped: str) -> Attempt:
    return Attempt(title, "GET", path, None, JSON, stopped or (RBAC,))
