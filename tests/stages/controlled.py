"""A lab with policies on a disk, and replicas of the controller that follow them."""

import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.lab import capacity, identities
from tests.lab.api import Api, Manifest
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.lab.proxy.door import Proxy
from tests.stages.replica import PROGRAM, Replica

POOL = {
    "mode": "Enforce",
    "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
    "instanceTypes": [{"name": "p4d.24xlarge", "pricePerHour": {"on-demand": "21.96"}}],
    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": capacity.NODE_CLASS},
    "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(capacity.ZONES)}],
}
LEASE = "reconciler"
CORE = REPOSITORY / "deploy" / "core"
RIGHTS, ADMISSION = CORE / "rbac.yaml", CORE / "admission.yaml"


class Site:
    """Policies, who writes them, and who acts."""

    def __init__(self, lab: Lab, folder: Path, program: Sequence[str] = PROGRAM) -> None:
        self.lab, self._program = lab, program
        self.clean()
        lab.admin.apply(capacity.node_class())
        mark = uuid.uuid4().hex
        for manifest in rights(mark):
            lab.admin.apply(manifest)
        limited(lab.admin, identities.reconciler(lab.admin), mark)
        self.policies = folder / "policies"
        self.policies.mkdir()
        self.controller = identities.reconciler(lab.admin)
        self.kubeconfig = lab.site.kubeconfig("controller", self.controller)

    def write(self, name: str = "a100", **fields: object) -> None:
        policy: dict[str, object] = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuPool", "metadata": {"name": name}}
        policy["spec"] = {**POOL, **fields}
        self.put(f"{name}.yaml", yaml.safe_dump(policy))

    def put(self, file: str, text: str) -> None:
        """At once: whoever follows the folder never sees half of it."""
        fresh = self.policies.parent / file
        fresh.write_text(text)
        fresh.replace(self.policies / file)

    def replica(self, *arguments: str) -> Replica:
        return Replica(self.kubeconfig, self.policies, *arguments, program=self._program)

    def lease_holder(self) -> str:
        lease = self.lab.admin.get("leases", LEASE, NAMESPACE)
        return str((lease or {}).get("spec", {}).get("holderIdentity", ""))

    def end_term(self) -> None:
        """Whoever led was killed: nobody need wait until its term is over."""
        self.lab.admin.delete("leases", LEASE, NAMESPACE)

    def behind(self, proxy: Proxy, *arguments: str) -> Replica:
        """A replica whose way to the API server leads through the proxy."""
        name = f"proxied-{proxy.url.rpartition(':')[2]}"
        kubeconfig = self.lab.site.kubeconfig(name, self.controller.at(proxy.url))
        return Replica(kubeconfig, self.policies, *arguments, program=self._program)

    def clean(self) -> None:
        """Takes away the right to write, and what a controller keeps beside what it makes."""
        admin = self.lab.admin
        taken_away(admin, rights())
        admin.delete("leases", LEASE, NAMESPACE)
        for kept in admin.list("configmaps", NAMESPACE):
            if kept["metadata"]["name"].startswith("reconciler-"):
                admin.delete("configmaps", kept["metadata"]["name"], NAMESPACE)


def limited(admin: Api, account: Api, mark: str = "ValidatingAdmissionPolicy") -> None:
    """Waits until the admission policies are in force for the account: the API server takes note a moment later, of
    deleted policies too. So a refusal counts only if it has the mark of the policies that were just written.
    """
    path = f"{admin.path('priorityclasses')}?dryRun=All"
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "above-all"}}
    deadline = time.monotonic() + 30
    # Roles are noted by themselves, and policies all at once: this is the last of them that was made.
    while mark not in str(account.request("POST", path, {**head, "value": 1_000}).body):
        assert time.monotonic() < deadline, "the admission policies are not in force"
        time.sleep(0.05)


def taken_away(admin: Api, manifests: Sequence[Manifest]) -> None:
    """What was made last goes first."""
    for manifest in reversed(manifests):
        metadata, plural = manifest["metadata"], f"{manifest['kind'].lower()}s"
        admin.delete(plural.replace("policys", "policies"), metadata["name"], metadata.get("namespace", ""))


def rights(mark: str = "") -> list[Manifest]:
    """What deploy/core grants and limits, beside what the lab's reconciler has anyway: it can look. `mark` is added to
    the messages of the admission policies.
    """
    found = [each for file in (RIGHTS, ADMISSION) for each in yaml.safe_load_all(file.read_text()) if each]
    for manifest in found:
        for validation in manifest.get("spec", {}).get("validations", ()):
            validation["message"] += f" {mark}"
    return found
