"""What somebody can do who holds the token of the shipped account: the rights of deploy/core, tried as an attacker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.api import Api
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.stages.abuses.attempt import NOTHING, RBAC, SERVER, Attempt
from tests.stages.abuses.cluster import CLUSTER
from tests.stages.abuses.nodes import NODE_POOLS, NODES
from tests.stages.abuses.pods import PODS
from tests.stages.abuses.scene import set_up
from tests.stages.controlled import Site

ATTEMPTS = (*PODS, *NODES, *NODE_POOLS, *CLUSTER)


@pytest.fixture
def attacker(cluster: Lab, tmp_path: Path) -> Iterator[Api]:
    site = Site(cluster, tmp_path)
    set_up(cluster)
    yield site.controller
    cluster.admin.delete("secrets", "reconciler-git", NAMESPACE)
    for plural, name in (("leases", "others"), ("configmaps", "theirs")):
        cluster.admin.delete(plural, name, NAMESPACE)
    site.clean()


def is_stopped_as_said(attempt: Attempt, by: str) -> bool:
    return by in attempt.stopped_by or (by.startswith(SERVER) and SERVER in attempt.stopped_by)


def test_each_abuse_is_stopped_and_what_is_left_is_what_the_product_does(attacker: Api) -> None:
    found = [(each, each.tried(attacker)) for each in ATTEMPTS]
    astray = [f"{each.title}: {by or 'done'}" for each, by in found if not is_stopped_as_said(each, by)]
    assert not astray, "\n".join(astray)
    print("\n" + page([(each.title, by) for each, by in found]))


def test_nobody_else_can_be_impersonated(attacker: Api) -> None:
    answer = attacker.request("GET", "/api/v1/nodes", headers={"Impersonate-User": "system:admin"})
    assert answer.code == 403
    assert "cannot impersonate" in answer.body["message"]


def test_an_account_that_is_bound_to_cluster_admin_by_mistake_writes_no_more(cluster: Lab, attacker: Api) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    account = {"kind": "ServiceAccount", "name": "reconciler", "namespace": NAMESPACE}
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "mistake"}}
    cluster.admin.apply({**head, "roleRef": role, "subjects": [account]})
    try:
        while attacker.request("GET", "/api/v1/secrets").code == 403:
            pass
        writes = [each for each in ATTEMPTS if each.method != "GET" and each.stopped_by == (RBAC,)]
        done = [each.title for each in writes if each.tried(attacker) == NOTHING]
    finally:
        cluster.admin.delete("clusterrolebindings", "mistake")
    # About admission policies the API server asks no admission policy.
    assert done == [each.title for each in writes if "/validatingadmissionpolic" in each.path]


def page(told: list[tuple[str, str]]) -> str:
    """A table in Markdown: what is left first."""
    rows = sorted(told, key=lambda each: each[1] != NOTHING)
    return "\n".join(["| attempt | stopped by |", "|---|---|", *(f"| {title} | {by or '-'} |" for title, by in rows)])
