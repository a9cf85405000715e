"""Rights as `reconciler rbac` prints them, given on the lab to an account of their own until they are taken back."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from reconciler.cli.main import main
from tests.lab.api import Api, Credential, Manifest
from tests.lab.identities import TENANT_NAMESPACE

HOME = TENANT_NAMESPACE  # the lab's own reconciler lives elsewhere, and keeps its rights
MERGE = "application/merge-patch+json"


class Rights:
    """Owner of what one page grants on the lab, under names of its own, until it is taken back."""

    def __init__(self, admin: Api, page: str) -> None:
        self.admin = admin
        self.manifests = [self._renamed(each) for each in yaml.safe_load_all(page)]
        for manifest in self.manifests:
            admin.apply(manifest)

    def take_back(self) -> None:
        for manifest in reversed(self.manifests):
            metadata = manifest["metadata"]
            self.admin.delete(f"{manifest['kind'].lower()}s", metadata["name"], metadata.get("namespace", ""))

    @staticmethod
    def _renamed(manifest: Manifest) -> Manifest:
        """The lab's reconciler has roles of these names."""
        return json.loads(json.dumps(manifest).replace('"reconciler-', '"tried-'))  # type: ignore[no-any-return]


def page_of(policies: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["rbac", str(policies), "--namespace", HOME, *arguments]) == 0
    return capsys.readouterr().out


def account(admin: Api, path: str) -> Api:
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = admin.must("POST", f"/api/v1/namespaces/{HOME}/serviceaccounts/reconciler/token", asked)
    found = Api(admin.url, admin.authority, Credential(token=answer["status"]["token"]))
    for each in (path, path_of(admin, "nodes")):
        until_allowed(found, "GET", each)
    return found


def until_allowed(api: Api, method: str, path: str, body: object = None, content_type: str = MERGE) -> None:
    until(lambda: api.request(method, path, body, content_type).code != 403, f"{method} {path}")


def until(is_so: Callable[[], bool], what: str) -> None:
    """The API server takes note of a role a moment after it was written, and there is no event of that."""
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def path_of(admin: Api, plural: str, namespace: str = "") -> str:
    return admin.path(plural, namespace=namespace)


@contextmanager
def bound(admin: Api, rights: Rights) -> Iterator[None]:
    """The account has the roles that the rights are, while in the block."""
    bindings = [_binding(each) for each in rights.manifests]
    for each in bindings:
        admin.apply(each)
    try:
        yield
    finally:
        for each in bindings:
            metadata = each["metadata"]
            admin.delete(f"{each['kind'].lower()}s", metadata["name"], metadata.get("namespace", ""))


def _binding(role: Manifest) -> Manifest:
    return {
        "apiVersion": role["apiVersion"],
        "kind": f"{role['kind']}Binding",
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "reconciler", "namespace": HOME}],
    }
