"""Makes Karpenter say of NodeClaims whether they are drifted, by NodePools as they are now.

For a claim that turns Drifted there is something to wait for; for one that must not, Karpenter has to be made to say
so. A claim is asked by writing a reason of ours into its condition: Karpenter takes the condition off or writes its
own reason. It must not answer from an older NodePool, so before anyone is asked, two things are waited for: the hash,
which every edit takes off the NodePool, is back; and a further edit of the weight is observed, which Karpenter can
only see after the hash.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from reconciler.model import names
from tests.lab.api import Api, Manifest, Refused
from tests.lab.claim_watch import ASKED, drift_of

_JSON_PATCH = "application/json-patch+json"


def edit_pool(admin: Api, name: str, edits: Sequence[Manifest] = ()) -> None:
    """The hash goes with it, so that its return shows that Karpenter has seen the edit."""
    unhashed = {"op": "remove", "path": f"/metadata/annotations/{names.POOL_HASH.replace('/', '~1')}"}
    admin.must("PATCH", admin.path("nodepools", name), [*edits, unhashed], _JSON_PATCH)


def settled(admin: Api, name: str) -> str:
    """Waits until whatever Karpenter does next, it does with the edited NodePool and its hash; gives the hash."""
    found = admin.wait_for("nodepools", name, pool_hash)
    weight = found["spec"].get("weight", 0) % 100 + 1
    told = admin.merge(admin.path("nodepools", name), {"spec": {"weight": weight}})
    generation = told["metadata"]["generation"]
    admin.wait_for("nodepools", name, lambda each: _observed_generation(each) >= generation)
    return str(pool_hash(found))


def ask(admin: Api, claims: Iterable[str]) -> None:
    """All of them at once, until each has its answer."""
    claims = list(claims)
    for name in claims:
        while not _asked(admin, name):
            pass  # Karpenter wrote in between
    for name in claims:
        admin.wait_for("nodeclaims", name, lambda each: drift_of(each) != ASKED)


def _asked(admin: Api, name: str) -> bool:
    found = admin.wait_for("nodeclaims", name, bool)
    question = {
        "type": "Drifted",
        "status": "True",
        "reason": ASKED,
        "message": "",
        "lastTransitionTime": found["metadata"]["creationTimestamp"],
    }
    others = [each for each in found["status"]["conditions"] if each["type"] != "Drifted"]
    version = found["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "status": {"conditions": [*others, question]}}
    try:
        admin.merge(f"{admin.path('nodeclaims', name)}/status", patch)
    except Refused as refused:
        if refused.code != 409:
            raise
        return False
    return True


def pool_hash(found: Manifest | None) -> Any:
    return (found or {}).get("metadata", {}).get("annotations", {}).get(names.POOL_HASH)


def _observed_generation(found: Manifest | None) -> int:
    """The generation at which Karpenter last said whether the class of the NodePool is ready."""
    conditions = (found or {}).get("status", {}).get("conditions", ())
    ready = (each.get("observedGeneration", 0) for each in conditions if each["type"] == "NodeClassReady")
    return max(ready, default=0)
