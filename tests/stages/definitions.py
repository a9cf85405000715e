"""The definitions of our kinds on the lab, until they are taken away again with all objects of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.policy.rules.kinds import KINDS
from reconciler.policy.shape import API_VERSION, Kind
from reconciler.schema.crd import crd_name, crd_of
from tests.lab.api import Manifest
from tests.lab.lab import Lab

DEFINITIONS = "customresourcedefinitions"


@contextmanager
def defined(lab: Lab) -> Iterator[Lab]:
    """While in the block."""
    try:
        install(lab)
        yield lab
    finally:
        remove(lab)


def install(lab: Lab) -> None:
    server = lab.running("apiserver")
    assert server
    for kind in KINDS:
        lab.admin.apply(crd_of(kind))
    for kind in KINDS:
        lab.admin.wait_for(DEFINITIONS, crd_name(kind), _is_established)
        here = folder_of(kind)
        server.wait_until(lambda here=here: lab.admin.request("GET", here).code == 200)  # type: ignore[misc]


def remove(lab: Lab) -> None:
    """Those that are gone already are as good."""
    for kind in KINDS:
        lab.admin.delete(DEFINITIONS, crd_name(kind))
    for kind in KINDS:
        lab.admin.wait_for(DEFINITIONS, crd_name(kind), lambda found: found is None)


def folder_of(kind: Kind, name: str = "") -> str:
    """Where objects of the kind are, those with a namespace in `default`."""
    folder = "namespaces/default/" if kind.namespaced else ""
    return f"/apis/{API_VERSION}/{folder}{kind.plural}" + (f"/{name}" if name else "")


def _is_established(found: Manifest | None) -> bool:
    conditions = (found or {}).get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
