"""The audit log tells every write, and nothing that was not written."""

from concurrent.futures import ThreadPoolExecutor

from tests.lab import fleet, identities
from tests.lab.lab import Lab


def test_each_write_is_told_once_with_its_answer(cluster: Lab) -> None:
    audit = cluster.audit()
    admin = cluster.admin
    cluster.load(fleet.nodes(1))
    node = admin.path("nodes", "gpu-0")
    admin.merge(node, {"metadata": {"labels": {"a": "b"}}})
    assert admin.request("POST", "/api/v1/nodes", fleet.nodes(1)[0]).code == 409
    admin.delete("nodes", "gpu-0")
    admin.delete("nodes", "gpu-0")
    assert audit.writes("admin") == [
        ("admin", "create", "nodes/gpu-0", 201),
        ("admin", "patch", "nodes/gpu-0", 200),
        ("admin", "create", "nodes/gpu-0", 409),
        ("admin", "delete", "nodes/gpu-0", 200),
        ("admin", "delete", "nodes/gpu-0", 404),
    ]
    assert audit.writes("admin") == []


def test_a_dry_run_is_no_write_unless_asked_for(cluster: Lab) -> None:
    audit = cluster.audit()
    cluster.admin.must("POST", "/api/v1/nodes?dryRun=All", fleet.nodes(1)[0])
    assert audit.writes("admin") == []
    cluster.admin.must("POST", "/api/v1/nodes?dryRun=All", fleet.nodes(1)[0])
    assert audit.writes("admin", dry_runs=True) == [("admin", "create", "nodes/gpu-0", 201)]


def test_the_reconciler_s_reads_are_told_too_and_what_it_sent_is_kept(cluster: Lab) -> None:
    audit = cluster.audit()
    reconciler = identities.reconciler(cluster.admin)
    reconciler.list("nodes")
    reconciler.request("POST", "/api/v1/nodes", fleet.nodes(1)[0])
    read, write = audit.entries(identities.RECONCILER)
    assert (read.write.verb, read.write.object) == ("list", "nodes")
    # A request that is refused by its rights is never decoded: the log has no body of it.
    assert (write.write.code, write.body) == (403, None)
    cluster.load(fleet.nodes(1))
    (created,) = [each for each in audit.entries("admin") if each.write.verb == "create"]
    assert created.body["metadata"]["name"] == "gpu-0"


def test_nothing_is_missed_when_many_write_at_once(cluster: Lab) -> None:
    audit = cluster.audit()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cluster.admin.create, fleet.nodes(60)))
    created = [each.object for each in audit.writes("admin") if each.verb == "create"]
    assert sorted(created) == sorted(f"nodes/gpu-{number}" for number in range(60))


def test_credentials_stay_out_of_the_log(cluster: Lab) -> None:
    audit = cluster.audit()
    tenant = identities.tenant(cluster.admin)
    (entry,) = [each for each in audit.entries("admin") if each.write.object.endswith("/token")]
    assert entry.body is None
    assert tenant.credential.token not in cluster.site.audit_log.read_text()
