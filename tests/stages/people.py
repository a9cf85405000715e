"""People on the lab, each with exactly what `reconciler rbac --person` prints for their part."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.policy.published.rights.page import person_page, reading_page
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.granted import HOME, Rights, account, path_of


@contextmanager
def acting_as(lab: Lab, part: str) -> Iterator[Path]:
    """A kubeconfig of theirs, while in the block; they may look at everything besides."""
    looking = Rights(lab.admin, reading_page((), HOME))
    rights = Rights(lab.admin, person_page(part))
    bindings = [_binding(each) for each in rights.manifests]
    for each in bindings:
        lab.admin.apply(each)
    try:
        yield lab.site.kubeconfig(part, account(lab.admin, path_of(lab.admin, "pods")))
    finally:
        for each in bindings:
            metadata = each["metadata"]
            lab.admin.delete(f"{each['kind'].lower()}s", metadata["name"], metadata.get("namespace", ""))
        rights.take_back()
        looking.take_back()


def _binding(role: Manifest) -> Manifest:
    return {
        "apiVersion": role["apiVersion"],
        "kind": f"{role['kind']}Binding",
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": "reconciler", "namespace": HOME}],
    }
