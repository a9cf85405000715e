"""Somebody who opens new nodes to pods where no controller is there to do it."""

import time
from contextlib import suppress

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Api, Manifest, Refused

_KEYS = {names.ARRIVING, names.UNREGISTERED}


def open_nodes(admin: Api) -> None:
    """Takes gpu.scheduling/arriving off those that Karpenter knows as its own."""
    for node in admin.list("nodes"):
        taints = node["spec"].get("taints", ())
        if {each["key"] for each in taints} & _KEYS != {names.ARRIVING}:
            continue
        version = node["metadata"]["resourceVersion"]
        left = [each for each in taints if each["key"] != names.ARRIVING]
        with suppress(Refused):  # it has changed meanwhile, and is looked at again
            patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": left}}
            admin.merge(admin.path("nodes", node["metadata"]["name"]), patch)


def running(admin: Api, pod: str, within: float = 60) -> Manifest:
    """The pod, once it runs; nodes that come are opened."""
    deadline = time.monotonic() + within
    while not fleet.is_running(found := admin.get("pods", pod, "default")):
        assert time.monotonic() < deadline, f"{pod} does not run within {within:g} s"
        open_nodes(admin)
        time.sleep(0.1)
    return found or {}
