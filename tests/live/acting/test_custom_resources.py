"""Policies as custom resources on a real cluster: followed once whole, told how they stand, and not fatal when gone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.main import main
from reconciler.policy.rules.kinds import KINDS
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.controlled import Site
from tests.stages.definitions import defined, folder_of, install, remove
from tests.stages.people import acting_as
from tests.stages.replica import Replica

GUARD = """
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet}
spec: {poolNames: ["*"], perPlan: {maxRemovedNodes: 1}}
"""
PROVISIONER = {
    "apiVersion": "gpu.scheduling/v1",
    "kind": "NodeProvisioner",
    "metadata": {"name": "a100"},
    "spec": {"poolName": "a100", "minSize": 0, "maxSize": 4, "minGPUUtilizationPercent": 70},
}


@pytest.fixture(scope="module")
def definitions(lab: Lab) -> Iterator[None]:
    with defined(lab):
        yield


@pytest.fixture
def site(cluster: Lab, definitions: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(cluster, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
    yield made
    made.clean()
    for kind in KINDS:
        cluster.admin.request("DELETE", folder_of(kind))


def rendered(site: Site, capsys: pytest.CaptureFixture[str]) -> list[Manifest]:
    """What a pipeline would hand to Argo CD."""
    assert main(["render", "--as-resources", str(site.policies)]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def followed(site: Site) -> Replica:
    return Replica(site.kubeconfig, None)


def standing(resource: Manifest | None) -> tuple[str, str, str]:
    """The reason, and whether it is ready and stalled; at the generation that it has now, or else nothing."""
    found: dict[str, Any] = (resource or {}).get("status") or {}
    conditions = {each["type"]: each for each in found.get("conditions", ())}
    if not conditions or found["observedGeneration"] != (resource or {})["metadata"]["generation"]:
        return "", "", ""
    ready = conditions["Ready"]
    return ready["reason"], ready["status"], conditions["Stalled"]["status"]


def until(site: Site, plural: str, name: str, wanted: tuple[str, str, str]) -> Manifest:
    return site.lab.admin.wait_for(plural, name, lambda found: standing(found) == wanted)


def uid_of(site: Site) -> str:
    """Of the NodePool, which must be there to stay."""
    pool = site.lab.admin.get("nodepools", "a100")
    assert pool
    assert "deletionTimestamp" not in pool["metadata"]
    return str(pool["metadata"]["uid"])


READY = ("Followed", "True", "False")
SIZED = ("TargetSize", "True", "False")


def test_a_bundle_is_followed_when_all_of_it_is_there_and_told_so(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write()
    (site.policies / "scaling.yaml").write_text(yaml.safe_dump(PROVISIONER))
    first, second = rendered(site, capsys)
    with followed(site) as replica:
        replica.wait_until_leading()
        site.lab.admin.apply(first, owner="argocd")
        waiting = until(site, "gpupools", "a100", ("BundleIncomplete", "False", "False"))
        assert "(missing: NodeProvisioner/a100)" in waiting["status"]["conditions"][0]["message"]
        assert site.lab.admin.get("nodepools", "a100") is None
        site.lab.admin.apply(second, owner="argocd")
        site.lab.admin.wait_for("nodepools", "a100", bool)
        until(site, "gpupools", "a100", READY)
        until(site, "nodeprovisioners", "a100", SIZED)


def test_a_problem_stands_on_its_object_and_the_last_good_policies_stay_in_force(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write()
    (site.policies / "scaling.yaml").write_text(yaml.safe_dump(PROVISIONER))
    with followed(site) as replica:
        for each in rendered(site, capsys):
            site.lab.admin.apply(each, owner="argocd")
        until(site, "gpupools", "a100", READY)
        path = site.lab.admin.path("nodeprovisioners", "a100")
        site.lab.admin.merge(path, {"spec": {"poolName": "nowhere"}})
        found = until(site, "nodeprovisioners", "a100", ("Invalid", "False", "True"))
        assert found["status"]["problems"][0].startswith('RC301: spec.poolName: there is no GpuPool "nowhere"')
        until(site, "gpupools", "a100", ("WaitingForBundle", "False", "False"))
        before = uid_of(site)
        site.lab.admin.delete("nodepools", "a100")
        site.lab.admin.wait_for("nodepools", "a100", lambda pool: pool and pool["metadata"]["uid"] != before)
        site.lab.admin.merge(path, {"spec": {"poolName": "a100"}})
        until(site, "nodeprovisioners", "a100", SIZED)
        assert replica.terminate()[0] == 0


def delete_objects(lab: Lab) -> None:
    lab.admin.delete("gpupools", "a100")


@pytest.mark.parametrize("delete", [delete_objects, remove], ids=["objects", "definitions"])
def test_deleting_our_objects_or_their_definitions_deletes_no_node_pool(
    site: Site, delete: Callable[[Lab], None], capsys: pytest.CaptureFixture[str]
) -> None:
    site.write()
    with followed(site) as replica:
        for each in rendered(site, capsys):
            site.lab.admin.apply(each, owner="argocd")
        until(site, "gpupools", "a100", READY)
        before, audit, since = uid_of(site), site.lab.audit(), len(replica.lines)
        try:
            delete(site.lab)
            replica.wait_for(lambda line: "declare no GpuPool" in line["message"], since=since)
            assert replica.terminate()[0] == 0
            assert uid_of(site) == before
            assert not [each for each in audit.writes("controller") if "nodepools" in each.object]
        finally:
            if delete is remove:
                install(site.lab)


def test_apply_and_plan_take_the_policies_from_the_cluster(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.write()
    for each in rendered(site, capsys):
        site.lab.admin.apply(each, owner="argocd")
    assert main(["plan", "--resources"]) == 0
    assert "NodePool/a100" in capsys.readouterr().out
    assert main(["apply", "--resources"]) == 0
    assert site.lab.admin.get("nodepools", "a100")
    assert main(["plan", "--resources", "--policies", str(site.policies)]) == 64


def test_an_approver_approves_the_same_content_in_the_cluster_and_in_files(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write()
    site.put("guard.yaml", GUARD)
    for each in rendered(site, capsys):
        site.lab.admin.apply(each, owner="argocd")
    approve = ["approve", "GpuPool/a100", "--guard", "fleet", "--removed-nodes", "4", "--dry-run"]
    with acting_as(site.lab, "approver") as kubeconfig:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        objects = []
        for where in (["--resources"], ["--policies", str(site.policies)]):
            assert main([*approve, *where]) == 0
            objects.append(json.loads(capsys.readouterr().out)["spec"]["objects"])
    assert objects[0] == objects[1]


def test_a_policy_that_is_taken_out_of_its_folder_takes_nothing_with_it_until_somebody_agrees(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write()
    site.write("h100")
    arguments = ["apply", "--policies", str(site.policies)]
    assert main(arguments) == 0
    (site.policies / "h100.yaml").unlink()
    capsys.readouterr()
    audit = site.lab.audit()
    assert main(arguments) == 0
    assert "--prune NodePool/h100" in capsys.readouterr().out
    assert not [each for each in audit.writes("controller") if "nodepools" in each.object]
    assert main([*arguments, "--prune", "NodePool/h100"]) == 0
    site.lab.admin.wait_for("nodepools", "h100", lambda found: found is None)
    assert site.lab.admin.get("nodepools", "a100")
